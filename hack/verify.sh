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

# Checks what linters of Go do not see: modules, scripts, workflows and licence headers. ACTIONLINT names the program.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=
fail() {
  echo "$*" >&2
  failed=1
}

mapfile -t modules < <(git ls-files '*go.mod')
for module in "${modules[@]}"; do
  go -C "$(dirname "${module}")" mod tidy -diff || fail "${module} is not tidy."
done

mapfile -t unformatted < <(git ls-files '*.go' | xargs gofmt -l)
[[ ${#unformatted[@]} -eq 0 ]] || fail "Not formatted: ${unformatted[*]}"

# Examples are to be copied, and have none.
mapfile -t headless < <(git ls-files '*.go' '*.sh' '*.ts' '*.tsx' ':!terraform/examples' |
  xargs grep --files-without-match --fixed-strings 'Copyright The Cozystack Authors.')
[[ ${#headless[@]} -eq 0 ]] || fail "No licence header, as in hack/boilerplate.go.txt: ${headless[*]}"

if command -v shellcheck >/dev/null; then
  mapfile -t scripts < <(git grep --files-with-matches --extended-regexp '^#!.*\b(ba)?sh$' -- ':!*.md')
  shellcheck "${scripts[@]}" || fail "shellcheck finds fault with a script."
else
  echo "shellcheck is not installed: nobody looks at the scripts."
fi
"${ACTIONLINT:?names no program: use \`make lint\`}" || fail "actionlint finds fault with a workflow."

[[ -z "${failed}" ]]
