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

package projection

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// missing is what is known about an image that is not there.
func missing() Image {
	in := ready()
	in.DataVolume, in.Claim = nil, nil
	return in
}

// entryOf is the catalog entry that the inputs amount to.
func entryOf(in Image) *images.CatalogEntry {
	return CatalogEntry(Entry{Image: in, WorkerImage: WorkerImage(in, nil, now)}, nil, now)
}

func TestCatalogEntryOfADeclaredImage(t *testing.T) {
	in := missing()
	in.Catalog = declared()
	got := entryOf(in)
	want := &images.CatalogEntry{
		ObjectMeta: metav1.ObjectMeta{Name: id.Name(), UID: got.UID},
		Spec: images.CatalogEntrySpec{
			SchematicID: "aaa", Version: "v1.13.6",
			ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi", StorageClassName: "replicated",
		},
		Status: images.CatalogEntryStatus{
			Declared: true,
			Phase:    images.CatalogEntryAvailable,
			Pools:    []images.PoolStatus{},
			Conditions: []metav1.Condition{
				{Type: images.ConditionValid, Status: metav1.ConditionTrue, Reason: ReasonDeclared, LastTransitionTime: now},
				{Type: images.ConditionMaterialized, Status: metav1.ConditionFalse, Reason: ReasonNotCreated, LastTransitionTime: now,
					Message: "Create the WorkerImage to import it."},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected object (-want +got):\n%s", diff)
	}
}

func TestCatalogEntries(t *testing.T) {
	type answer struct {
		Status metav1.ConditionStatus
		Reason string
	}
	type outcome struct {
		Declared, Materialized bool
		Phase                  images.CatalogEntryPhase
		Pools                  int32
		Valid, Created         answer
	}
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	asked := []pool.Pool{consumer("tenant-a", "k1-md0"), consumer("tenant-b", "k1-md0")}
	rejections := []catalog.Rejection{rejection("images[3].storage")}

	for _, test := range []struct {
		name  string
		given func() Image
		want  *outcome
		says  []string
	}{
		{
			name:  "an image that nobody declares or asks for has no entry",
			given: missing,
		},
		{
			name:  "nor has one that is there",
			given: ready,
		},
		{
			name:  "a declared image that is not there is Available",
			given: func() Image { in := missing(); in.Catalog = declared(); return in },
			want: &outcome{Declared: true, Phase: images.CatalogEntryAvailable,
				Valid: answer{yes, ReasonDeclared}, Created: answer{no, ReasonNotCreated}},
			says: []string{"Create the WorkerImage"},
		},
		{
			name:  "a declared image that is there has the phase of the WorkerImage",
			given: func() Image { in := ready(); in.Catalog, in.Pools = declared(), asked; return in },
			want: &outcome{Declared: true, Materialized: true, Phase: "Ready", Pools: 2,
				Valid: answer{yes, ReasonDeclared}, Created: answer{yes, ReasonCreated}},
		},
		{
			name:  "a declared image that pools ask for and that is not there is Missing",
			given: func() Image { in := missing(); in.Catalog, in.Pools = declared(), asked; return in },
			want: &outcome{Declared: true, Phase: images.CatalogEntryMissing, Pools: 2,
				Valid: answer{yes, ReasonDeclared}, Created: answer{no, ReasonNotCreated}},
			says: []string{"Create the WorkerImage"},
		},
		{
			name:  "an image that pools ask for and nobody declares is Missing",
			given: func() Image { in := missing(); in.Pools = asked; return in },
			want: &outcome{Phase: images.CatalogEntryMissing, Pools: 2,
				Valid: answer{no, ReasonNotDeclared}, Created: answer{no, ReasonNotCreated}},
			says: []string{"At least one pool asks for an image that the catalog does not declare", "when the catalog declares it"},
		},
		{
			name:  "an image that is there and that pools ask for has an entry although nobody declares it",
			given: func() Image { in := ready(); in.Pools = asked; return in },
			want: &outcome{Materialized: true, Phase: "Ready", Pools: 2,
				Valid: answer{no, ReasonNotDeclared}, Created: answer{yes, ReasonCreated}},
		},
		{
			name:  "a rejected entry is Invalid",
			given: func() Image { in := missing(); in.Catalog.Rejections = rejections; return in },
			want: &outcome{Declared: true, Phase: images.CatalogEntryInvalid,
				Valid: answer{no, ReasonRejected}, Created: answer{no, ReasonNotCreated}},
			says: []string{"images[3].storage: is wrong", "Correct the catalog"},
		},
		{
			name:  "a rejected entry that pools ask for is Invalid",
			given: func() Image { in := missing(); in.Catalog.Rejections, in.Pools = rejections, asked; return in },
			want: &outcome{Declared: true, Phase: images.CatalogEntryInvalid, Pools: 2,
				Valid: answer{no, ReasonRejected}, Created: answer{no, ReasonNotCreated}},
		},
		{
			name:  "a rejected entry of an image that is there has its phase",
			given: func() Image { in := ready(); in.Catalog.Rejections = rejections; return in },
			want: &outcome{Declared: true, Materialized: true, Phase: "Ready",
				Valid: answer{no, ReasonRejected}, Created: answer{yes, ReasonCreated}},
		},
		{
			name: "while the catalog cannot be read the entry stays as it was",
			given: func() Image {
				in := missing()
				in.Catalog, in.Sources.Catalog = declared(), false
				return in
			},
			want: &outcome{Declared: true, Phase: images.CatalogEntryAvailable,
				Valid: answer{unknown, ReasonSourceNotReadable}, Created: answer{no, ReasonNotCreated}},
		},
		{
			name: "while claims cannot be read nobody knows whether an image is missing",
			given: func() Image {
				in := missing()
				in.Catalog, in.Pools, in.Sources.Claims = declared(), asked, false
				return in
			},
			want: &outcome{Declared: true, Phase: "Unknown", Pools: 2,
				Valid: answer{yes, ReasonDeclared}, Created: answer{unknown, ReasonSourceNotReadable}},
		},
		{
			name: "while DataVolumes cannot be read an image that was there is Unknown",
			given: func() Image {
				in := ready()
				in.Catalog, in.Sources.DataVolumes = declared(), false
				return in
			},
			want: &outcome{Declared: true, Materialized: true, Phase: "Unknown",
				Valid: answer{yes, ReasonDeclared}, Created: answer{unknown, ReasonSourceNotReadable}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			entry := entryOf(test.given())
			if entry == nil || test.want == nil {
				if entry != nil || test.want != nil {
					t.Errorf("got %v, want %v", entry, test.want)
				}
				return
			}
			s := entry.Status
			got := outcome{Declared: s.Declared, Materialized: s.Materialized, Phase: s.Phase, Pools: s.PoolCount}
			var messages []string
			for i, to := range []*answer{&got.Valid, &got.Created} {
				c := s.Conditions[i]
				*to = answer{c.Status, c.Reason}
				messages = append(messages, c.Message)
				if (c.Status == yes) != (c.Message == "") {
					t.Errorf("%s is %s with the message %q", c.Type, c.Status, c.Message)
				}
			}
			if diff := cmp.Diff(*test.want, got); diff != "" {
				t.Errorf("unexpected entry (-want +got):\n%s", diff)
			}
			if int(s.PoolCount) != len(s.Pools) {
				t.Errorf("%d pools are counted as %d", len(s.Pools), s.PoolCount)
			}
			for _, want := range test.says {
				if text := strings.Join(messages, "\n"); !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}
		})
	}
}

func TestPoolsOfAnEntry(t *testing.T) {
	in := missing()
	invalid := consumer("tenant-a", "k1-both")
	invalid.Selection.Invalid = "it has both"
	undecided := consumer("tenant-a", "k1-md0")
	undecided.StorageClass = ""
	in.Pools = []pool.Pool{undecided, invalid}
	in.Disks = []PoolDisks{
		{Namespace: "tenant-a", Pool: undecided.DiskPool, Cloned: 2, StorageClass: "local"},
		{Namespace: "tenant-b", Pool: "kubernetes-k2-md0", Cloned: 1},
	}

	t.Run("a pool whose image is missing has nothing to clone, and keeps the class of its disks", func(t *testing.T) {
		pools := entryOf(in).Status.Pools
		if len(pools) != 2 {
			t.Fatalf("pools %v, want the two that ask", pools)
		}
		if got := pools[0]; got.Name != "k1-both" || got.Reason != pool.ReasonInvalidSelection {
			t.Errorf("a pool with an invalid selection: %+v", got)
		}
		got := pools[1]
		if got.Name != "k1-md0" || got.Cloneable != metav1.ConditionFalse || got.Reason != pool.ReasonGoldenMissing || got.Disks.Cloned != 2 {
			t.Errorf("a pool with disks: %+v", got)
		}
		if diff := cmp.Diff(&images.PoolStorageClass{Name: "local", From: images.StorageClassClonedDisk}, got.StorageClass); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a pool without disks follows today's default", func(t *testing.T) {
		in := in
		in.Disks = nil
		in.Classes = storageclass.Classes{{Name: "nvme", Default: true}}
		if got := entryOf(in).Status.Pools[1].StorageClass; got.Name != "nvme" {
			t.Errorf("class %+v", got)
		}
	})
	t.Run("while DataVolumes cannot be read nothing is missing", func(t *testing.T) {
		in := in
		in.Sources.DataVolumes = false
		if got := entryOf(in).Status.Pools[1]; got.Cloneable != metav1.ConditionUnknown || got.Reason != pool.ReasonGoldenStateUnknown {
			t.Errorf("verdict %s %s", got.Cloneable, got.Reason)
		}
	})
	t.Run("while pools cannot be read no verdict is given", func(t *testing.T) {
		in := in
		in.Sources.Pools = false
		if got := entryOf(in).Status.Pools[1]; got.Cloneable != metav1.ConditionUnknown || got.Reason != ReasonSourceNotReadable {
			t.Errorf("verdict %s %s", got.Cloneable, got.Reason)
		}
	})
	t.Run("they are those of the image where there is one", func(t *testing.T) {
		there := ready()
		there.Pools, there.Disks = in.Pools, in.Disks
		if diff := cmp.Diff(WorkerImage(there, nil, now).Status.Pools, entryOf(there).Status.Pools); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheUIDOfAnEntryFollowsFromItsName(t *testing.T) {
	in := ready()
	in.Catalog = declared()
	image, entry := WorkerImage(in, nil, now), entryOf(in)
	if entry.UID == "" || entry.UID == image.UID || entry.UID == in.DataVolume.UID {
		t.Errorf("uid %q is missing or another object's", entry.UID)
	}
	again := missing()
	again.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}
	if got := entryOf(again).UID; got != entry.UID {
		t.Errorf("uid %q, and %q of the same name later", entry.UID, got)
	}
	again.ID = golden.ID{SchematicID: "aaa", Version: "v1.13.7"}
	if got := entryOf(again).UID; got == entry.UID {
		t.Errorf("two entries have the uid %q", got)
	}
}

func TestTheTimeOfAConditionOfAnEntryMovesWithItsStatus(t *testing.T) {
	in := missing()
	in.Catalog = declared()
	first := entryOf(in)
	in.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}
	in.Catalog = Declaration{}
	later := metav1.NewTime(now.Add(time.Hour))
	second := CatalogEntry(Entry{Image: in}, first, later)
	if got := second.Status.Conditions[0].LastTransitionTime; got != later {
		t.Errorf("Valid changed at %s, want %s", got, later)
	}
	if got := second.Status.Conditions[1].LastTransitionTime; got != now {
		t.Errorf("Materialized changed at %s, and it did not", got)
	}
}

// Guards: isKnown in CatalogEntry. The times would tell everybody since when a pool has asked.
func TestTheConditionsOfAnEntryBeginWhenEverybodyMayKnowOfIt(t *testing.T) {
	asked := missing()
	asked.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}
	later := metav1.NewTime(now.Add(time.Hour))
	declaredLater, importedLater, askedStill := asked, ready(), asked
	declaredLater.Catalog = declared()
	importedLater.Pools = asked.Pools
	for name, test := range map[string]struct {
		next Image
		want metav1.Time
	}{
		"it is declared":           {declaredLater, later},
		"it is imported":           {importedLater, later},
		"a pool asks for it still": {askedStill, now},
	} {
		t.Run(name, func(t *testing.T) {
			next := CatalogEntry(Entry{Image: test.next, WorkerImage: WorkerImage(test.next, nil, later)}, entryOf(asked), later)
			for _, c := range next.Status.Conditions {
				if c.LastTransitionTime != test.want {
					t.Errorf("%s changed at %s, want %s", c.Type, c.LastTransitionTime, test.want)
				}
			}
		})
	}
}

// Guards: AskedBy, and that the conditions of an entry say nothing of the pools that ask for it.
func TestAnEntryWithFewerPoolsIsWhatItWouldBeIfNoOthersAskedForIt(t *testing.T) {
	a, b := consumer("tenant-a", "k1-md0"), consumer("tenant-b", "k1-md0")
	for what, in := range map[string]Image{"missing": missing(), "there": ready()} {
		for said, declaration := range map[string]Declaration{
			"declared":     declared(),
			"rejected":     {Rejections: []catalog.Rejection{rejection("images[3].storage")}},
			"not declared": {},
		} {
			for source, readable := range map[string]func(*Sources){
				"everything":  func(*Sources) {},
				"no claims":   func(s *Sources) { s.Claims = false },
				"no pools":    func(s *Sources) { s.Pools = false },
				"no catalog":  func(s *Sources) { s.Catalog = false },
				"DataVolumes": func(s *Sources) { s.Claims, s.Pools, s.Catalog = false, false, false },
			} {
				for _, seen := range [][]pool.Pool{nil, {a}} {
					t.Run(strings.Join([]string{what, said, source, strconv.Itoa(len(seen))}, "/"), func(t *testing.T) {
						all, fewer := in, in
						all.Catalog, fewer.Catalog = declaration, declaration
						readable(&all.Sources)
						fewer.Sources = all.Sources
						all.Pools, fewer.Pools = []pool.Pool{a, b}, seen
						got, want := entryOf(all), entryOf(fewer)
						exists := AskedBy(got, got.Status.Pools[:len(seen)])
						if what == "there" && want == nil {
							want = got // everybody sees the image, and that it is in use
						}
						if exists != (want != nil) {
							t.Fatalf("it exists: %t, want %v", exists, want)
						}
						if diff := cmp.Diff(want, got); exists && diff != "" {
							t.Errorf("unexpected entry (-want +got):\n%s", diff)
						}
					})
				}
			}
		}
	}
}

func TestTheOrderOfTheInputsOfAnEntryDoesNotMatter(t *testing.T) {
	in := missing()
	in.Pools = []pool.Pool{consumer("tenant-c", "b"), consumer("tenant-a", "b"), consumer("tenant-a", "a")}
	want := entryOf(in)
	in.Pools = []pool.Pool{in.Pools[2], in.Pools[0], in.Pools[1]}
	if diff := cmp.Diff(want, entryOf(in)); diff != "" {
		t.Errorf("another order (-want +got):\n%s", diff)
	}
}
