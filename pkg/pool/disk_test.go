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

package pool

import (
	"encoding/json"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

const (
	goldenName = "talos-worker-aaa-v1.13.6"
	diskName   = "disk-system-kubernetes-k1-md0-x7k2p"
)

// disk returns a worker disk of tenant-a/k1-md0, with changes to the object.
func disk(changes ...func(map[string]any)) map[string]any {
	content := map[string]any{
		"metadata": map[string]any{
			"namespace": "tenant-a",
			"name":      diskName,
			"annotations": map[string]any{
				goldenAnnotation: goldenName,
				poolAnnotation:   "kubernetes-k1-md0",
			},
		},
		"spec": map[string]any{
			"source":  map[string]any{"pvc": map[string]any{"namespace": "cozy-public", "name": goldenName}},
			"storage": map[string]any{"storageClassName": "replicated"},
		},
	}
	for _, change := range changes {
		change(content)
	}
	return content
}

// set puts a value at a path, through objects that are there.
func set(value any, path ...string) func(map[string]any) {
	return func(content map[string]any) {
		for _, key := range path[:len(path)-1] {
			content = content[key].(map[string]any)
		}
		content[path[len(path)-1]] = value
	}
}

// status sets a phase and the reason of a condition that is False.
func status(phase, conditionType, reason string) func(map[string]any) {
	return set(map[string]any{
		"phase":      phase,
		"conditions": []any{map[string]any{"type": conditionType, "status": "False", "reason": reason}},
	}, "status")
}

func TestDiskFrom(t *testing.T) {
	plain := func(changes ...func(*Disk)) *Disk {
		disk := &Disk{
			Namespace:    "tenant-a",
			Name:         diskName,
			SourceClaim:  goldenName,
			Pool:         "kubernetes-k1-md0",
			State:        DiskCloning,
			InFlight:     true,
			StorageClass: "replicated",
			ClaimName:    diskName,
		}
		for _, change := range changes {
			change(disk)
		}
		return disk
	}
	ofNoPool := func(disk *Disk) { disk.Pool = "" }
	from := func(claim string) func(*Disk) { return func(disk *Disk) { disk.SourceClaim = claim } }

	for _, test := range []struct {
		name   string
		object map[string]any
		want   *Disk
	}{
		{name: "a clone that has not begun is in flight", object: disk(), want: plain()},
		{
			name:   "a source without a namespace is in the disk's own",
			object: disk(set(map[string]any{"name": goldenName}, "spec", "source", "pvc")),
		},
		{
			name: "a clone in the goldens' namespace needs no namespace of its source",
			object: disk(set(map[string]any{"name": goldenName}, "spec", "source", "pvc"),
				set("cozy-public", "metadata", "namespace")),
			want: plain(func(disk *Disk) { disk.Namespace = "cozy-public" }),
		},
		{name: "a clone from another namespace is none", object: disk(set("tenant-a", "spec", "source", "pvc", "namespace"))},
		{name: "an import is none", object: disk(set(map[string]any{"http": map[string]any{"url": "x"}}, "spec", "source"))},
		{name: "a source of the wrong type is none", object: disk(set("golden", "spec", "source", "pvc"))},
		{name: "a source without a name is none", object: disk(set("", "spec", "source", "pvc", "name"))},
		{name: "nothing is none"},
		{
			name:   "a clone without annotations belongs to no pool and is a use all the same",
			object: disk(set(nil, "metadata", "annotations")),
			want:   plain(ofNoPool),
		},
		{
			name:   "a clone that names no golden belongs to no pool",
			object: disk(set(map[string]any{poolAnnotation: "kubernetes-k1-md0"}, "metadata", "annotations")),
			want:   plain(ofNoPool),
		},
		{
			name:   "a clone that names no pool belongs to none",
			object: disk(set(map[string]any{goldenAnnotation: goldenName}, "metadata", "annotations")),
			want:   plain(ofNoPool),
		},
		{
			name:   "a clone that names another golden than its source belongs to no pool",
			object: disk(set("talos-worker-bbb-v1.13.6", "metadata", "annotations", goldenAnnotation)),
			want:   plain(ofNoPool),
		},
		{
			name:   "the claim of a golden may have another name",
			object: disk(set("foo", "spec", "source", "pvc", "name")),
			want:   plain(from("foo")),
		},
		{
			name: "a clone of such a claim that does not name a golden belongs to no pool",
			object: disk(set("foo", "spec", "source", "pvc", "name"),
				set("bar", "metadata", "annotations", goldenAnnotation)),
			want: plain(from("foo"), ofNoPool),
		},
		{
			name:   "a pool that no object matches counts under the name that the annotation gives",
			object: disk(set("wrapped-md0-gpu", "metadata", "annotations", poolAnnotation)),
			want:   plain(func(disk *Disk) { disk.Pool = "wrapped-md0-gpu" }),
		},
		{
			name:   "an annotation that is too long counts as absent",
			object: disk(set(strings.Repeat("x", 254), "metadata", "annotations", poolAnnotation)),
			want:   plain(ofNoPool),
		},
		{
			name:   "so does one that would fit if it were cut between two characters",
			object: disk(set(strings.Repeat("€", 85), "metadata", "annotations", poolAnnotation)),
			want:   plain(ofNoPool),
		},
		{
			name:   "an annotation of the longest length counts",
			object: disk(set(strings.Repeat("x", 253), "metadata", "annotations", poolAnnotation)),
			want:   plain(func(disk *Disk) { disk.Pool = strings.Repeat("x", 253) }),
		},
		{
			name: "so does the name of a golden",
			object: disk(set(strings.Repeat("x", 253), "spec", "source", "pvc", "name"),
				set(strings.Repeat("x", 253), "metadata", "annotations", goldenAnnotation)),
			want: plain(from(strings.Repeat("x", 253))),
		},
		{
			name:   "the class may be in spec.pvc",
			object: disk(set(nil, "spec", "storage"), set(map[string]any{"storageClassName": "local"}, "spec", "pvc")),
			want:   plain(func(disk *Disk) { disk.StorageClass = "local" }),
		},
		{
			name:   "the spec may be silent on the class",
			object: disk(set(nil, "spec", "storage")),
			want:   plain(func(disk *Disk) { disk.StorageClass = "" }),
		},
		{
			name:   "claimName is the disk's own claim",
			object: disk(set(map[string]any{"claimName": "foo"}, "status")),
			want:   plain(func(disk *Disk) { disk.ClaimName = "foo" }),
		},
		{
			name:   "every phase before Succeeded is cloning",
			object: disk(status("CSICloneInProgress", "Running", "Error")),
			want:   plain(),
		},
		{
			name:   "a phase of the wrong type is one before Succeeded",
			object: disk(set(map[string]any{"phase": 7}, "status")),
			want:   plain(),
		},
		{
			name:   "a disk that succeeded is independent of its golden",
			object: disk(status("Succeeded", "Running", "Completed")),
			want:   plain(func(disk *Disk) { disk.State, disk.InFlight = DiskCloned, false }),
		},
		{
			name:   "a disk that succeeded has not failed, whatever a condition still says",
			object: disk(status("Succeeded", "Bound", "CloneValidationFailed")),
			want:   plain(func(disk *Disk) { disk.State, disk.InFlight = DiskCloned, false }),
		},
		{
			name:   "a disk that CDI gave up needs its golden no more",
			object: disk(status("Failed", "Running", "Error")),
			want:   plain(func(disk *Disk) { disk.State, disk.InFlight = DiskFailed, false }),
		},
		{
			name:   "a disk that is refused has failed, and needs its golden when the reason is removed",
			object: disk(status("Pending", "Bound", "CloneValidationFailed")),
			want:   plain(func(disk *Disk) { disk.State = DiskFailed }),
		},
		{
			name:   "a disk whose claim cannot be made has failed, and needs its golden when it can",
			object: disk(status("", "Ready", "ErrClaimNotValid")),
			want:   plain(func(disk *Disk) { disk.State = DiskFailed }),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := DiskFrom(test.object, "cozy-public")
			if ok != (test.want != nil) {
				t.Fatalf("DiskFrom is %t, want %t", ok, test.want != nil)
			}
			if test.want == nil {
				test.want = &Disk{}
			}
			if diff := cmp.Diff(*test.want, got); diff != "" {
				t.Errorf("DiskFrom (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDisksShareTheirStrings(t *testing.T) {
	read := func() Disk {
		// Each object is decoded by itself, so that no string of one is a string of the other.
		text, err := json.Marshal(disk())
		if err != nil {
			t.Fatal(err)
		}
		got, ok := DiskFrom(object(t, string(text)), "cozy-public")
		if !ok {
			t.Fatal("it is no disk")
		}
		return got
	}
	a, b := read(), read()
	for what, pair := range map[string][2]string{
		"namespaces of two disks":    {a.Namespace, b.Namespace},
		"sources of two disks":       {a.SourceClaim, b.SourceClaim},
		"pools of two disks":         {a.Pool, b.Pool},
		"classes of two disks":       {a.StorageClass, b.StorageClass},
		"name and claim of one disk": {a.Name, a.ClaimName},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("%s are two copies of %q", what, pair[0])
		}
	}
}

func FuzzDiskFrom(f *testing.F) {
	for _, change := range []func(map[string]any){
		status("Succeeded", "Running", "Completed"),
		status("Pending", "Bound", "CloneValidationFailed"),
		set(nil, "metadata", "annotations"),
		set([]any{1, nil, "x"}, "status"),
		set(map[string]any{"conditions": []any{1, map[string]any{"status": 1}}}, "status"),
		set("foo", "spec", "source", "pvc", "name"),
	} {
		seed, err := json.Marshal(disk(change))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if json.Unmarshal(data, &content) != nil {
			return
		}
		got, ok := DiskFrom(content, "cozy-public")
		again, okAgain := DiskFrom(content, "cozy-public")
		if got != again || ok != okAgain {
			t.Errorf("read twice, it is %v and %v", got, again)
		}
		if !ok && got != (Disk{}) {
			t.Errorf("what is no disk is %v", got)
		}
		for _, text := range []string{got.Namespace, got.Name, got.SourceClaim, got.Pool, got.StorageClass, got.ClaimName} {
			checkText(t, text, nameLimit)
		}
	})
}
