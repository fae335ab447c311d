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

package cases

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

var demoPool = &PoolRef{Namespace: "tenant-demo", Name: "k1-md0"}

func importing() *v1alpha1.WorkerImage {
	return &v1alpha1.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{Name: "talos-worker-aaa-v1.13.6"},
		Status: v1alpha1.WorkerImageStatus{
			Phase:         v1alpha1.WorkerImageImporting,
			Progress:      ptr.To[int32](41),
			DataVolume:    &v1alpha1.DataVolumeStatus{Phase: "ImportInProgress", RestartCount: 2},
			Claim:         &v1alpha1.ClaimStatus{Phase: corev1.ClaimPending},
			StorageClass:  &v1alpha1.StorageClassStatus{Declared: ptr.To("replicated"), Effective: "replicated"},
			CloneStrategy: "csi-clone",
			Pools: []v1alpha1.PoolStatus{
				{Namespace: "tenant-other", Name: "k1-md0", Cloneable: metav1.ConditionUnknown},
				{
					Namespace:    "tenant-demo",
					Name:         "k1-md0",
					StorageClass: &v1alpha1.PoolStorageClass{Name: "replicated", From: v1alpha1.StorageClassDeclared},
					Disks:        v1alpha1.DiskCounts{Cloning: 1},
					Cloneable:    metav1.ConditionTrue,
					Reason:       "GoldenImporting",
				},
			},
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "ImportRetrying", Message: "got 404"},
				{Type: v1alpha1.ConditionInUse, Status: metav1.ConditionTrue},
			},
		},
	}
}

func TestEachKeyIsCompared(t *testing.T) {
	for _, tc := range []struct {
		key          string
		right, wrong string
	}{
		{"phase", "phase: Importing", "phase: Ready"},
		{"progress", "progress: 41", "progress: null"},
		{"progress", "progress: [41, 42]", "progress: [40, 42]"},
		{"restartCount", "restartCount: 2", "restartCount: 0"},
		{"dataVolume", "dataVolume: {phase: ImportInProgress}", "dataVolume: {phase: ['', null]}"},
		{"dataVolume", "dataVolume: {phase: [ImportInProgress, null]}", "dataVolume: null"},
		{"claimPhase", "claimPhase: Pending", "claimPhase: null"},
		{"storageClass.declared", "storageClass: {declared: replicated}", "storageClass: {declared: ['', null]}"},
		{"storageClass.bound", "storageClass: {bound: [replicated, null]}", "storageClass: {bound: replicated}"},
		{"storageClass.effective", "storageClass: {effective: replicated}", "storageClass: {effective: local}"},
		{"cloneStrategy", "cloneStrategy: csi-clone", "cloneStrategy: null"},
		{"ready.status", "ready: {status: 'False'}", "ready: {status: ['True', Unknown]}"},
		{"ready.reason", "ready: {reason: [ImportRetrying]}", "ready: {reason: [Importing]}"},
		{"ready.message", "ready: {messageContains: '404'}", "ready: {messageContains: '500'}"},
		{"inUse", "inUse: 'True'", "inUse: 'False'"},
		{"disks", "disks: {cloned: 0, cloning: 1, failed: 0}", "disks: [{cloning: 2}, {failed: 1}]"},
		{"poolStorageClass", "poolStorageClass: {name: replicated, from: Declared}", "poolStorageClass: {name: replicated, from: Default}"},
		{"poolCloneable", "poolCloneable: ['True', Unknown]", "poolCloneable: Unknown"},
		{"poolReason", "poolReason: [GoldenImporting]", "poolReason: [StorageClassMatch]"},
	} {
		t.Run(tc.wrong, func(t *testing.T) {
			if got := checkpoint(t, tc.right).Check(importing(), demoPool); len(got) > 0 {
				t.Errorf("%s: got %q, want no difference", tc.right, got)
			}
			got := checkpoint(t, tc.wrong).Check(importing(), demoPool)
			if len(got) != 1 || !strings.HasPrefix(got[0], tc.key+":") {
				t.Errorf("%s: got %q, want one difference in %s", tc.wrong, got, tc.key)
			}
		})
	}
}

func TestWhatIsLeftOutIsAbsentOrZero(t *testing.T) {
	empty := &v1alpha1.WorkerImage{}
	const want = `{phase: null, progress: null, restartCount: 0, dataVolume: null, claimPhase: null, cloneStrategy: null,
		storageClass: {declared: null, bound: null, effective: null}, disks: {cloned: 0, cloning: 0, failed: 0},
		poolStorageClass: null, poolCloneable: null, poolReason: null}`
	if got := checkpoint(t, want).Check(empty, demoPool); len(got) > 0 {
		t.Errorf("got %q, want no difference", got)
	}
	if got := checkpoint(t, "dataVolume: {phase: ['', null]}").Check(empty, demoPool); len(got) != 1 {
		t.Errorf("got %q, want the missing data volume", got)
	}
}

func TestExistenceIsChecked(t *testing.T) {
	const name = "talos-worker-aaa-v1.13.6"
	for _, tc := range []struct {
		name       string
		checkpoint Checkpoint
		image      *v1alpha1.WorkerImage
		want       int
	}{
		{"one that must be there is", Checkpoint{WorkerImage: name}, importing(), 0},
		{"one that must be there is not", Checkpoint{WorkerImage: name}, nil, 1},
		{"one that may be absent is", Checkpoint{WorkerImage: name, Optional: true}, nil, 0},
		{"one that must not be there is", Checkpoint{Absent: name}, importing(), 1},
		{"one that must not be there is not", Checkpoint{Absent: name}, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.checkpoint.Check(tc.image, nil); len(got) != tc.want {
				t.Errorf("got %q, want %d differences", got, tc.want)
			}
		})
	}
}

func checkpoint(t *testing.T, expect string) *Checkpoint {
	t.Helper()
	c := &Checkpoint{WorkerImage: "talos-worker-aaa-v1.13.6"}
	if err := yaml.UnmarshalStrict([]byte(expect), &c.Expect); err != nil {
		t.Fatal(err)
	}
	return c
}
