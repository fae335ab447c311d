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
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

func TestDrift(t *testing.T) {
	const path = "/image/aaa/v1.13.6/openstack-amd64.raw.xz"
	entry := Entry{
		ID:              golden.ID{SchematicID: "aaa", Version: "v1.13.6"},
		ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi", StorageClass: "replicated",
	}
	clusterDefault := entry
	clusterDefault.StorageClass = ""
	secret := entry
	secret.ImageFactoryURL = "https://user:secret@mirror/?token=secret"

	storage := func(live string) []images.CatalogDrift {
		return []images.CatalogDrift{{Field: "storage", Catalog: "6Gi", Live: live}}
	}
	for name, test := range map[string]struct {
		entry Entry
		live  *golden.DataVolume
		want  []images.CatalogDrift
	}{
		"no DataVolume":                        {entry, nil, nil},
		"a silent DataVolume":                  {entry, &golden.DataVolume{}, nil},
		"an equal DataVolume":                  {entry, &golden.DataVolume{URL: "https://factory.talos.dev" + path, Size: "6Gi", StorageClass: ptr.To("replicated")}, nil},
		"its own DataVolume":                   {entry, read(entry), nil},
		"the size in mebibytes":                {entry, &golden.DataVolume{Size: "6144Mi"}, nil},
		"the size in bytes":                    {entry, &golden.DataVolume{Size: "6442450944"}, nil},
		"the size in gigabytes":                {entry, &golden.DataVolume{Size: "6G"}, storage("6G")},
		"another size":                         {entry, &golden.DataVolume{Size: "8Gi"}, storage("8Gi")},
		"a size that is none":                  {entry, &golden.DataVolume{Size: "large"}, storage("large")},
		"a size that takes minutes to compute": {entry, &golden.DataVolume{Size: "1e999999999"}, storage("1e999999999")},
		"another class": {entry, &golden.DataVolume{StorageClass: ptr.To("local")},
			[]images.CatalogDrift{{Field: "storageClass", Catalog: "replicated", Live: "local"}}},
		"no class at all where one is declared": {entry, &golden.DataVolume{StorageClass: ptr.To("")},
			[]images.CatalogDrift{{Field: "storageClass", Catalog: "replicated"}}},
		"a class where the default of the cluster is declared": {clusterDefault, &golden.DataVolume{StorageClass: ptr.To("local")},
			[]images.CatalogDrift{{Field: "storageClass", Live: "local"}}},
		"silent on the class where the default of the cluster is declared": {clusterDefault, &golden.DataVolume{}, nil},
		"another factory": {entry, &golden.DataVolume{URL: "http://mirror" + path},
			[]images.CatalogDrift{{Field: "imageFactoryURL", Catalog: "https://factory.talos.dev", Live: "http://mirror"}}},
		"another image of the factory": {entry, &golden.DataVolume{URL: "https://factory.talos.dev/image/aaa/v1.13.6/metal-amd64.raw.xz"},
			[]images.CatalogDrift{{Field: "imageFactoryURL", Catalog: "https://factory.talos.dev", Live: "https://factory.talos.dev/image/aaa/v1.13.6/metal-amd64.raw.xz"}}},
		"another image of another pair": {entry, &golden.DataVolume{URL: "https://factory.talos.dev/image/bbb/v1.13.6/openstack-amd64.raw.xz"},
			[]images.CatalogDrift{{Field: "imageFactoryURL", Catalog: "https://factory.talos.dev", Live: "https://factory.talos.dev/image/bbb/v1.13.6/openstack-amd64.raw.xz"}}},
		"everything at once, sorted by field": {entry, &golden.DataVolume{URL: "http://mirror" + path, Size: "8Gi", StorageClass: ptr.To("local")},
			[]images.CatalogDrift{
				{Field: "imageFactoryURL", Catalog: "https://factory.talos.dev", Live: "http://mirror"},
				{Field: "storage", Catalog: "6Gi", Live: "8Gi"},
				{Field: "storageClass", Catalog: "replicated", Live: "local"},
			}},
		"its own DataVolume of a URL with credentials": {secret, read(secret), nil},
		"another factory than that with credentials": {secret, &golden.DataVolume{URL: "http://mirror" + path},
			[]images.CatalogDrift{{Field: "imageFactoryURL", Catalog: "https://mirror/?token=redacted", Live: "http://mirror"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.entry.Drift(test.live)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// read returns what the rules read of the golden that an entry becomes.
func read(entry Entry) *golden.DataVolume {
	dv := entry.DataVolume("cozy-public")
	return &golden.DataVolume{
		URL:          golden.RedactURL(dv.Spec.Source.HTTP.URL),
		Size:         dv.Spec.Storage.Resources.Requests.Storage().String(),
		StorageClass: dv.Spec.Storage.StorageClassName,
	}
}
