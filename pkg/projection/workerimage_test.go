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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

var (
	id     = golden.ID{SchematicID: "aaa", Version: "v1.13.6"}
	made   = metav1.NewTime(time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC))
	filled = metav1.NewTime(made.Add(time.Minute))
	now    = metav1.NewTime(made.Add(time.Hour))
)

// ready is an image that is complete and that nobody uses.
func ready() Image {
	return Image{
		ID: id,
		DataVolume: &golden.DataVolume{
			Namespace: "cozy-public", Name: id.Name(), UID: "dv-uid", Created: made,
			Template: golden.TemplateStorage, StorageClass: ptr.To("replicated"), Size: "6144Mi",
			URL:   "https://factory.talos.dev/image/aaa/v1.13.6/openstack-amd64.raw.xz",
			Phase: "Succeeded", Progress: "100.0%",
			Ready: golden.Condition{Status: "True", LastTransition: filled},
		},
		Claim: &golden.Claim{
			Namespace: "cozy-public", Name: id.Name(), UID: "claim-uid", Created: made, Owner: "dv-uid", CreatedFor: "dv-uid",
			Phase: corev1.ClaimBound, StorageClass: ptr.To("replicated"), Requested: "6Gi", Capacity: "6817408407", Populated: true,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, VolumeMode: corev1.PersistentVolumeBlock,
		},
		Classes:  storageclass.Classes{{Name: "replicated", VirtDefault: true}, {Name: "local"}},
		Profiles: storageclass.Profiles{Strategies: map[string]string{"replicated": "csi-clone", "local": "copy"}},
		Sources:  Sources{DataVolumes: true, Claims: true, StorageClasses: true, StorageProfiles: true, Pools: true, Catalog: true},
	}
}

func consumer(namespace, name string) pool.Pool {
	return pool.Pool{
		Namespace: namespace, Name: name, DiskPool: "kubernetes-" + name, StorageClass: "replicated", DiskSize: "20Gi",
		Selection: pool.Selection{Consumes: true, Image: id},
	}
}

func TestWorkerImageOfACompleteGolden(t *testing.T) {
	in := ready()
	in.Pools = []pool.Pool{consumer("tenant-b", "k1-md0"), consumer("tenant-a", "k1-md0")}
	in.Disks = []PoolDisks{{Namespace: "tenant-a", Pool: "kubernetes-k1-md0", Cloned: 3, Cloning: 1, InFlight: 1, StorageClass: "replicated"}}

	got := WorkerImage(in, nil, now)
	got.Status.Conditions = nil
	if got.UID == "" || got.UID == in.DataVolume.UID || got.UID == in.Claim.UID {
		t.Errorf("uid %q is missing or an input's", got.UID)
	}
	match := func(namespace string, disks images.DiskCounts) images.PoolStatus {
		return images.PoolStatus{
			Namespace: namespace, Name: "k1-md0", DiskSize: "20Gi",
			StorageClass: &images.PoolStorageClass{Name: "replicated", From: images.StorageClassDeclared},
			Disks:        disks, Cloneable: metav1.ConditionTrue, Reason: pool.ReasonStorageClassMatch,
		}
	}
	want := &images.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{Name: id.Name(), UID: got.UID, CreationTimestamp: made, Generation: 1},
		Spec:       images.WorkerImageSpec{SchematicID: "aaa", Version: "v1.13.6"},
		Status: images.WorkerImageStatus{
			ObservedGeneration: 1,
			Phase:              images.WorkerImageReady,
			Progress:           ptr.To[int32](100),
			DataVolume:         &images.DataVolumeStatus{Namespace: "cozy-public", Name: id.Name(), Phase: "Succeeded"},
			Claim:              &images.ClaimStatus{Name: id.Name(), Phase: corev1.ClaimBound},
			Source:             &images.ImageSource{URL: in.DataVolume.URL},
			Storage: &images.StorageStatus{
				Requested: "6144Mi", Capacity: "6817408407",
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, VolumeMode: corev1.PersistentVolumeBlock,
			},
			StorageClass:  &images.StorageClassStatus{Declared: ptr.To("replicated"), Bound: ptr.To("replicated"), Effective: "replicated"},
			CloneStrategy: "csi-clone",
			Catalog:       &images.CatalogStatus{},
			Pools:         []images.PoolStatus{match("tenant-a", images.DiskCounts{Cloned: 3, Cloning: 1}), match("tenant-b", images.DiskCounts{})},
			PoolCount:     2,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected object (-want +got):\n%s", diff)
	}
}

