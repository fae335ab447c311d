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

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/quantity"
)

// Drift returns the fields in which a golden differs from its entry, sorted by field. A field on which the
// golden is silent has not drifted. Credentials are neither compared nor shown.
func (e Entry) Drift(dv *golden.DataVolume) []images.CatalogDrift {
	if dv == nil {
		return nil
	}
	var drift []images.CatalogDrift
	if dv.URL != "" && dv.URL != golden.RedactURL(e.URL()) {
		drift = append(drift, images.CatalogDrift{Field: "imageFactoryURL",
			Catalog: golden.RedactURL(e.ImageFactoryURL), Live: strings.TrimSuffix(dv.URL, e.imagePath())})
	}
	if dv.Size != "" && !sameSize(dv.Size, e.Storage) {
		drift = append(drift, images.CatalogDrift{Field: "storage", Catalog: e.Storage, Live: dv.Size})
	}
	if dv.StorageClass != nil && *dv.StorageClass != e.StorageClass {
		drift = append(drift, images.CatalogDrift{Field: "storageClass", Catalog: e.StorageClass, Live: *dv.StorageClass})
	}
	return drift
}

// sameSize compares numbers: one size can be written in many ways. What is not a number is no size.
func sameSize(a, b string) bool {
	left, err := quantity.Parse(a)
	if err != nil {
		return false
	}
	right, err := quantity.Parse(b)
	return err == nil && left.Cmp(right) == 0
}
