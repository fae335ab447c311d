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

package storageclass

import (
	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	// nameLimit is the longest name of a cluster-scoped object.
	nameLimit = 253
	// strategyLimit is far more than any clone strategy of CDI needs.
	strategyLimit = 63
)

// CloneStrategy is how CDI clones inside a class: csi-clone, snapshot or copy; empty if that is not known.
func (p Profiles) CloneStrategy(class string) string {
	switch {
	case class == "":
		return ""
	case p.Override != "":
		return p.Override
	default:
		return p.Strategies[class]
	}
}

// StrategyFromProfile reads a StorageProfile, which has the name of its class.
func StrategyFromProfile(object map[string]any) (class, strategy string) {
	profile := freeform.From(object)
	return profile.Object("metadata").Text("name", nameLimit),
		profile.Object("status").Text("cloneStrategy", strategyLimit)
}

// OverrideFromCDI reads the strategy that the CDI object sets for the whole cluster; empty if it sets none.
func OverrideFromCDI(object map[string]any) string {
	return freeform.From(object).Object("spec").Text("cloneStrategyOverride", strategyLimit)
}
