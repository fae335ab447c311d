#!/usr/bin/env bash

# Copyright The Cozystack Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Writes THIRD_PARTY_NOTICES, which goes with the server wherever it goes: the licences and notices of all that is linked
# into it, each text once, under the names of those it belongs to. GO_LICENSES names the program.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT

# It warns of assembly, which might import something and does not.
GOOS=linux GOARCH=amd64 CGO_ENABLED=0 "${GO_LICENSES:?names no program: use \`make generate\`}" save ./cmd/workerimage-apiserver \
  --ignore github.com/cozystack/workerimage-apiserver --save_path "${scratch}/texts" \
  --logtostderr=false --stderrthreshold=ERROR --log_file=/dev/null
mkdir -p "${scratch}/texts/the Go standard library"
cp "$(go env GOROOT)/LICENSE" "${scratch}/texts/the Go standard library/LICENSE"

cd "${scratch}/texts"
export LC_ALL=C
find . -type f -printf '%P\0' | sort --zero-terminated | xargs --null sha256sum >"${scratch}/sums"
{
  echo "The server is linked with the works of others, under the licences and with the notices below."
  # By the first that a text belongs to.
  cut --delimiter=' ' --fields=1 "${scratch}/sums" | awk '!met[$1]++' | while read -r sum; do
    files="$(sed --quiet "s/^${sum}  //p" "${scratch}/sums")"
    echo
    printf '=%.0s' {1..80}
    echo
    while read -r file; do
      echo "${file%/*}"
    done <<<"${files}"
    printf -- '-%.0s' {1..80}
    printf '\n\n'
    # Ends of lines and of the text are as editors like them.
    sed 's/\r$//; s/[[:space:]]*$//' "${files%%$'\n'*}" | sed --expression ':a' --expression '/^\n*$/{$d;N;ba' --expression '}'
  done
} >"${scratch}/notices"
cd "${OLDPWD}"
mv "${scratch}/notices" THIRD_PARTY_NOTICES
