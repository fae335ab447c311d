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

package options

import (
	"encoding/json"
	"errors"
	"go/build"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

func newClient(objects ...runtime.Object) *fake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{
		{Group: "images.cozystack.io", Version: "v1alpha1", Resource: "options"}: "OptionList",
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

func option(name string, items any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "images.cozystack.io/v1alpha1",
		"kind":       "Option",
		"metadata":   map[string]any{"namespace": "cozy-public", "name": name},
		"spec":       map[string]any{"items": items},
	}}
}

// Guards: that items are those of the source, in their order.
func TestItemsAreThoseThatAreServed(t *testing.T) {
	client := newClient(
		option(Images, []any{map[string]any{"value": "talos-worker-gpu-v1.13.6"}}),
		option(Versions, []any{
			map[string]any{"value": "v1.13.6", "label": "v1.13.6 (importing)", "description": "Talos v1.13.6", "default": true},
			map[string]any{"value": "v1.12.0"},
		}),
	)
	items, err := New(client).Items(t.Context(), Versions)
	if err != nil {
		t.Fatal(err)
	}
	want := []Item{{Value: "v1.13.6", Label: "v1.13.6 (importing)", Description: "Talos v1.13.6", Default: true}, {Value: "v1.12.0"}}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("unexpected items (-want +got):\n%s", diff)
	}
}

// Guards: the field selector of the one request.
func TestOnlyTheSourceIsAskedFor(t *testing.T) {
	client := newClient(option(Versions, []any{}))
	if _, err := New(client).Items(t.Context(), Versions); err != nil {
		t.Fatal(err)
	}
	actions := client.Actions()
	if len(actions) != 1 {
		t.Fatalf("%d requests for one source", len(actions))
	}
	list := actions[0].(clienttesting.ListAction)
	if got := list.GetListRestrictions().Fields.String(); got != "metadata.name="+Versions || list.GetNamespace() != "" {
		t.Errorf("asked for %q in namespace %q", got, list.GetNamespace())
	}
}

// Guards: that no source is not an empty one.
func TestASourceThatIsNotThereIsAnError(t *testing.T) {
	items, err := New(newClient(option(Versions, []any{}))).Items(t.Context(), "gpu")
	if err == nil || !strings.Contains(err.Error(), "gpu") {
		t.Errorf("%v %v", items, err)
	}
}

// Guards: that errors are wrapped, and say what was asked for.
func TestAnErrorOfTheServerIsHandedOn(t *testing.T) {
	client, unavailable := newClient(), errors.New("the sources have not been read yet")
	client.PrependReactor("list", "options", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, unavailable })
	if items, err := New(client).Items(t.Context(), Versions); !errors.Is(err, unavailable) || !strings.Contains(err.Error(), Versions) {
		t.Errorf("%v %v", items, err)
	}
}

// Guards: that what cannot be read is not an empty offer.
func TestItemsOfAnotherShapeAreAnError(t *testing.T) {
	items, err := New(newClient(option(Versions, "v1.13.6"))).Items(t.Context(), Versions)
	if err == nil || !strings.Contains(err.Error(), "cozy-public/workerimage-version") {
		t.Errorf("%v %v", items, err)
	}
}

// The aggregated API server of the platform declares its items like this.
type platformItem struct {
	Value       string `json:"value"`
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
	Default     bool   `json:"default,omitempty"`
}

// Guards: the names, types and order of the fields of Item.
func TestAnItemConvertsToThatOfThePlatform(t *testing.T) {
	got := platformItem(Item{Value: "v", Label: "l", Description: "d", Default: true})
	if want := (platformItem{"v", "l", "d", true}); got != want {
		t.Errorf("%v", got)
	}
}

// Guards: the fields that a form reads, and those that are left out.
func TestAnItemIsWrittenAsFormsReadIt(t *testing.T) {
	for _, test := range []struct {
		item Item
		want string
	}{
		{Item{}, `{"value":""}`},
		{Item{Value: "v", Label: "l", Description: "d", Default: true}, `{"value":"v","label":"l","description":"d","default":true}`},
	} {
		if got, err := json.Marshal(test.item); err != nil || string(got) != test.want {
			t.Errorf("%+v is written %s, %v", test.item, got, err)
		}
	}
}

// Guards: the names of the sources, which the package says by itself so that importers get none of this module.
func TestTheSourcesAreThoseThatAreServed(t *testing.T) {
	for source, served := range map[string]string{
		Images: projection.OptionImages, Schematics: projection.OptionSchematics, Versions: projection.OptionVersions,
	} {
		if source != served {
			t.Errorf("%s is served as %s", source, served)
		}
	}
}

// Guards: what the package imports.
func TestAnImporterGetsNoServer(t *testing.T) {
	own, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range own.Imports {
		first, _, _ := strings.Cut(path, "/")
		isStandard := !strings.Contains(first, ".")
		if !isStandard && !strings.HasPrefix(path, "k8s.io/apimachinery/") && !strings.HasPrefix(path, "k8s.io/client-go/") {
			t.Errorf("who imports this package gets %s as well", path)
		}
	}
	if len(own.Imports) == 0 {
		t.Error("no import was looked at")
	}
}
