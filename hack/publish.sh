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

# Pushes the image of _output/image and the chart of version VERSION to REPOSITORY and CHARTS, and signs both, and a bill of
# materials for each platform, with COSIGN. CRANE and HELM name the programs; who is logged in with docker is used.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Helm has a file of its own for the same.
export HELM_REGISTRY_CONFIG="${DOCKER_CONFIG:-${HOME}/.docker}/config.json"
scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT

image="$("${CRANE}" push _output/image/layout "${REPOSITORY}:${VERSION}")"
"${COSIGN}" sign --yes "${image}"
for sbom in _output/image/sbom-*.cdx.json; do
  arch="$(basename "${sbom#*sbom-}" .cdx.json)"
  "${COSIGN}" attest --yes --type cyclonedx --predicate "${sbom}" "${REPOSITORY}@$("${CRANE}" digest --platform "linux/${arch}" "${image}")"
done

# The chart of a release installs the image of that release.
cp -R artifacts/chart "${scratch}/chart"
sed --in-place "s|^image: .*|image: ${REPOSITORY}:${VERSION}|" "${scratch}/chart/values.yaml"
grep --quiet --line-regexp --fixed-strings "image: ${REPOSITORY}:${VERSION}" "${scratch}/chart/values.yaml"
"${HELM}" package "${scratch}/chart" --version "${VERSION#v}" --app-version "${VERSION}" --destination _output
# crane knows by itself that a registry on this machine has no certificate.
plain=()
[[ "${CHARTS}" != localhost:* ]] || plain=(--plain-http)
"${HELM}" push "${plain[@]}" "_output/workerimage-apiserver-${VERSION#v}.tgz" "oci://${CHARTS}" 2>&1 | tee "${scratch}/push.log"
"${COSIGN}" sign --yes "${CHARTS}/workerimage-apiserver@$(sed --quiet 's/^Digest: //p' "${scratch}/push.log")"
