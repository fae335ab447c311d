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

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

// WorkerImages have no driver yet.
func WorkerImages() Resource {
	return Resource{GroupVersionResource: v1alpha1.SchemeGroupVersion.WithResource("workerimages"), Kind: "WorkerImage", Epochs: true}
}

// CatalogEntries cannot be changed through their own API.
func CatalogEntries() Resource {
	return Resource{GroupVersionResource: v1alpha1.SchemeGroupVersion.WithResource("catalogentries"), Kind: "CatalogEntry", Epochs: true}
}

// Options of a namespace cannot be changed through their own API.
func Options(namespace string) Resource {
	r := Resource{
		GroupVersionResource: v1alpha1.SchemeGroupVersion.WithResource("options"),
		Kind:                 "Option",
		Namespace:            namespace,
		Epochs:               true,
	}
	r.except(selectClauses(), "Options have no labels, and the fields that selectors know do not change")
	r.except(historyClauses(), "Options change once a second at most, and a version is kept for thousands of changes")
	return r
}

// BuiltIn is a resource that kube-apiserver keeps itself, by which the clauses are measured.
func BuiltIn(resource schema.GroupVersionResource, kind, namespace string) Resource {
	r := Resource{
		GroupVersionResource: resource,
		Kind:                 kind,
		Namespace:            namespace,
		Except: map[string]string{
			"a get with a resourceVersion that is none is 400":      "kube-apiserver answers 500, and 400 to the same of a list",
			"a watch from a resourceVersion that is none is 400":    "kube-apiserver answers 500, and 400 to the same of a list",
			"who takes only protobuf gets 406 of a kind without it": "it has protobuf",
		},
	}
	r.except(historyClauses(), "etcd keeps a version for minutes, however many changes there are")
	return r
}

func (r *Resource) except(clauses []clause, why string) {
	if r.Except == nil {
		r.Except = map[string]string{}
	}
	for _, c := range clauses {
		r.Except[c.name] = why
	}
}

const driverLabel = "conformance.cozystack.io/selected"

// LabelDriver labels the object of a resource that has not changed for longest, the first aside, and returns nil if there
// is none.
func LabelDriver(ctx context.Context, config *rest.Config, r Resource) (*Driver, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects := dynamic.ResourceInterface(client.Resource(r.GroupVersionResource))
	if r.Namespace != "" {
		objects = client.Resource(r.GroupVersionResource).Namespace(r.Namespace)
	}
	l, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.GroupVersionResource.Resource, err)
	}
	if len(l.Items) == 0 {
		return nil, nil
	}
	// The first object is on the first page of a list, which clauses read before they make changes.
	oldest := slices.MinFunc(l.Items[min(1, len(l.Items)-1):], func(a, b unstructured.Unstructured) int {
		// What is served is well formed, or clauses say so.
		order, _ := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
		return order
	})
	return &Driver{
		Name:     oldest.GetName(),
		Selector: "labelSelector=" + driverLabel,
		Set: func(ctx context.Context, selected bool) error {
			patch, err := labelPatch(selected)
			if err != nil {
				return err
			}
			_, err = objects.Patch(ctx, oldest.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}, nil
}

func labelPatch(selected bool) ([]byte, error) {
	labels := map[string]any{driverLabel: nil}
	if selected {
		labels[driverLabel] = "true"
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
}
