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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
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
		if !f.source("catalog").Malformed {
			t.Error("its health does not say so")
		}
		f.configMaps.put(catalogObject(declaresA))
		f.expectDeclared("it is one again", goldA)
		if f.source("catalog").Malformed {
			t.Error("its health does not say so")
		}
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

func TestAPoolChangesItsImageAndItsEntry(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.pools.put(poolObject("tenant-b", poolA, imageID(goldA)))
		f.expect("a second pool", goldA+" Ready")
		f.expectEntries("a second pool", goldA+" Ready")
		if image, entry := f.out.image(t, goldA), f.out.entry(t, goldA); !cmp.Equal(image.Status.Pools, entry.Status.Pools) || entry.Status.PoolCount != 2 {
			t.Errorf("the image has %d pools and the entry %d", image.Status.PoolCount, entry.Status.PoolCount)
		}
	})
}

func TestAnEntryComesAndGoesWithTheCatalogAndThePools(t *testing.T) {
	pool := poolObject("tenant-a", poolA, imageID(goldA))
	run(t, func(f *fixture) {
		f.configMaps.put(catalogObject(declaresA))
		f.start()
		f.expectEntries("declared", goldA+" Available")
		f.pools.put(pool)
		f.expectEntries("a pool asks for it", goldA+" Missing")
		f.configMaps.put(catalogObject(""))
		f.expectEntries("the pool alone", goldA+" Missing")
		f.dataVolumes.put(goldenObject(goldA, phase("Pending")))
		f.expectEntries("it is made", goldA+" Pending")
		f.dataVolumes.remove(goldenObject(goldA))
		f.expectEntries("it is gone", goldA+" Missing")
		f.pools.remove(pool)
		f.expectEntries("nobody names it", goldA+" gone")
		if len(f.worker.entries.published) != 0 {
			t.Errorf("it is remembered: %v", f.worker.entries.published)
		}
		f.pass(2 * publishInterval)
		f.expectEntries("nothing is left to say")
	})
}

func TestAnImageOutlivesItsEntry(t *testing.T) {
	run(t, func(f *fixture) {
		f.configMaps.put(catalogObject(declaresA))
		f.startReady()
		f.pools.remove(poolObject("tenant-a", poolA, imageID(goldA)))
		f.pass(publishInterval)
		if got := f.condition(goldA, images.ConditionCatalogSynced); got != "False Drift" {
			t.Errorf("while it is declared: CatalogSynced is %s", got)
		}
		f.published()
		f.out.takeEntries()
		f.configMaps.remove(catalogObject(""))
		f.expect("the catalog is gone", goldA+" Ready")
		f.expectEntries("the catalog is gone", goldA+" gone")
		if got := f.condition(goldA, images.ConditionCatalogSynced); got != "False NotDeclared" {
			t.Errorf("when it is not: CatalogSynced is %s", got)
		}
	})
}

func TestFurtherChangesOfAnEntryWaitForTheEndOfTheSecond(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.pools.put(poolObject("tenant-b", poolA, imageID(goldA)))
		f.expectEntries("the first change", goldA+" Ready")
		f.pools.put(poolObject("tenant-c", poolA, imageID(goldA)))
		f.settle()
		f.pools.put(poolObject("tenant-d", poolA, imageID(goldA)))
		f.pass(publishInterval - tick)
		f.expectEntries("further ones")
		f.pass(tick)
		f.expectEntries("the second is over", goldA+" Ready")
		if got := f.out.entry(t, goldA).Status.PoolCount; got != 4 {
			t.Errorf("the last state was dropped for %d pools", got)
		}
	})
}

func TestAnAnswerOfAnEntryDoesNotWait(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.pools.put(poolObject("tenant-b", poolA, imageID(goldA)))
		f.settle()
		f.out.takeEntries()
		f.configMaps.put(catalogObject(declaresA))
		f.expectEntries("it is declared within the second", goldA+" Ready")
	})
}

