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

package workerimage

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/reader"
)

// newTable returns what kubectl get prints.
func newTable() reader.Table[images.WorkerImage, *images.WorkerImage] {
	return reader.Table[images.WorkerImage, *images.WorkerImage]{
		Items: func(list runtime.Object) ([]images.WorkerImage, bool) {
			l, ok := list.(*images.WorkerImageList)
			if !ok {
				return nil, false
			}
			return l.Items, true
		},
		Columns: []reader.Column[images.WorkerImage]{
			reader.Name[images.WorkerImage]("Name of the image and of its golden."),
			reader.Always("Version", "string", "Talos release.", version),
			reader.Always("Phase", "string", "Where the image stands.", phase),
			reader.Always("Progress", "string", "Progress of the import.", progress),
			reader.Always("StorageClass", "string", "Class that clones are compared with.", effectiveClass),
			reader.Always("Size", "string", "Size that was asked for.", size),
			reader.Always("Pools", "integer", "Number of pools that consume the image, as far as you may see them.", pools),
			reader.Always("Age", "date", "Time since the golden was made.", age),
			reader.Wide("Schematic", "string", "First characters of the schematic id.", schematic),
			reader.Wide("Clone", "string", "Strategy of clones within the class.", cloneStrategy),
			reader.Wide("Declared", "string", "Whether the catalog declares the image.", declared),
			reader.Wide("Reason", "string", "Reason of the condition Ready.", readyReason),
			reader.Wide("Source", "string", "Where the image was imported from.", sourceURL),
		},
	}
}

func version(image *images.WorkerImage) any { return image.Spec.Version }

func phase(image *images.WorkerImage) any { return string(image.Status.Phase) }

func progress(image *images.WorkerImage) any {
	if image.Status.Progress == nil {
		return ""
	}
	return fmt.Sprintf("%d%%", *image.Status.Progress)
}

func effectiveClass(image *images.WorkerImage) any {
	if image.Status.StorageClass == nil {
		return ""
	}
	return image.Status.StorageClass.Effective
}

func size(image *images.WorkerImage) any {
	if image.Status.Storage == nil {
		return ""
	}
	return image.Status.Storage.Requested
}

func pools(image *images.WorkerImage) any { return int64(image.Status.PoolCount) }

func age(image *images.WorkerImage) any {
	return metatable.ConvertToHumanReadableDateType(image.CreationTimestamp)
}

func schematic(image *images.WorkerImage) any { return reader.Short(image.Spec.SchematicID) }

func cloneStrategy(image *images.WorkerImage) any { return image.Status.CloneStrategy }

func declared(image *images.WorkerImage) any {
	if image.Status.Catalog == nil {
		return ""
	}
	return fmt.Sprint(image.Status.Catalog.Declared)
}

func readyReason(image *images.WorkerImage) any {
	if c := meta.FindStatusCondition(image.Status.Conditions, images.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

func sourceURL(image *images.WorkerImage) any {
	if image.Status.Source == nil {
		return ""
	}
	return image.Status.Source.URL
}
