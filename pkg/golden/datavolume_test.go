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
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object decodes JSON as a client of the API server does.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return content
}

const goldenObject = `{
	"apiVersion": "cdi.kubevirt.io/v1beta1",
	"kind": "DataVolume",
	"metadata": {
		"namespace": "cozy-public",
		"name": "talos-worker-aaa-v1.13.6",
		"uid": "b27c0a7a-28b9-4068-9af3-7a3d617ca83f",
		"creationTimestamp": "2026-11-30T20:27:30Z",
		"annotations": {
			"cdi.kubevirt.io/storage.clone.token": "s3cret",
			"kubernetes-worker-image.cozystack.io/schematic-id": "aaa",
			"kubernetes-worker-image.cozystack.io/talos-version": "v1.13.6"
		}
	},
	"spec": {
		"contentType": "kubevirt",
		"source": {"http": {"url": "https://user:s3cret@factory.talos.dev/image/aaa/v1.13.6/openstack-amd64.raw.xz?token=s3cret"}},
		"storage": {"resources": {"requests": {"storage": "6Gi"}}, "storageClassName": "replicated"}
	},
	"status": {
		"claimName": "talos-worker-aaa-v1.13.6",
		"phase": "ImportInProgress",
		"progress": "45.67%",
		"restartCount": 7,
		"conditions": [
			{"type": "Bound", "status": "False", "reason": "Pending", "message": "PVC Pending", "lastTransitionTime": "2026-11-30T20:27:31Z"},
			{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-30T20:27:32Z"},
			{"type": "Running", "status": "False", "reason": "Error", "message": "Get \"https://user:s3cret@factory.talos.dev/?token=s3cret\": EOF"},
			{"type": "Other", "status": "True", "message": "s3cret"}
		]
	}
}`

