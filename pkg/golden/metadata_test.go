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
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func someMetadata() Metadata {
	return Metadata{
		Labels:      map[string]string{"team": "platform"},
		Annotations: map[string]string{"note": "a \"quoted\" one", "empty": ""},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "images.cozystack.io/v1alpha1",
			Time:       &metav1.Time{Time: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)},
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:team":{}}}}`),
		}},
	}
}

func TestMetadataSurvivesTheAnnotation(t *testing.T) {
	encoded, err := someMetadata().Encode()
	if err != nil {
		t.Fatal(err)
	}
	dv := DataVolumeFrom(map[string]any{"metadata": map[string]any{"annotations": map[string]any{MetadataAnnotation: encoded}}})
	claim := ClaimFrom(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{MetadataAnnotation: encoded}}})
	for name, got := range map[string]Metadata{"DataVolume": dv.Metadata, "claim": claim.Metadata} {
		if diff := cmp.Diff(someMetadata(), got, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(dv.Malformed) > 0 {
		t.Errorf("malformed: %v", dv.Malformed)
	}
}

func TestMetadataIsEncodedTheSameEveryTime(t *testing.T) {
	want, err := someMetadata().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		m := someMetadata()
		m.Annotations = maps.Clone(m.Annotations)
		if got, err := m.Encode(); err != nil || got != want {
			t.Fatalf("got %s, %v; want %s", got, err, want)
		}
	}
}

func TestNoMetadataIsNoAnnotation(t *testing.T) {
	if got, err := (Metadata{Labels: map[string]string{}}).Encode(); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestMetadataIsBounded(t *testing.T) {
	m := Metadata{Annotations: map[string]string{"note": strings.Repeat("x", MetadataLimit)}}
	if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("too much: %v", err)
	}
	m.Annotations["note"] = strings.Repeat("x", MetadataLimit-len(`{"annotations":{"note":""}}`))
	if _, err := m.Encode(); err != nil {
		t.Errorf("just enough: %v", err)
	}
}

func TestMetadataThatCannotBeReadCountsAsNone(t *testing.T) {
	for name, annotation := range map[string]any{
		"not JSON":        "{",
		"another type":    `{"labels":["a"]}`,
		"not even a text": int64(5),
		"too long":        `{"labels":{"a":"` + strings.Repeat("x", MetadataLimit) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dv := DataVolumeFrom(map[string]any{"metadata": map[string]any{"annotations": map[string]any{MetadataAnnotation: annotation}}})
			if diff := cmp.Diff(Metadata{}, dv.Metadata); diff != "" {
				t.Errorf("unexpected metadata:\n%s", diff)
			}
			if len(dv.Malformed) != 1 || !strings.Contains(dv.Malformed[0], MetadataAnnotation) {
				t.Errorf("malformed: %v", dv.Malformed)
			}
		})
	}
}

func TestMetadataIsThatOfTheDataVolumeAndWithoutOneThatOfTheClaim(t *testing.T) {
	ofDataVolume, ofClaim := Metadata{Labels: map[string]string{"on": "datavolume"}}, Metadata{Labels: map[string]string{"on": "claim"}}
	for name, test := range map[string]struct {
		dv    *DataVolume
		claim *Claim
		want  Metadata
	}{
		"both": {dv: &DataVolume{Metadata: ofDataVolume}, claim: &Claim{Metadata: ofClaim}, want: ofDataVolume},
		"a DataVolume with nothing set hides what its claim was made with": {dv: &DataVolume{}, claim: &Claim{Metadata: ofClaim}},
		"a claim alone": {claim: &Claim{Metadata: ofClaim}, want: ofClaim},
		"neither":       {},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, MetadataOf(test.dv, test.claim)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
