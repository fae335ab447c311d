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
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// URL returns the URL that CDI imports the image from. It may hold credentials.
func (e Entry) URL() string {
	return e.ImageFactoryURL + e.imagePath()
}

// imagePath is the path of the image below the URL of its factory: the openstack image is the one that can
// read the config drive of a KubeVirt VM.
func (e Entry) imagePath() string {
	return "/image/" + e.SchematicID + "/" + e.Version + "/openstack-amd64.raw.xz"
}

// Insecure is true for an image that is transferred in plain text.
func (e Entry) Insecure() bool {
	return strings.HasPrefix(e.ImageFactoryURL, httpPrefix)
}

// DataVolume returns the golden that the entry becomes in that namespace.
func (e Entry) DataVolume(namespace string) *cdiv1.DataVolume {
	return &cdiv1.DataVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: cdiv1.SchemeGroupVersion.String(), Kind: "DataVolume"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      e.Name(),
			Labels:    map[string]string{"app.kubernetes.io/managed-by": "cozystack"},
			Annotations: map[string]string{
				"helm.sh/resource-policy":                          "keep",
				"cdi.kubevirt.io/storage.bind.immediate.requested": "true",
				"cdi.kubevirt.io/storage.usePopulator":             "true",
				golden.SchematicIDAnnotation:                       e.SchematicID,
				golden.TalosVersionAnnotation:                      e.Version,
			},
		},
		Spec: cdiv1.DataVolumeSpec{
			ContentType: cdiv1.DataVolumeKubeVirt,
			Source: &cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{
				URL:           e.URL(),
				Checksum:      e.Checksum,
				CertConfigMap: e.CertConfigMap,
			}},
			Storage: e.storage(),
		},
	}
}

// storage names no class where the default of the cluster is to be used: an empty name would ask for a
// claim without a class.
func (e Entry) storage() *cdiv1.StorageSpec {
	storage := &cdiv1.StorageSpec{Resources: corev1.VolumeResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(e.Storage)},
	}}
	if e.StorageClass != "" {
		storage.StorageClassName = &e.StorageClass
	}
	return storage
}
