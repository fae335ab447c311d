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
	"encoding/json"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// FuzzWorkerImage joins whatever four objects hold: it never panics, says the same twice, and what it says is
// valid.
func FuzzWorkerImage(f *testing.F) {
	for _, dv := range []string{
		`{"metadata":{"uid":"u","creationTimestamp":"2026-11-01T10:00:00Z"},"spec":{"source":{"http":{"url":"https://a:b@c/d?e=f"}},"storage":{"resources":{"requests":{"storage":"6Gi"}}}},"status":{"phase":"Succeeded","progress":"100.0%"}}`,
		`{"metadata":{"deletionTimestamp":"2026-11-01T10:00:00Z"},"spec":null,"status":[]}`,
		`{"spec":{"pvc":{"storageClassName":""}},"status":{"phase":5,"restartCount":"7","conditions":[null,{"type":"Running","status":"False","message":"\\u0000"}]}}`,
		`{"status":{"phase":"SomethingNew","restartCount":9000000000,"progress":"45,3%"}}`,
		`null`,
	} {
		f.Add([]byte(dv),
			[]byte(`{"metadata":{"uid":"c","ownerReferences":[{"kind":"DataVolume","uid":"u","controller":true}]},"spec":{"storageClassName":"replicated"},"status":{"phase":"Bound","capacity":{"storage":"6Gi"}}}`),
			[]byte(`{"metadata":{"namespace":"tenant-a","name":"k1-md0"},"spec":{"diskSize":"1e999999999","osImage":{"builtin":{}},"minReplicas":"0"}}`),
			[]byte(`{"metadata":{"namespace":"tenant-a","name":"d","annotations":{"kubernetes-worker-image.cozystack.io/pool":"kubernetes-k1-md0"}},"spec":{"source":{"pvc":{"namespace":"cozy-public","name":"talos-worker-aaa-v1.13.6"}}}}`))
	}
	f.Fuzz(func(t *testing.T, dv, claim, consumer, disk []byte) {
		first := WorkerImage(inputs(dv, claim, consumer, disk), nil, now)
		if diff := cmp.Diff(first, WorkerImage(inputs(dv, claim, consumer, disk), nil, now)); diff != "" {
			t.Fatalf("the second time:\n%s", diff)
		}
		if first != nil {
			checkValid(t, first)
		}
	})
}

func inputs(dv, claim, consumer, disk []byte) Image {
	in := Image{
		ID:       id,
		Classes:  storageclass.Classes{{Name: "replicated", Default: true}},
		Profiles: storageclass.Profiles{Strategies: map[string]string{"replicated": "csi-clone"}},
		Sources:  ready().Sources,
	}
	if object := parse(dv); object != nil {
		in.DataVolume = golden.DataVolumeFrom(object)
		in.DataVolume.Namespace, in.DataVolume.Name = "cozy-public", id.Name()
	}
	var pvc corev1.PersistentVolumeClaim
	if json.Unmarshal(claim, &pvc) == nil {
		in.Claim = golden.ClaimFrom(&pvc)
		in.Claim.Namespace, in.Claim.Name = "cozy-public", id.Name()
	}
	if object := parse(consumer); object != nil {
		in.Pools = []pool.Pool{pool.From(object, id)}
	}
	if d, ok := pool.DiskFrom(parse(disk), "cozy-public"); ok {
		in.Disks = []PoolDisks{{Namespace: d.Namespace, Pool: d.Pool, Cloned: 1, StorageClass: d.StorageClass}}
	}
	return in
}

func parse(content []byte) map[string]any {
	var object map[string]any
	if json.Unmarshal(content, &object) != nil {
		return nil
	}
	return object
}

var (
	reason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)
	phases = sets.New(images.WorkerImagePending, images.WorkerImageImporting, images.WorkerImageReady,
		images.WorkerImageFailed, images.WorkerImageTerminating, images.WorkerImageUnknown)
)

// maxMessage is what the schema of a condition allows.
const maxMessage = 32768

func checkValid(t *testing.T, image *images.WorkerImage) {
	s := image.Status
	if !phases.Has(s.Phase) {
		t.Errorf("phase %q", s.Phase)
	}
	if ready := meta.IsStatusConditionTrue(s.Conditions, images.ConditionReady); ready != (s.Phase == images.WorkerImageReady) {
		t.Errorf("phase %s and condition Ready %t", s.Phase, ready)
	}
	if p := s.Progress; p != nil && (*p < 0 || *p > 100) {
		t.Errorf("progress %d", *p)
	}
	seen := sets.New[string]()
	for _, c := range s.Conditions {
		if seen.Has(c.Type) || !reason.MatchString(c.Reason) || c.LastTransitionTime.IsZero() || len(c.Message) > maxMessage {
			t.Errorf("condition %+v", c)
		}
		seen.Insert(c.Type)
	}
	for _, p := range s.Pools {
		if p.Cloneable != metav1.ConditionTrue && p.Message == "" {
			t.Errorf("pool %s/%s does not say why it is not cloneable", p.Namespace, p.Name)
		}
	}
	if encoded, err := json.Marshal(image); err != nil || !utf8.Valid(encoded) {
		t.Errorf("not encodable: %v", err)
	}
}
