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

import "testing"

func TestCloneStrategy(t *testing.T) {
	strategies := map[string]string{"replicated": "csi-clone", "local": "copy"}
	for _, test := range []struct {
		name     string
		profiles Profiles
		class    string
		want     string
	}{
		{name: "the profile of the class says it", profiles: Profiles{Strategies: strategies}, class: "local", want: "copy"},
		{name: "the override of CDI beats the profile", profiles: Profiles{Override: "snapshot", Strategies: strategies}, class: "local", want: "snapshot"},
		{name: "the override of CDI holds for a class without a profile", profiles: Profiles{Override: "snapshot"}, class: "new", want: "snapshot"},
		{name: "a class without a profile has none", profiles: Profiles{Strategies: strategies}, class: "new", want: ""},
		{name: "no class has none, whatever the override", profiles: Profiles{Override: "copy", Strategies: strategies}, class: "", want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.profiles.CloneStrategy(test.class); got != test.want {
				t.Errorf("CloneStrategy(%q) = %q, want %q", test.class, got, test.want)
			}
		})
	}
}

func TestStrategyFromProfile(t *testing.T) {
	for _, test := range []struct {
		name         string
		object       map[string]any
		wantClass    string
		wantStrategy string
	}{
		{
			name: "the status says it, not the spec",
			object: map[string]any{
				"metadata": map[string]any{"name": "replicated"},
				"spec":     map[string]any{"cloneStrategy": "copy"},
				"status":   map[string]any{"cloneStrategy": "csi-clone"},
			},
			wantClass:    "replicated",
			wantStrategy: "csi-clone",
		},
		{
			name:      "a profile without a status says nothing",
			object:    map[string]any{"metadata": map[string]any{"name": "replicated"}},
			wantClass: "replicated",
		},
		{
			name:      "a strategy that is not a word counts as absent",
			object:    map[string]any{"metadata": map[string]any{"name": "replicated"}, "status": map[string]any{"cloneStrategy": 3}},
			wantClass: "replicated",
		},
		{name: "an empty object says nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			class, strategy := StrategyFromProfile(test.object)
			if class != test.wantClass || strategy != test.wantStrategy {
				t.Errorf("got %q, %q, want %q, %q", class, strategy, test.wantClass, test.wantStrategy)
			}
		})
	}
}

func TestOverrideFromCDI(t *testing.T) {
	for _, test := range []struct {
		name   string
		object map[string]any
		want   string
	}{
		{name: "the spec sets it", object: map[string]any{"spec": map[string]any{"cloneStrategyOverride": "copy"}}, want: "copy"},
		{name: "a spec that sets none is none", object: map[string]any{"spec": map[string]any{}}},
		{name: "no CDI object is none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := OverrideFromCDI(test.object); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