func TestNoGoldenNoWorkerImage(t *testing.T) {
	in := ready()
	in.DataVolume, in.Claim = nil, nil
	in.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}
	if got := WorkerImage(in, nil, now); got != nil {
		t.Errorf("got %v for an image that only a pool names", got)
	}
}

func TestConditions(t *testing.T) {
	type answer struct {
		Status metav1.ConditionStatus
		Reason string
	}
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for _, test := range []struct {
		name                    string
		change                  func(*Image)
		ready, inUse, deletable answer
	}{
		{
			name:      "an image that nobody uses can be deleted",
			change:    func(*Image) {},
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{no, ReasonNotInUse},
			deletable: answer{yes, ReasonNotInUse},
		},
		{
			name:      "a pool without workers uses its image",
			change:    func(in *Image) { in.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")} },
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{yes, ReasonDeclaredByPools},
			deletable: answer{no, ReasonInUse},
		},
		{
			name:      "a clone in flight without a pool uses its image",
			change:    func(in *Image) { in.Clones = 1 },
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{yes, ReasonCloneInFlight},
			deletable: answer{no, ReasonInUse},
		},
		{
			name: "a worker disk in flight uses its image",
			change: func(in *Image) {
				in.Disks = []PoolDisks{{Namespace: "tenant-a", Pool: "kubernetes-k1-md0", Cloning: 1, InFlight: 1}}
			},
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{yes, ReasonCloneInFlight},
			deletable: answer{no, ReasonInUse},
		},
		{
			name: "a disk that is complete does not use the image",
			change: func(in *Image) {
				in.Disks = []PoolDisks{{Namespace: "tenant-a", Pool: "kubernetes-k1-md0", Cloned: 1, StorageClass: "replicated"}}
			},
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{no, ReasonNotInUse},
			deletable: answer{yes, ReasonNotInUse},
		},
		{
			name:      "while pools cannot be read nobody knows whether the image is used",
			change:    func(in *Image) { in.Sources.Pools = false },
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{unknown, ReasonSourceNotReadable},
			deletable: answer{no, ReasonSourceNotReadable},
		},
		{
			name:      "pools that were read before do not count while they cannot be read",
			change:    func(in *Image) { in.Pools, in.Sources.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}, false },
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{unknown, ReasonSourceNotReadable},
			deletable: answer{no, ReasonSourceNotReadable},
		},
		{
			name:      "a clone in flight counts although pools cannot be read",
			change:    func(in *Image) { in.Clones, in.Sources.Pools = 1, false },
			ready:     answer{yes, golden.ReasonReady},
			inUse:     answer{yes, ReasonCloneInFlight},
			deletable: answer{no, ReasonInUse},
		},
		{
			name:      "a golden is never Ready while DataVolumes cannot be read",
			change:    func(in *Image) { in.Sources.DataVolumes = false },
			ready:     answer{unknown, ReasonSourceNotReadable},
			inUse:     answer{unknown, ReasonSourceNotReadable},
			deletable: answer{no, ReasonSourceNotReadable},
		},
		{
			name:      "a golden is never Ready while claims cannot be read",
			change:    func(in *Image) { in.Sources.Claims = false },
			ready:     answer{unknown, ReasonSourceNotReadable},
			inUse:     answer{no, ReasonNotInUse},
			deletable: answer{no, ReasonSourceNotReadable},
		},
		{
			name:      "deleting a golden that is being deleted does no harm",
			change:    func(in *Image) { in.DataVolume = clone(in.DataVolume); in.DataVolume.Deleting = true },
			ready:     answer{no, golden.ReasonTerminating},
			inUse:     answer{no, ReasonNotInUse},
			deletable: answer{yes, ReasonTerminating},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := ready()
			test.change(&in)
			image := WorkerImage(in, nil, now)
			for kind, want := range map[string]answer{
				images.ConditionReady: test.ready, images.ConditionInUse: test.inUse, images.ConditionDeletable: test.deletable,
			} {
				c := meta.FindStatusCondition(image.Status.Conditions, kind)
				if c == nil {
					t.Errorf("no condition %s", kind)
					continue
				}
				if got := (answer{c.Status, c.Reason}); got != want {
					t.Errorf("%s is %v, want %v", kind, got, want)
				}
				if c.Status != yes && c.Message == "" {
					t.Errorf("%s is %s and does not say why", kind, c.Status)
				}
			}
			if (image.Status.Phase == images.WorkerImageReady) != (test.ready.Status == yes) {
				t.Errorf("phase %s and condition Ready %s disagree", image.Status.Phase, test.ready.Status)
			}
		})
	}
}

