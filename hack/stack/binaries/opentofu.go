/*
Copyright The Cozystack Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package binaries

import (
	"context"
	"path/filepath"
)

const openTofuModule = "github.com/opentofu/opentofu"

// EnsureOpenTofu returns the path of OpenTofu, which no stack needs and the tests of the Terraform provider do, after
// building it if it is missing.
func EnsureOpenTofu(ctx context.Context, o Options) (string, error) {
	o, err := o.withCache()
	if err != nil {
		return "", err
	}
	module, err := openModule(ctx, filepath.Join(o.Source, "opentofu"))
	if err != nil {
		return "", err
	}
	version, err := module.version(openTofuModule)
	if err != nil {
		return "", err
	}
	// Without the last flag it takes itself for a development version.
	flags := []string{"-trimpath", "-ldflags", "-s -w -X " + openTofuModule + "/version.dev=no"}
	pkg := openTofuModule + "/cmd/tofu"
	return ensure(ctx, o, artifact{
		name:     "tofu",
		version:  version,
		key:      cacheKey(append([]string{module.fingerprint, pkg}, flags...)...),
		estimate: "2 minutes",
		make:     module.build(pkg, flags...),
	})
}
