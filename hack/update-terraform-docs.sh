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

# Generates terraform/docs, in the layout of a registry, from the schema of the provider, the templates and the
# examples. Running it twice changes nothing.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

tofu="$(go run ./hack/stack opentofu)"
scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT

go build -C terraform -o "${scratch}/" ./cmd/terraform-provider-workerimage

cat > "${scratch}/tofu.rc" <<RC
provider_installation {
  dev_overrides {
    "cozystack/workerimage" = "${scratch}"
  }
}
RC
cp terraform/examples/provider/provider.tf "${scratch}/"
# The configuration of whoever runs this is none of it.
export TF_CLI_CONFIG_FILE="${scratch}/tofu.rc"
"${tofu}" fmt -recursive terraform/examples >/dev/null
"${tofu}" -chdir="${scratch}" providers schema -json |
  sed 's#registry.opentofu.org/cozystack/workerimage#registry.terraform.io/hashicorp/workerimage#' > "${scratch}/schema.json"

go -C terraform/tools tool tfplugindocs generate --provider-dir .. --provider-name workerimage \
  --providers-schema "${scratch}/schema.json" >/dev/null
