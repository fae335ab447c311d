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

# Renders the chart with its default values into artifacts/deploy, for kubectl apply -k, and what tests need with others.
# HELM names the program.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly chart=artifacts/chart deploy=artifacts/deploy
scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT

"${HELM:?names no program: use \`make generate\`}" template workerimage-apiserver "${chart}" \
  --namespace cozy-system --output-dir "${scratch}" >/dev/null

rm -rf "${deploy}"
mkdir "${deploy}"
for rendered in "${scratch}"/*/templates/*.yaml; do
  # Objects stay separated, and what helm adds to that goes.
  awk '
    /^# Source: / { next }
    /^---$/ { blank = 0; if (printed) print; next }
    !NF { blank = printed; next }
    { if (blank) print ""; blank = 0; printed = 1; print }
  ' "${rendered}" >"${deploy}/$(basename "${rendered}")"
done

{
  echo "# Rendered from ${chart} by \`make generate\`, as are the files that it names."
  echo "apiVersion: kustomize.config.k8s.io/v1beta1"
  echo "kind: Kustomization"
  echo "resources:"
  (cd "${deploy}" && printf -- '- %s\n' *.yaml)
} >"${scratch}/kustomization.yaml"
mv "${scratch}/kustomization.yaml" "${deploy}/kustomization.yaml"

{
  echo "# Rendered from ${chart} by \`make generate\`, with sharedHistory=true."
  "${HELM}" template workerimage-apiserver "${chart}" --namespace cozy-system \
    --set sharedHistory=true --show-only templates/rbac.yaml | grep -v '^# Source: '
} >test/stack/testdata/rbac-shared-history.yaml