func TestDataVolumeFromReadsAGolden(t *testing.T) {
	got := DataVolumeFrom(object(t, goldenObject))
	class := "replicated"
	second := func(s int) metav1.Time { return metav1.NewTime(time.Date(2026, 11, 30, 20, 27, s, 0, time.UTC)) }
	want := &DataVolume{
		Namespace:    "cozy-public",
		Name:         "talos-worker-aaa-v1.13.6",
		UID:          "b27c0a7a-28b9-4068-9af3-7a3d617ca83f",
		Created:      second(30),
		Annotated:    ID{SchematicID: "aaa", Version: "v1.13.6"},
		URL:          "https://factory.talos.dev/image/aaa/v1.13.6/openstack-amd64.raw.xz?token=redacted",
		Template:     TemplateStorage,
		ContentType:  "kubevirt",
		StorageClass: &class,
		Size:         "6Gi",
		ClaimName:    "talos-worker-aaa-v1.13.6",
		Phase:        "ImportInProgress",
		Progress:     "45.67%",
		RestartCount: 7,
		Ready:        Condition{Status: "False", LastTransition: second(32)},
		Bound:        Condition{Status: "False", Reason: "Pending", Message: "PVC Pending", LastTransition: second(31)},
		Running:      Condition{Status: "False", Reason: "Error", Message: `Get "https://factory.talos.dev/?token=redacted": EOF`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("DataVolumeFrom (-want +got):\n%s", diff)
	}
	if strings.Contains(fmt.Sprintf("%+v", *got), "s3cret") {
		t.Errorf("a secret is kept in %+v", *got)
	}
}

func TestDataVolumeFromTakesWhatIsThere(t *testing.T) {
	empty := ""
	for _, test := range []struct {
		name string
		text string
		want DataVolume
	}{
		{name: "an object without anything is empty", text: `{}`},
		{name: "null is absent", text: `{"metadata": null, "spec": {"storage": null, "source": null}, "status": {"phase": null, "conditions": null}}`},
		{
			name: "the phase may be there and empty",
			text: `{"status": {"phase": ""}}`,
		},
		{
			name: "a class may be there and empty, which is not the same as absent",
			text: `{"spec": {"storage": {"storageClassName": ""}}}`,
			want: DataVolume{Template: TemplateStorage, StorageClass: &empty},
		},
		{
			name: "spec.pvc is the other template",
			text: `{"spec": {"pvc": {"resources": {"requests": {"storage": "6144Mi"}}}}}`,
			want: DataVolume{Template: TemplatePVC, Size: "6144Mi"},
		},
		{
			name: "an empty template is a template",
			text: `{"spec": {"storage": {}}}`,
			want: DataVolume{Template: TemplateStorage},
		},
		{
			name: "a size may be a number",
			text: `{"spec": {"storage": {"resources": {"requests": {"storage": 6442450944}}}}}`,
			want: DataVolume{Template: TemplateStorage, Size: "6442450944"},
		},
		{
			name: "another source has no URL",
			text: `{"spec": {"source": {"registry": {"url": "docker://quay.io/x"}}}}`,
		},
		{
			name: "a deletion timestamp means that it is being deleted",
			text: `{"metadata": {"deletionTimestamp": "2026-11-30T20:27:30Z"}}`,
			want: DataVolume{Deleting: true},
		},
		{
			name: "restarts are never fewer than none",
			text: `{"status": {"restartCount": -3}}`,
		},
		{
			name: "a phase of the wrong type counts as Unknown",
			text: `{"status": {"phase": 7}}`,
			want: DataVolume{Phase: "Unknown", Malformed: []string{"status.phase"}},
		},
		{
			name: "fields of the wrong type are absent, and named once",
			text: `{
				"metadata": {"name": 1, "annotations": {"kubernetes-worker-image.cozystack.io/schematic-id": true}, "creationTimestamp": "now"},
				"spec": {"storage": "6Gi", "contentType": [], "source": {"http": "https://host"}},
				"status": {"progress": 45, "restartCount": "7", "claimName": {}, "conditions": ["Ready", {"type": "Ready", "status": true}]}
			}`,
			want: DataVolume{Malformed: []string{
				"metadata.name", "metadata.creationTimestamp", "metadata.annotations.kubernetes-worker-image.cozystack.io/schematic-id",
				"spec.source.http", "spec.contentType", "spec.storage",
				"status.claimName", "status.progress", "status.restartCount", "status.conditions[0]", "status.conditions[1].status",
			}},
		},
		{
			name: "whole blocks may be of the wrong type",
			text: `{"metadata": [], "spec": "x", "status": 7}`,
			want: DataVolume{Malformed: []string{"metadata", "spec", "status"}},
		},
		{
			name: "conditions may be no list",
			text: `{"status": {"conditions": {"type": "Ready"}}}`,
			want: DataVolume{Malformed: []string{"status.conditions"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := DataVolumeFrom(object(t, test.text))
			if diff := cmp.Diff(&test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("DataVolumeFrom (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDataVolumeFromBoundsLongText(t *testing.T) {
	long := strings.Repeat("ü", 5<<10)
	dv := DataVolumeFrom(map[string]any{
		"metadata": map[string]any{
			"name":        long,
			"annotations": map[string]any{SchematicIDAnnotation: long, TalosVersionAnnotation: long},
		},
		"spec": map[string]any{
			"source":  map[string]any{"http": map[string]any{"url": "https://host/" + long}},
			"storage": map[string]any{"storageClassName": long},
		},
		"status": map[string]any{
			"phase":      long,
			"conditions": []any{map[string]any{"type": "Running", "message": long, "reason": long}},
		},
	})
	checkBounds(t, dv)
	if len(dv.Running.Message) < messageLimit-utf8.UTFMax {
		t.Errorf("the message is cut to %d bytes, want about %d", len(dv.Running.Message), messageLimit)
	}
}

// checkBounds fails for text that is too long to be served or not valid.
func checkBounds(t *testing.T, dv *DataVolume) {
	t.Helper()
	class := ""
	if dv.StorageClass != nil {
		class = *dv.StorageClass
	}
	for limit, texts := range map[int][]string{
		nameLimit: append(dv.Malformed, dv.Namespace, dv.Name, string(dv.UID), dv.Annotated.SchematicID, dv.Annotated.Version,
			string(dv.Template), dv.ContentType, class, dv.Size, dv.ClaimName, dv.Phase, dv.Progress,
			dv.Ready.Status, dv.Ready.Reason, dv.Bound.Status, dv.Bound.Reason, dv.Running.Status, dv.Running.Reason),
		messageLimit: {dv.Ready.Message, dv.Bound.Message, dv.Running.Message},
		urlLimit:     {dv.URL},
	} {
		for _, text := range texts {
			if len(text) > limit || !utf8.ValidString(text) {
				t.Errorf("%d bytes %.60q, want at most %d bytes of valid UTF-8", len(text), text, limit)
			}
		}
	}
	if len(dv.Malformed) > 100 {
		t.Errorf("%d malformed fields are listed", len(dv.Malformed))
	}
}

func FuzzDataVolumeFrom(f *testing.F) {
	for _, seed := range []string{
		goldenObject,
		`{}`,
		`{"metadata": [], "spec": "x", "status": 7}`,
		`{"spec": {"pvc": {"resources": {"requests": {"storage": 1e300}}}}, "status": {"restartCount": -1e300, "phase": {}}}`,
		`{"status": {"conditions": [null, 1, {"type": "Bound", "message": ["x"]}, {"type": "Bound", "message": "https://u:p@h?q=v"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if json.Unmarshal(data, &content) != nil {
			return
		}
		dv := DataVolumeFrom(content)
		checkBounds(t, dv)
		if diff := cmp.Diff(dv, DataVolumeFrom(content)); diff != "" {
			t.Errorf("read twice, it differs:\n%s", diff)
		}
		state := StateOf(dv, nil, ClassOf(dv, nil, nil))
		if state.Phase == "" || state.Ready == "" || state.Reason == "" || !utf8.ValidString(state.Message) {
			t.Errorf("the state is %+v", state)
		}
	})
}
