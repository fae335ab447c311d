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

# Builds what the Dockerfile describes for all platforms, without a daemon, as an OCI layout in _output/image with bills
# of materials beside it, and checks what came out. CRANE and CYCLONEDX_GOMOD name the programs, VERSION, REVISION and
# LDFLAGS are those of the Makefile.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly out=_output/image platforms=(amd64 arm64)
user="$(sed --quiet 's/^USER //p' Dockerfile)"
entrypoint="$(sed --quiet 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' Dockerfile)"
scratch="$(mktemp -d)"
registry=
trap '[[ -z "${registry}" ]] || kill "${registry}"; rm -rf "${scratch}"' EXIT

# Labels are changed in a registry only, so one runs here for as long as this does.
"${CRANE}" registry serve --address localhost:0 2>"${scratch}/registry.log" &
registry=$!
until port="$(grep --only-matching --perl-regexp 'serving on port \K[0-9]+' "${scratch}/registry.log")"; do
  kill -0 "${registry}"
  read -r -t 0.1 <> <(:) || true
done
readonly image="localhost:${port}/workerimage-apiserver"

fail() {
  echo "The image $*." >&2
  exit 1
}

manifests=()
for arch in "${platforms[@]}"; do
  root="${scratch}/${arch}"
  mkdir "${root}" "${root}/licenses"
  CGO_ENABLED=0 GOOS=linux GOARCH="${arch}" go build -trimpath -ldflags "-s -w ${LDFLAGS}" \
    -o "${root}/workerimage-apiserver" ./cmd/workerimage-apiserver
  cp LICENSE THIRD_PARTY_NOTICES "${root}/licenses/"
  # Equal inputs make equal layers.
  tar --create --file "${root}.tar" --directory "${root}" --sort=name --owner=0 --group=0 --mtime=@0 --mode=u=rwX,go=rX \
    licenses workerimage-apiserver
  "${CRANE}" append --oci-empty-base --new_layer "${root}.tar" --new_tag "${image}:bare-${arch}" 2>>"${scratch}/crane.log" ||
    fail "for ${arch} cannot be put together: $(<"${scratch}/crane.log")"
  labels=()
  while read -r key value; do
    labels+=(--label "${key}=${value}")
  done < <(grep --only-matching --perl-regexp 'org\.opencontainers\.image\.\w+="[^"]*"' Dockerfile |
    sed --regexp-extended "s/=\"/ /; s/\"$//; s/[$][{]VERSION[}]/${VERSION}/; s/[$][{]REVISION[}]/${REVISION}/")
  "${CRANE}" mutate "${image}:bare-${arch}" --tag "${image}:${arch}" --set-platform "linux/${arch}" \
    --entrypoint "${entrypoint}" --user "${user}" "${labels[@]}" 2>>"${scratch}/crane.log" ||
    fail "for ${arch} cannot be described: $(<"${scratch}/crane.log")"
  manifests+=(--manifest "${image}:${arch}")
done >/dev/null
"${CRANE}" index append "${manifests[@]}" --tag "${image}:all" >/dev/null 2>>"${scratch}/crane.log" ||
  fail "has no index: $(<"${scratch}/crane.log")"

rm -rf "${out}"
mkdir -p "${out}"
"${CRANE}" pull --format oci "${image}:all" "${out}/layout"
for arch in "${platforms[@]}"; do
  "${CYCLONEDX_GOMOD}" bin -json -licenses -version "${VERSION}" -output "${out}/sbom-${arch}.cdx.json" \
    "${scratch}/${arch}/workerimage-apiserver" 2>>"${scratch}/sbom.log" || fail "for ${arch} has no bill of materials: $(<"${scratch}/sbom.log")"
done

# What is in it, against what a node and a lawyer expect.
readonly expected=$'licenses\nlicenses/LICENSE\nlicenses/THIRD_PARTY_NOTICES\nworkerimage-apiserver'
for arch in "${platforms[@]}"; do
  config="$("${CRANE}" config --platform "linux/${arch}" "${image}:all")"
  grep --quiet "\"architecture\":\"${arch}\"" <<<"${config}" || fail "for ${arch} is for something else: ${config}"
  grep --quiet '"User":"65532:65532"' <<<"${config}" || fail "for ${arch} runs as somebody else: ${config}"
  grep --quiet '"Entrypoint":\["/workerimage-apiserver"\]' <<<"${config}" || fail "for ${arch} starts something else: ${config}"
  grep --quiet "\"org.opencontainers.image.version\":\"${VERSION}\"" <<<"${config}" || fail "for ${arch} bears another version: ${config}"
  files="$("${CRANE}" export --platform "linux/${arch}" "${image}:all" - | tar --list)"
  [[ "${files}" == "${expected}" ]] || fail "for ${arch} holds ${files}"
done
echo "${out}/layout: linux/$(IFS=,; echo "${platforms[*]}"), each with its sbom-*.cdx.json"
