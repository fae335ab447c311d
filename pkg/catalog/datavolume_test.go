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

package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// plainDataVolume is the golden of an entry that declares only its pair.
const plainDataVolume = `apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  annotations:
    cdi.kubevirt.io/storage.bind.immediate.requested: "true"
    cdi.kubevirt.io/storage.usePopulator: "true"
    helm.sh/resource-policy: keep
    kubernetes-worker-image.cozystack.io/schematic-id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515
    kubernetes-worker-image.cozystack.io/talos-version: v1.13.6
  labels:
    app.kubernetes.io/managed-by: cozystack
  name: talos-worker-ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515-v1.13.6
  namespace: cozy-public
spec:
  contentType: kubevirt
  source:
    http:
      url: https://factory.talos.dev/image/ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515/v1.13.6/openstack-amd64.raw.xz
  storage:
    resources:
      requests:
        storage: 6Gi
status: {}
`

// fullDataVolume is the golden of an entry that declares everything.
const fullDataVolume = `apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  annotations:
    cdi.kubevirt.io/storage.bind.immediate.requested: "true"
    cdi.kubevirt.io/storage.usePopulator: "true"
    helm.sh/resource-policy: keep
    kubernetes-worker-image.cozystack.io/schematic-id: talos-gpu-nvidia-open
    kubernetes-worker-image.cozystack.io/talos-version: v1.14.0-alpha.1
  labels:
    app.kubernetes.io/managed-by: cozystack
  name: talos-worker-talos-gpu-nvidia-open-v1.14.0-alpha.1
  namespace: goldens
spec:
  contentType: kubevirt
  source:
    http:
      certConfigMap: mirror-ca
      checksum: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
      url: http://mirror:8080/talos/image/talos-gpu-nvidia-open/v1.14.0-alpha.1/openstack-amd64.raw.xz
  storage:
    resources:
      requests:
        storage: 8G
    storageClassName: replicated
status: {}
`

func TestDataVolumeOfAnEntry(t *testing.T) {
	for name, test := range map[string]struct {
		document  string
		namespace string
		want      string
	}{
		"that declares only its pair": {
			"images:\n- schematicID: " + factorySchematic + "\n  version: v1.13.6\n", "cozy-public", plainDataVolume,
		},
		"that leaves the class to the cluster": {
			"storageClass: ''\nimages:\n- schematicID: " + factorySchematic + "\n  version: v1.13.6\n  storageClass: ''\n", "cozy-public", plainDataVolume,
		},
		"that writes its size in another way": {
			"images:\n- schematicID: " + factorySchematic + "\n  version: v1.13.6\n  storage: 6144Mi\n", "cozy-public", plainDataVolume,
		},
		"that declares everything": {
			"images:\n- schematicID: talos-gpu-nvidia-open\n  version: v1.14.0-alpha.1\n  imageFactoryURL: http://mirror:8080/talos//\n" +
				"  storage: 8G\n  storageClass: replicated\n  certConfigMap: mirror-ca\n" +
				"  checksum: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\n", "goldens", fullDataVolume,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(parse(t, test.document).Entries[0].DataVolume(test.namespace))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlainHTTPIsInsecure(t *testing.T) {
	for url, want := range map[string]bool{
		"http://mirror":               true,
		"https://factory.talos.dev":   false,
		"https://mirror/http://talos": false,
	} {
		t.Run(url, func(t *testing.T) {
			if got := parse(t, "images: [{schematicID: a, version: v1.0.0, imageFactoryURL: '"+url+"'}]").Entries[0].Insecure(); got != want {
				t.Errorf("Insecure() = %v, want %v", got, want)
			}
		})
	}
}