func TestStalledIsThereWhileItIsTrue(t *testing.T) {
	lost := ready()
	lost.Claim = clone(lost.Claim)
	lost.Claim.Phase = corev1.ClaimLost
	unreadable := lost
	unreadable.Sources.Claims = false
	stalled := metav1.Condition{
		Type: images.ConditionStalled, Status: metav1.ConditionTrue, ObservedGeneration: generation, LastTransitionTime: now, Reason: golden.ReasonClaimLost,
	}
	for _, test := range []struct {
		name string
		in   Image
		want *metav1.Condition
	}{
		{"an image that is ready has none", ready(), nil},
		{"an image that somebody must see to says why, as Ready does", lost, &stalled},
		{"an image of which nobody knows has none", unreadable, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			conditions := WorkerImage(test.in, WorkerImage(ready(), nil, made), now).Status.Conditions
			got := meta.FindStatusCondition(conditions, images.ConditionStalled)
			if test.want != nil {
				test.want.Message = meta.FindStatusCondition(conditions, images.ConditionReady).Message
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected condition (-want +got):\n%s", diff)
			}
		})
	}
}

func clone[T any](v *T) *T {
	c := *v
	return &c
}

func TestTransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	first := WorkerImage(ready(), nil, now)
	for kind, want := range map[string]metav1.Time{
		images.ConditionReady: filled, images.ConditionInUse: made, images.ConditionDeletable: made,
	} {
		if got := meta.FindStatusCondition(first.Status.Conditions, kind).LastTransitionTime; got != want {
			t.Errorf("%s of an object not seen before changed at %s, want %s", kind, got, want)
		}
	}

	used := ready()
	used.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}
	later := metav1.NewTime(now.Add(time.Hour))
	second := WorkerImage(used, first, later)
	for kind, want := range map[string]metav1.Time{
		images.ConditionReady: filled, images.ConditionInUse: later, images.ConditionDeletable: later,
	} {
		if got := meta.FindStatusCondition(second.Status.Conditions, kind).LastTransitionTime; got != want {
			t.Errorf("%s changed at %s, want %s", kind, got, want)
		}
	}

	recreated := used
	recreated.DataVolume = clone(used.DataVolume)
	recreated.DataVolume.UID, recreated.DataVolume.Created = "another", later
	third := WorkerImage(recreated, second, later)
	if third.UID == second.UID {
		t.Error("a golden that was made again kept its uid")
	}
	if got := meta.FindStatusCondition(third.Status.Conditions, images.ConditionInUse).LastTransitionTime; got != later {
		t.Errorf("InUse of a golden that was made again changed at %s, want its own creation %s", got, later)
	}
}

