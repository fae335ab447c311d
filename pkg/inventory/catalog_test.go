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

package inventory

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
)

const (
	declaresA     = "images: [{schematicID: aaa, version: v1.13.6}]"
	declaresAAndB = "images: [{schematicID: aaa, version: v1.13.6}, {schematicID: bbb, version: v1.13.6}]"
	noCatalog     = "images: {"
)

// declared are the names that the catalog in force declares.
func (f *fixture) declared() []string {
	f.settle()
	var names []string
	for _, entry := range f.Catalog().Entries {
		names = append(names, entry.Name())
	}
	return names
}

func (f *fixture) expectDeclared(why string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.declared(), cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("%s: %s", why, diff)
	}
}

func TestTheCatalogInForceIsTheLastThatCouldBeRead(t *testing.T) {
	run(t, func(f *fixture) {
		f.expectDeclared("before anything was read")
		f.configMaps.put(catalogObject(declaresAAndB))
		f.start()
		f.expectDeclared("it is there", goldA, goldB)
		f.configMaps.put(catalogObject(noCatalog))
		f.expectDeclared("it is none", goldA, goldB)
		f.configMaps.put(catalogObject(declaresA))
		f.expectDeclared("it is one again", goldA)
		f.configMaps.fail(errors.New("forbidden"))
		f.pass(time.Minute)
		f.expectDeclared("it cannot be read", goldA)
		if f.CatalogReadable() {
			t.Error("a catalog that cannot be read counts as readable")
		}
	})
}

func TestACatalogThatIsNotThereIsEmpty(t *testing.T) {
	withoutKey := catalogObject("")
	withoutKey.Data = map[string]string{"another.yaml": declaresA}
	for name, absent := range map[string]func(*fixture){
		"no ConfigMap":            func(f *fixture) { f.configMaps.remove(catalogObject("")) },
		"a ConfigMap without key": func(f *fixture) { f.configMaps.put(withoutKey) },
		"an empty document":       func(f *fixture) { f.configMaps.put(catalogObject("")) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *fixture) {
				f.configMaps.put(catalogObject(declaresA))
				f.start()
				f.expectDeclared("it is there", goldA)
				absent(f)
				f.expectDeclared("it is gone")
				if !f.CatalogReadable() {
					t.Error("it counts as not readable")
				}
			})
		})
	}
}

func TestNoOtherConfigMapIsTheCatalog(t *testing.T) {
	run(t, func(f *fixture) {
		elsewhere, otherName := catalogObject(declaresA), catalogObject(declaresA)
		elsewhere.Namespace, otherName.Name = "tenant-a", "another"
		f.configMaps.put(elsewhere, otherName)
		f.start()
		f.expectDeclared("two that look alike")
	})
}

func TestBinaryDataIsReadAsWell(t *testing.T) {
	run(t, func(f *fixture) {
		f.configMaps.put(&corev1.ConfigMap{ObjectMeta: catalogObject("").ObjectMeta, BinaryData: map[string][]byte{"catalog.yaml": []byte(declaresA)}})
		f.start()
		f.expectDeclared("it is there", goldA)
	})
}

func TestClassesAreReadableWhileTheirSourceIs(t *testing.T) {
	run(t, func(f *fixture) {
		f.classes.put(classObject("replicated"), classObject("local"))
		if _, readable := f.Classes(); readable {
			t.Error("readable before anything was read")
		}
		f.start()
		classes, readable := f.Classes()
		if !readable || len(classes) != 2 || classes[0].Name != "local" {
			t.Errorf("got %v, readable: %t", classes, readable)
		}
		f.classes.fail(errors.New("forbidden"))
		f.pass(time.Minute)
		if classes, readable := f.Classes(); readable || len(classes) != 2 {
			t.Errorf("while they cannot be read: %v, readable: %t", classes, readable)
		}
	})
}
