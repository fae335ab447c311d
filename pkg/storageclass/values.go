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

import "time"

// Class is what the rules read of a StorageClass.
type Class struct {
	Name    string
	Created time.Time
	// VirtDefault, Default and BetaDefault are the three annotations that make a default, each only when
	// its value is exactly "true".
	VirtDefault bool
	Default     bool
	BetaDefault bool
}

// Classes are the StorageClasses of a cluster, in any order.
type Classes []Class

// Profiles say how CDI clones.
type Profiles struct {
	// Override is spec.cloneStrategyOverride of the CDI object; empty where it sets none.
	Override string
	// Strategies is status.cloneStrategy of each StorageProfile, by StorageClass.
	Strategies map[string]string
}