func TestDisksThatMatchNoPoolStandUnderTheirAnnotation(t *testing.T) {
	in := ready()
	in.Pools = []pool.Pool{consumer("tenant-a", "k1-md0")}
	in.Disks = []PoolDisks{
		{Namespace: "tenant-a", Pool: "kubernetes-k1-md0-gpu", Cloned: 2, StorageClass: "local"},
		{Namespace: "tenant-b", Pool: "kubernetes-k1-md0", Cloned: 1},
	}
	got := WorkerImage(in, nil, now).Status
	names := make([]string, 0, len(got.Pools))
	for _, p := range got.Pools {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	if diff := cmp.Diff([]string{"tenant-a/k1-md0", "tenant-a/kubernetes-k1-md0-gpu", "tenant-b/kubernetes-k1-md0"}, names); diff != "" {
		t.Fatalf("unexpected pools (-want +got):\n%s", diff)
	}
	if got.Pools[0].Disks != (images.DiskCounts{}) {
		t.Errorf("pool k1-md0 has the disks %v of another whose name begins alike, or of another namespace", got.Pools[0].Disks)
	}
	if gpu := got.Pools[1]; gpu.Disks.Cloned != 2 || gpu.Cloneable != metav1.ConditionUnknown || gpu.Reason != ReasonNotSelected || gpu.Message == "" {
		t.Errorf("disks without a pool: %+v", gpu)
	}
}

func TestAPoolWithoutAClassKeepsTheClassOfItsDisks(t *testing.T) {
	in := ready()
	in.Classes = storageclass.Classes{{Name: "replicated"}, {Name: "nvme", VirtDefault: true}}
	veteran, newcomer := consumer("tenant-a", "k1-md0"), consumer("tenant-a", "k1-md1")
	veteran.StorageClass, newcomer.StorageClass = "", ""
	in.Pools = []pool.Pool{veteran, newcomer}
	in.Disks = []PoolDisks{{Namespace: "tenant-a", Pool: veteran.DiskPool, Cloned: 1, StorageClass: "replicated"}}

	pools := WorkerImage(in, nil, now).Status.Pools
	if got := pools[0]; *got.StorageClass != (images.PoolStorageClass{Name: "replicated", From: images.StorageClassClonedDisk}) || got.Cloneable != metav1.ConditionTrue {
		t.Errorf("the pool with a disk: %+v %+v", got, *got.StorageClass)
	}
	if got := pools[1]; *got.StorageClass != (images.PoolStorageClass{Name: "nvme", From: images.StorageClassDefault}) || got.Cloneable != metav1.ConditionFalse {
		t.Errorf("the pool without a disk: %+v %+v", got, *got.StorageClass)
	}
}

func TestAnAnswerFromADefaultIsUnknownWhileClassesCannotBeRead(t *testing.T) {
	in := ready()
	in.DataVolume, in.Claim = clone(in.DataVolume), nil
	in.DataVolume.StorageClass, in.DataVolume.Phase = nil, "Pending"
	p := consumer("tenant-a", "k1-md0")
	p.StorageClass = ""
	in.Pools = []pool.Pool{p}
	in.Sources.StorageClasses = false

	got := WorkerImage(in, nil, now).Status
	if got.StorageClass != nil {
		t.Errorf("class %+v is predicted from classes that cannot be read", got.StorageClass)
	}
	if v := got.Pools[0]; v.Cloneable != metav1.ConditionUnknown || v.Reason != pool.ReasonStorageClassUnknown {
		t.Errorf("verdict %s %s", v.Cloneable, v.Reason)
	}
}

func TestFindingsAreReportedInTheReadyMessage(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Image)
		want   string
	}{
		{"an annotated schematic that disagrees with the name", func(in *Image) { in.DataVolume.Annotated.SchematicID = "bbb" }, `schematic "bbb"`},
		{"an annotated version that disagrees with the name", func(in *Image) { in.DataVolume.Annotated.Version = "v9.9.9" }, `version "v9.9.9"`},
		{"a field that cannot be read", func(in *Image) { in.DataVolume.Malformed = []string{"status.restartCount"} }, "status.restartCount"},
		{"a DataVolume that is gone", func(in *Image) { in.DataVolume = nil }, "only the claim is left"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := ready()
			in.DataVolume = clone(in.DataVolume)
			test.change(&in)
			image := WorkerImage(in, nil, now)
			if image.Spec != (images.WorkerImageSpec{SchematicID: "aaa", Version: "v1.13.6"}) {
				t.Errorf("the name no longer decides the identity: %+v", image.Spec)
			}
			if c := meta.FindStatusCondition(image.Status.Conditions, images.ConditionReady); !strings.Contains(c.Message, test.want) {
				t.Errorf("message %q does not say %q", c.Message, test.want)
			}
		})
	}
}

func TestTheOrderOfTheInputsDoesNotMatter(t *testing.T) {
	in := ready()
	in.Pools = []pool.Pool{consumer("tenant-c", "b"), consumer("tenant-a", "b"), consumer("tenant-a", "a")}
	in.Disks = []PoolDisks{{Namespace: "x", Pool: "p"}, {Namespace: "tenant-a", Pool: "kubernetes-b", Cloned: 1}, {Namespace: "a", Pool: "p"}}
	in.Classes = storageclass.Classes{{Name: "b", VirtDefault: true}, {Name: "a", VirtDefault: true}}
	want := WorkerImage(in, nil, now)

	reversed := in
	reversed.Pools, reversed.Disks, reversed.Classes = slices.Clone(in.Pools), slices.Clone(in.Disks), slices.Clone(in.Classes)
	slices.Reverse(reversed.Pools)
	slices.Reverse(reversed.Disks)
	slices.Reverse(reversed.Classes)
	if diff := cmp.Diff(want, WorkerImage(reversed, nil, now)); diff != "" {
		t.Errorf("the other way round (-want +got):\n%s", diff)
	}
}
