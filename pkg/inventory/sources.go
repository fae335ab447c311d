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

package inventory

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Sources are the list-watches that an Inventory reads, one for each kind. PersistentVolumeClaims,
// StorageClasses and ConfigMaps arrive typed, everything else unstructured: a malformed object must not break
// a list.
type Sources struct {
	DataVolumes     cache.ListerWatcherWithContext
	Claims          cache.ListerWatcherWithContext
	StorageClasses  cache.ListerWatcherWithContext
	StorageProfiles cache.ListerWatcherWithContext
	CDIs            cache.ListerWatcherWithContext
	Pools           cache.ListerWatcherWithContext
	// PoolResource is the resource that serves the pools; nil where none does.
	PoolResource func() schema.GroupVersionResource
	// Catalog has the ConfigMap of the catalog, and may have others.
	Catalog cache.ListerWatcherWithContext
}

var cdiVersion = schema.GroupVersion{Group: "cdi.kubevirt.io", Version: "v1beta1"}

// poolRelistPeriod is how often the pools are listed again although their watch works: it comes from an
// aggregated API server that watches yet another API.
const poolRelistPeriod = 10 * time.Minute

// NewClusterSources reads from a cluster whose catalog is in the ConfigMap of that name.
func NewClusterSources(client kubernetes.Interface, dynamicClient dynamic.Interface, catalog types.NamespacedName) Sources {
	pools := newPoolSource(client.Discovery(), dynamicClient, poolRelistPeriod)
	return Sources{
		DataVolumes:     dynamicSource(dynamicClient, cdiVersion.WithResource("datavolumes")),
		Claims:          claimSource(client),
		StorageClasses:  storageClassSource(client),
		StorageProfiles: dynamicSource(dynamicClient, cdiVersion.WithResource("storageprofiles")),
		CDIs:            dynamicSource(dynamicClient, cdiVersion.WithResource("cdis")),
		Pools:           pools,
		PoolResource:    pools.resource,
		Catalog:         configMapSource(client, catalog),
	}
}

func dynamicSource(client dynamic.Interface, resource schema.GroupVersionResource) cache.ListerWatcherWithContext {
	objects := client.Resource(resource)
	return withSemantics(client,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, options)
		}, objects.Watch)
}

func claimSource(client kubernetes.Interface) cache.ListerWatcherWithContext {
	claims := client.CoreV1().PersistentVolumeClaims(corev1.NamespaceAll)
	return withSemantics(client,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return claims.List(ctx, options)
		}, claims.Watch)
}

func storageClassSource(client kubernetes.Interface) cache.ListerWatcherWithContext {
	classes := client.StorageV1().StorageClasses()
	return withSemantics(client,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return classes.List(ctx, options)
		}, classes.Watch)
}

// configMapSource reads one ConfigMap, so that no right to read any other is needed.
func configMapSource(client kubernetes.Interface, name types.NamespacedName) cache.ListerWatcherWithContext {
	configMaps := client.CoreV1().ConfigMaps(name.Namespace)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	return withSemantics(client,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return configMaps.List(ctx, options)
		},
		func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return configMaps.Watch(ctx, options)
		})
}

// withSemantics makes a list-watch that supports streaming lists where client does.
func withSemantics(client any, list cache.ListWithContextFunc, watch cache.WatchFuncWithContext) listerWatcher {
	lw := &cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watch}
	return cache.ToListWatcherWithWatchListSemantics(lw, client).(listerWatcher)
}

// listerWatcher has both forms that client-go asks for.
type listerWatcher interface {
	cache.ListerWatcher
	cache.ListerWatcherWithContext
}
