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
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// translation lets a request in one namespace read the Options of another.
type translation struct {
	// requested is the namespace of the request.
	requested string
	// stored is where the log has the Options.
	stored string
}

func (r *REST) translation(ctx context.Context) translation {
	return translation{requested: genericapirequest.NamespaceValue(ctx), stored: r.namespace}
}

// isIdentity is true for the namespace of the log and for all namespaces, which have the Options of the log only.
func (t translation) isIdentity() bool {
	return t.requested == metav1.NamespaceAll || t.requested == t.stored
}

// context is that of the same request in the namespace of the log.
func (t translation) context(ctx context.Context) context.Context {
	if t.isIdentity() {
		return ctx
	}
	return genericapirequest.WithNamespace(ctx, t.stored)
}

// listOptions select in the namespace of the log what options select in that of the request: the two change
// places, so that whatever is said of either stays true.
func (t translation) listOptions(options *internalversion.ListOptions) (*internalversion.ListOptions, error) {
	if t.isIdentity() || options == nil || options.FieldSelector == nil {
		return options, nil
	}
	selector, err := options.FieldSelector.Transform(func(field, value string) (string, string, error) {
		switch {
		case field == "metadata.namespace" && value == t.requested:
			value = t.stored
		case field == "metadata.namespace" && value == t.stored:
			value = t.requested
		}
		return field, value, nil
	})
	if err != nil {
		return nil, err
	}
	out := *options
	out.FieldSelector = selector
	return &out, nil
}

// stamp makes option that of the namespace of the request. Only the outermost struct is written to.
func (t translation) stamp(option *images.Option) {
	if t.isIdentity() {
		return
	}
	option.Namespace = t.requested
	option.UID = projection.OptionUID(t.requested, option.Name)
}
