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
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

var platform = golden.ID{SchematicID: "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515", Version: "v1.13.6"}

// object decodes JSON as a client of the API server does.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return content
}

// nodes returns the KubernetesNodes object tenant-a/k1-md0 with a spec.
func nodes(t testing.TB, spec string) map[string]any {
	return object(t, `{"metadata": {"namespace": "tenant-a", "name": "k1-md0"}, "spec": `+spec+`}`)
}

func TestWhichImageAPoolConsumes(t *testing.T) {
	const talos = `"talos": {"schematicID": "aaa", "version": "v1.13.6"}`
	aaa := golden.ID{SchematicID: "aaa", Version: "v1.13.6"}
	for _, test := range []struct {
		name        string
		spec        string
		want        Selection
		wantInvalid string
	}{
		{name: "no osImage is no consumer", spec: `{` + talos + `}`},
		{name: "an empty osImage is no consumer", spec: `{"osImage": {}, ` + talos + `}`},
		{name: "a null osImage is no consumer", spec: `{"osImage": null, ` + talos + `}`},
		{name: "a factory is no consumer", spec: `{"osImage": {"factory": {"url": "x"}}, ` + talos + `}`},
		{name: "a null builtin is absent", spec: `{"osImage": {"builtin": null}, ` + talos + `}`},
		{name: "a null builtin beside a factory is absent", spec: `{"osImage": {"builtin": null, "factory": {}}, ` + talos + `}`},
		{
			name: "an empty builtin consumes what the pool pins for all of Talos",
			spec: `{"osImage": {"builtin": {}}, ` + talos + `}`,
			want: Selection{Consumes: true, Image: aaa},
		},
		{
			name: "each half of the pair is looked for by itself",
			spec: `{"osImage": {"builtin": {"version": "v9.9.9"}}, ` + talos + `}`,
			want: Selection{Consumes: true, Image: golden.ID{SchematicID: "aaa", Version: "v9.9.9"}},
		},
		{
			name: "the builtin wins over what is pinned for all of Talos",
			spec: `{"osImage": {"builtin": {"schematicID": "bbb"}}, ` + talos + `}`,
			want: Selection{Consumes: true, Image: golden.ID{SchematicID: "bbb", Version: "v1.13.6"}},
		},
		{
			name: "an empty string is not set",
			spec: `{"osImage": {"builtin": {"schematicID": ""}}, ` + talos + `}`,
			want: Selection{Consumes: true, Image: aaa},
		},
		{
			name: "a pool that pins nothing consumes the platform's image",
			spec: `{"osImage": {"builtin": {}}}`,
			want: Selection{Consumes: true, Image: platform},
		},
		{
			name: "an empty string for all of Talos is not set either",
			spec: `{"osImage": {"builtin": {}}, "talos": {"schematicID": "", "version": null}}`,
			want: Selection{Consumes: true, Image: platform},
		},
		{
			name: "a null factory is absent",
			spec: `{"osImage": {"builtin": {}, "factory": null}, ` + talos + `}`,
			want: Selection{Consumes: true, Image: aaa},
		},
		{
			name:        "both blocks are invalid, and pin the builtin pair",
			spec:        `{"osImage": {"builtin": {}, "factory": {}}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: aaa},
			wantInvalid: "both builtin and factory",
		},
		{
			name:        "a malformed id is invalid",
			spec:        `{"osImage": {"builtin": {"schematicID": "AAA"}}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: golden.ID{SchematicID: "AAA", Version: "v1.13.6"}},
			wantInvalid: `schematicID "AAA"`,
		},
		{
			name:        "a minor is not a version",
			spec:        `{"osImage": {"builtin": {"version": "v1.13"}}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: golden.ID{SchematicID: "aaa", Version: "v1.13"}},
			wantInvalid: `version "v1.13"`,
		},
		{
			name:        "a version that YAML took for a number is shown and invalid",
			spec:        `{"osImage": {"builtin": {"version": 1.13}}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: golden.ID{SchematicID: "aaa", Version: "1.13"}},
			wantInvalid: `version "1.13"`,
		},
		{
			name:        "parts that are too long together are invalid",
			spec:        `{"osImage": {"builtin": {"schematicID": "` + strings.Repeat("a", 240) + `"}}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: golden.ID{SchematicID: strings.Repeat("a", 240), Version: "v1.13.6"}},
			wantInvalid: "too long",
		},
		{
			name:        "Proxmox has no use for a builtin",
			spec:        `{"substrate": "proxmox", "osImage": {"builtin": {}}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: aaa},
			wantInvalid: "substrate proxmox",
		},
		{
			name:        "Proxmox has no use for a factory",
			spec:        `{"substrate": "proxmox", "osImage": {"factory": {}}}`,
			wantInvalid: "substrate proxmox",
		},
		{name: "Proxmox without an image is valid", spec: `{"substrate": "proxmox", "osImage": {}}`},
		{
			name:        "a builtin of the wrong type is invalid, and pins what an empty one does",
			spec:        `{"osImage": {"builtin": true}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: aaa},
			wantInvalid: "spec.osImage.builtin is of the wrong type",
		},
		{
			name:        "an id of the wrong type is invalid",
			spec:        `{"osImage": {"builtin": {"schematicID": ["bbb"]}}, ` + talos + `}`,
			want:        Selection{Consumes: true, Image: aaa},
			wantInvalid: "spec.osImage.builtin.schematicID is of the wrong type",
		},
		{name: "an osImage of the wrong type is no consumer", spec: `{"osImage": ["builtin"], ` + talos + `}`, wantInvalid: "spec.osImage is of the wrong type"},
		{name: "a null spec is no consumer", spec: `null`},
		{name: "a spec of the wrong type is no consumer", spec: `["osImage"]`, wantInvalid: "spec is of the wrong type"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := From(nodes(t, test.spec), platform).Selection
			if (got.Invalid != "") != (test.wantInvalid != "") || !strings.Contains(got.Invalid, test.wantInvalid) {
				t.Errorf("Invalid is %q, want %q", got.Invalid, test.wantInvalid)
			}
			got.Invalid = ""
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Selection (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromReadsThePool(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	for _, test := range []struct {
		name string
		spec string
		want Pool
	}{
		{
			name: "every field",
			spec: `{"cluster": "k1", "version": "v1.35", "minReplicas": 0, "maxReplicas": 10, "diskSize": "40Gi", "storageClass": "replicated"}`,
			want: Pool{
				Cluster: "k1", DiskPool: "kubernetes-k1-md0", StorageClass: "replicated", DiskSize: "40Gi", KubernetesVersion: "v1.35",
				MinReplicas: number(0), MaxReplicas: number(10),
			},
		},
		{
			name: "an empty spec gets the chart's disk size",
			spec: `{}`,
			want: Pool{DiskPool: "kubernetes-k1-md0", DiskSize: "20Gi"},
		},
		{
			name: "an empty disk size is the chart's",
			spec: `{"diskSize": ""}`,
			want: Pool{DiskPool: "kubernetes-k1-md0", DiskSize: "20Gi"},
		},
		{
			name: "numbers may be written without quotes",
			spec: `{"diskSize": 21474836480, "version": 1.35, "minReplicas": 2.0}`,
			want: Pool{DiskPool: "kubernetes-k1-md0", DiskSize: "21474836480", KubernetesVersion: "1.35", MinReplicas: number(2)},
		},
		{
			name: "the wrong type is absent",
			spec: `{"cluster": 1, "version": [], "minReplicas": "2", "maxReplicas": 2.5, "diskSize": {}, "storageClass": true, "clusterReleaseName": 7}`,
			want: Pool{DiskPool: "kubernetes-k1-md0", DiskSize: "20Gi"},
		},
		{
			name: "a wrapper may give the release of the cluster another name",
			spec: `{"cluster": "k1", "clusterReleaseName": "wrapped"}`,
			want: Pool{Cluster: "k1", DiskPool: "wrapped-md0", DiskSize: "20Gi"},
		},
		{
			name: "the release is followed by the whole name of a pool that does not begin with the cluster",
			spec: `{"cluster": "k", "clusterReleaseName": "wrapped"}`,
			want: Pool{Cluster: "k", DiskPool: "wrapped-k1-md0", DiskSize: "20Gi"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Namespace, test.want.Name = "tenant-a", "k1-md0"
			if diff := cmp.Diff(test.want, From(nodes(t, test.spec), platform)); diff != "" {
				t.Errorf("From (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromTakesWhatAClientDecodes(t *testing.T) {
	// Decoders differ in the type they give to whole numbers.
	got := From(map[string]any{"spec": map[string]any{"minReplicas": int64(3), "diskSize": int64(1 << 35)}}, platform)
	if got.MinReplicas == nil || *got.MinReplicas != 3 || got.DiskSize != "34359738368" {
		t.Errorf("got %v replicas and disks of %s", got.MinReplicas, got.DiskSize)
	}
	if diff := cmp.Diff(Pool{DiskPool: "kubernetes-", DiskSize: "20Gi"}, From(nil, platform)); diff != "" {
		t.Errorf("From nothing (-want +got):\n%s", diff)
	}
}

func FuzzFrom(f *testing.F) {
	for _, seed := range []string{
		`{"metadata": {"namespace": "tenant-a", "name": "k1-md0"}, "spec": {"cluster": "k1", "osImage": {"builtin": {}}}}`,
		`{"spec": null}`,
		`{"spec": {"osImage": {"builtin": [], "factory": 1}, "talos": "x", "diskSize": 1e300, "minReplicas": -1e300}}`,
		`{"spec": {"substrate": "proxmox", "osImage": {"factory": {}}}}`,
		`{"spec": {"diskSize": "1e999999999"}}`,
		`{"spec": {"clusterReleaseName": "x", "cluster": "", "osImage": {"builtin": {"schematicID": "A", "version": 1}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if json.Unmarshal(data, &content) != nil {
			return
		}
		pool := From(content, platform)
		if diff := cmp.Diff(pool, From(content, platform)); diff != "" {
			t.Errorf("read twice, it differs:\n%s", diff)
		}
		for _, text := range []string{pool.Namespace, pool.Name, pool.Cluster, pool.Selection.Image.SchematicID, pool.Selection.Image.Version,
			pool.StorageClass, pool.DiskSize, pool.KubernetesVersion} {
			checkText(t, text, nameLimit)
		}
		checkText(t, pool.DiskPool, 2*nameLimit+1)
		checkText(t, pool.Selection.Invalid, 2048)
		for _, image := range []Image{{}, asked().image} {
			verdict := Judge(pool, pool.Class("replicated", nil), image)
			if verdict.Cloneable == "" || verdict.Reason == "" || (verdict.Cloneable != yes && verdict.Message == "") {
				t.Errorf("the verdict is %+v", verdict)
			}
			checkText(t, verdict.Message, 4096)
		}
	})
}

func checkText(t *testing.T, text string, limit int) {
	t.Helper()
	if len(text) > limit || !utf8.ValidString(text) {
		t.Errorf("%d bytes %.60q, want at most %d bytes of valid UTF-8", len(text), text, limit)
	}
}
