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
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

const factoryID = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

func TestParseName(t *testing.T) {
	for _, test := range []struct {
		name string
		text string
		want ID
	}{
		{
			name: "an id of the public factory is longer than a label value",
			text: "talos-worker-" + factoryID + "-v1.13.6",
			want: ID{SchematicID: factoryID, Version: "v1.13.6"},
		},
		{
			name: "an id may hold dashes",
			text: "talos-worker-talos-gpu-nvidia-open-v1.13.6",
			want: ID{SchematicID: "talos-gpu-nvidia-open", Version: "v1.13.6"},
		},
		{
			name: "a version may have a suffix",
			text: "talos-worker-abc-v1.14.0-alpha.1",
			want: ID{SchematicID: "abc", Version: "v1.14.0-alpha.1"},
		},
		{
			name: "an id may end like the beginning of a version",
			text: "talos-worker-abc-v1-v1.13.6",
			want: ID{SchematicID: "abc-v1", Version: "v1.13.6"},
		},
		{
			name: "a suffix may look like a version, for an id holds no dot",
			text: "talos-worker-abc-v1.0.0-v2.0.0",
			want: ID{SchematicID: "abc", Version: "v1.0.0-v2.0.0"},
		},
		{
			name: "an id may begin like the prefix",
			text: "talos-worker-talos-worker-a-v1.0.0",
			want: ID{SchematicID: "talos-worker-a", Version: "v1.0.0"},
		},
		{name: "a name without a version is no golden's", text: "talos-worker-abc"},
		{name: "a name without an id is no golden's", text: "talos-worker--v1.0.0"},
		{name: "a name that is all version is no golden's", text: "talos-worker-v1.0.0"},
		{name: "upper case is no golden's", text: "talos-worker-ABC-v1.0.0"},
		{name: "a minor without a patch is no golden's", text: "talos-worker-abc-v1.13"},
		{name: "another suffix than lower case is no golden's", text: "talos-worker-abc-v1.13.6-Alpha"},
		{name: "build metadata is no golden's", text: "talos-worker-abc-v1.13.6+build"},
		{name: "a suffix that ends with a dot is no object's name", text: "talos-worker-abc-v1.13.6-rc."},
		{name: "a suffix with two dots is no object's name", text: "talos-worker-abc-v1.13.6-rc..1"},
		{name: "other images are no goldens", text: "vm-default-images-x"},
		{name: "claims that CDI makes on the way are no goldens", text: "prime-0195a4e1-5c75-41bc-bce7-42feccbfc095"},
		{name: "the prefix alone is no golden's", text: "talos-worker-"},
		{name: "nothing is no golden's", text: ""},
		{name: "a longer name than an object can have is no golden's", text: "talos-worker-" + strings.Repeat("a", 240) + "-v1.0.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := ParseName(test.text)
			if got != test.want || ok != (test.want != ID{}) {
				t.Fatalf("ParseName(%q) = %v, %t, want %v", test.text, got, ok, test.want)
			}
			if ok && got.Name() != test.text {
				t.Errorf("the name of %v is %q, want %q", got, got.Name(), test.text)
			}
		})
	}
}

func TestLegalPairSurvivesNameAndBack(t *testing.T) {
	random := rand.New(rand.NewSource(20))
	for range 5000 {
		id := randomID(random)
		if messages := append(ValidateSchematicID(id.SchematicID), ValidateVersion(id.Version)...); len(messages) > 0 {
			t.Fatalf("%v is not legal: %v", id, messages)
		}
		if got, ok := ParseName(id.Name()); !ok || got != id {
			t.Fatalf("ParseName(%q) = %v, %t, want %v", id.Name(), got, ok, id)
		}
	}
}

// randomID returns a legal pair that is rich in what could be taken for the other part.
func randomID(random *rand.Rand) ID {
	pick := func(words ...string) string { return words[random.Intn(len(words))] }
	schematic := pick("a", "7", "v1", "talos", "x9z")
	for range random.Intn(4) {
		schematic += pick("-", "--", "") + pick("v", "v1", "0", "gpu", "worker", "v13")
	}
	version := fmt.Sprintf("v%d.%d.%d", random.Intn(20), random.Intn(20), random.Intn(20))
	if random.Intn(2) == 0 {
		version += "-" + pick("alpha", "rc", "v2", "0")
		for range random.Intn(3) {
			version += pick(".", "") + pick("1", "beta", "v1")
		}
		if random.Intn(4) == 0 {
			version = fmt.Sprintf("v%d.0.0-v%d.0.0", random.Intn(9), random.Intn(9))
		}
	}
	return ID{SchematicID: schematic, Version: version}
}

func TestValidateSchematicID(t *testing.T) {
	for text, legal := range map[string]bool{
		"a": true, factoryID: true, "talos-gpu": true, "0--0": true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a_b": false, "a b": false, "a\n": false,
	} {
		if messages := ValidateSchematicID(text); (len(messages) == 0) != legal {
			t.Errorf("ValidateSchematicID(%q) = %q, want legal %t", text, messages, legal)
		}
	}
}

func TestValidateVersion(t *testing.T) {
	for text, legal := range map[string]bool{
		"v1.13.6": true, "v1.14.0-alpha.1": true, "v1.0.0-v2.0.0": true, "v0.0.0-0": true,
		"": false, "1.13.6": false, "v1.13": false, "v1.13.6-": false, "v1.13.6-A": false, "v1.13.6-a-b": false, "v1.13.6\n": false,
		"v1.13.6-a.": false, "v1.13.6-a..b": false, "v1.13.6-.a": false,
	} {
		if messages := ValidateVersion(text); (len(messages) == 0) != legal {
			t.Errorf("ValidateVersion(%q) = %q, want legal %t", text, messages, legal)
		}
	}
}
