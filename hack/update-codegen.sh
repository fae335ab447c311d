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

# Generates deepcopy, conversion, defaults, OpenAPI and clients with the code-generator of the version
# that go.mod pins. Running it twice changes nothing.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly module=github.com/cozystack/workerimage-apiserver
export GOBIN="${PWD}/_output/codegen"

# shellcheck source=/dev/null
source "$(go list -m -f '{{.Dir}}' k8s.io/code-generator)/kube_codegen.sh"

kube::codegen::gen_helpers --boilerplate hack/boilerplate.go.txt pkg/apis

# The report lists violations of the API conventions in the types of other modules, and none of ours.
kube::codegen::gen_openapi \
  --output-dir pkg/generated/openapi \
  --output-pkg "${module}/pkg/generated/openapi" \
  --output-model-name-file zz_generated.model_name.go \
  --report-filename hack/api-violations.list \
  --update-report \
  --boilerplate hack/boilerplate.go.txt \
  pkg/apis

kube::codegen::gen_client \
  --with-watch \
  --with-applyconfig \
  --output-dir pkg/generated \
  --output-pkg "${module}/pkg/generated" \
  --boilerplate hack/boilerplate.go.txt \
  pkg/apis