func TestSomebodyWaitsForThePhaseAndForAnswersOfAnEntry(t *testing.T) {
	from := &images.CatalogEntry{Status: images.CatalogEntryStatus{
		Phase:      images.CatalogEntryAvailable,
		Conditions: []metav1.Condition{{Type: images.ConditionValid, Status: metav1.ConditionTrue, Reason: "Declared"}},
	}}
	changes := map[string]struct {
		change func(*images.CatalogEntry)
		want   bool
	}{
		"nothing":                 {change: func(*images.CatalogEntry) {}},
		"a pool more":             {change: func(e *images.CatalogEntry) { e.Status.PoolCount++ }},
		"the phase":               {change: func(e *images.CatalogEntry) { e.Status.Phase = images.CatalogEntryMissing }, want: true},
		"an answer":               {change: func(e *images.CatalogEntry) { e.Status.Conditions[0].Status = metav1.ConditionFalse }, want: true},
		"the reason of an answer": {change: func(e *images.CatalogEntry) { e.Status.Conditions[0].Reason = "Rejected" }, want: true},
	}
	for what, tc := range changes {
		to := from.DeepCopy()
		tc.change(to)
		if got := urgentEntry(from, to); got != tc.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	if !urgentEntry(nil, from) || !urgentEntry(from, nil) {
		t.Error("that it comes or goes is not waited for")
	}
}

func TestAnImageThatChangesAloneLeavesItsEntry(t *testing.T) {
	run(t, func(f *fixture) {
		f.configMaps.put(catalogObject(declaresA))
		f.importing("1%")
		f.start()
		f.pass(publishInterval)
		f.out.takeEntries()
		f.importing("2%")
		f.pass(2 * publishInterval)
		f.expectEntries("the import goes on")
	})
}

func TestWhatIsRefusedOfAnEntryIsPublishedLater(t *testing.T) {
	run(t, func(f *fixture) {
		f.start()
		f.out.refuse(errors.New("no room"))
		f.configMaps.put(catalogObject(declaresA))
		f.pass(5 * publishInterval)
		f.expectEntries("while it refuses")
		f.out.refuse(nil)
		f.pass(publishInterval)
		f.expectEntries("when it does not", goldA+" Available")
	})
}

func TestEntriesArePublishedBeforeItIsReady(t *testing.T) {
	run(t, func(f *fixture) {
		f.configMaps.blocked = make(chan struct{})
		f.configMaps.put(catalogObject(declaresA))
		f.start()
		f.pass(time.Minute)
		if f.out.isReady() {
			t.Error("ready before the catalog has answered")
		}
		close(f.configMaps.blocked)
		f.expectEntries("when it has", goldA+" Available")
		if !f.out.isReady() {
			t.Error("not ready although all is published")
		}
	})
}

func TestACatalogThatCannotBeReadIsUnknownAndItsEntriesStay(t *testing.T) {
	run(t, func(f *fixture) {
		f.configMaps.put(catalogObject(declaresA))
		f.startReady()
		f.configMaps.fail(errForbidden)
		f.pass(time.Minute)
		if got := f.condition(goldA, images.ConditionCatalogSynced); got != "Unknown SourceNotReadable" {
			t.Errorf("CatalogSynced is %s", got)
		}
		entry := f.out.entry(t, goldA)
		if !entry.Status.Declared || entry.Spec.Storage != "6Gi" {
			t.Errorf("the entry forgot what it was: %+v", entry)
		}
		if !f.out.isReady() {
			t.Error("a catalog that cannot be read keeps everything else away")
		}
		f.configMaps.recover()
		f.pass(foundWithin)
		if got := f.condition(goldA, images.ConditionCatalogSynced); got != "False Drift" {
			t.Errorf("when it can be read: CatalogSynced is %s", got)
		}
	})
}

func TestWithoutAnyGoodCatalogNobodyKnows(t *testing.T) {
	run(t, func(f *fixture) {
		f.configMaps.put(catalogObject(noCatalog))
		f.startReady()
		if got := f.condition(goldA, images.ConditionCatalogSynced); got != "Unknown SourceNotReadable" || f.CatalogReadable() {
			t.Errorf("CatalogSynced is %s, readable: %t", got, f.CatalogReadable())
		}
		f.configMaps.put(catalogObject(declaresA))
		f.settle()
		if got := f.condition(goldA, images.ConditionCatalogSynced); got != "False Drift" || !f.CatalogReadable() {
			t.Errorf("when there is one: CatalogSynced is %s, readable: %t", got, f.CatalogReadable())
		}
		f.configMaps.put(catalogObject(noCatalog))
		f.settle()
		if got := f.condition(goldA, images.ConditionCatalogSynced); got != "False Drift" || !f.CatalogReadable() {
			t.Errorf("the last good one is in force: CatalogSynced is %s, readable: %t", got, f.CatalogReadable())
		}
	})
}

func TestTheCatalogIsReportedOnceForEachContent(t *testing.T) {
	run(t, func(f *fixture) {
		expect := func(why string, want ...string) {
			t.Helper()
			f.settle()
			if diff := cmp.Diff(want, f.out.takeReports(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", why, diff)
			}
		}
		expect("before it was read")
		f.start()
		expect("absent", "there: false, a catalog: true, entries: 0, rejected: 0")
		f.configMaps.put(catalogObject(declaresA))
		expect("there", "there: true, a catalog: true, entries: 1, rejected: 0")
		f.configMaps.put(catalogObject("# written in another way\n" + declaresA))
		expect("the same")
		f.configMaps.expireWatches()
		f.pass(foundWithin)
		expect("listed again")
		f.configMaps.put(catalogObject("images: [{schematicID: aaa, version: v1}]"))
		expect("rejected", "there: true, a catalog: true, entries: 0, rejected: 1")
		f.configMaps.put(catalogObject(noCatalog))
		expect("none", "there: true, a catalog: false, entries: 0, rejected: 1")
		f.configMaps.remove(catalogObject(""))
		expect("gone", "there: false, a catalog: true, entries: 0, rejected: 0")
	})
}

func TestTheCatalogIsReportedAlthoughGoldensCannotBeRead(t *testing.T) {
	run(t, func(f *fixture) {
		f.dataVolumes.fail(errAbsent)
		f.configMaps.put(catalogObject(declaresA))
		f.start()
		if got := f.out.takeReports(); len(got) != 1 {
			t.Errorf("reports %v", got)
		}
	})
}
