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

package golden

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// NamePrefix begins the name of every golden.
const NamePrefix = "talos-worker-"

const (
	schematicPattern = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	versionPattern   = `^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$`
)

var (
	schematicRegexp = regexp.MustCompile(schematicPattern)
	versionRegexp   = regexp.MustCompile(versionPattern)
	// versionStart is where the version may begin in the rest of a name.
	versionStart = regexp.MustCompile(`-v[0-9]+\.`)
)

// Name returns the name of the golden that holds the image.
func (id ID) Name() string {
	return NamePrefix + id.SchematicID + "-" + id.Version
}

// ParseName returns the identity of the golden of that name, and false for a name that is not a golden's.
//
// Both parts may hold dashes, and a version may hold a suffix that looks like another version. A schematic
// id holds no dot, so at most one split leaves two legal parts.
func ParseName(name string) (ID, bool) {
	rest, ok := strings.CutPrefix(name, NamePrefix)
	if !ok || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ID{}, false
	}
	start := versionStart.FindStringIndex(rest)
	if start == nil {
		return ID{}, false
	}
	id := ID{SchematicID: rest[:start[0]], Version: rest[start[0]+1:]}
	if !schematicRegexp.MatchString(id.SchematicID) || !versionRegexp.MatchString(id.Version) {
		return ID{}, false
	}
	return id, true
}

// ValidateSchematicID returns what is wrong with a schematic id, nothing for a legal one.
func ValidateSchematicID(id string) []string {
	if !schematicRegexp.MatchString(id) {
		return []string{validation.RegexError("a schematic id must consist of lower case alphanumeric characters or '-', "+
			"and must start and end with an alphanumeric character", schematicPattern, "talos-gpu-nvidia-open")}
	}
	return nil
}

// ValidateVersion returns what is wrong with a Talos version, nothing for a legal one.
func ValidateVersion(version string) []string {
	if !versionRegexp.MatchString(version) {
		return []string{validation.RegexError("a version must be a full Talos release", versionPattern, "v1.13.6", "v1.14.0-alpha.1")}
	}
	if len(validation.IsDNS1123Subdomain(version)) > 0 {
		return []string{"a version must not hold an empty part or end with a punctuation mark"}
	}
	return nil
}
