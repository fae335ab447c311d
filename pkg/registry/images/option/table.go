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

package option

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/reader"
)

// newTable returns what kubectl get prints. An Option has no age: it is as old as what it offers.
func newTable() reader.Table[images.Option, *images.Option] {
	return reader.Table[images.Option, *images.Option]{
		Items: func(list runtime.Object) ([]images.Option, bool) {
			l, ok := list.(*images.OptionList)
			if !ok {
				return nil, false
			}
			return l.Items, true
		},
		Columns: []reader.Column[images.Option]{
			reader.Name[images.Option]("Name that a form field gives as its source."),
			reader.Always("Items", "integer", "Number of choices.", items),
			reader.Always("Default", "string", "Label of the choice that is preselected.", preselected),
		},
	}
}

func items(option *images.Option) any { return int64(len(option.Spec.Items)) }

func preselected(option *images.Option) any {
	for _, item := range option.Spec.Items {
		if item.Default {
			return item.Label
		}
	}
	return ""
}
