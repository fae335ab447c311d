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
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

// poolKind is the kind of a pool. Its resource name comes from a registry at run time.
var poolKind = schema.GroupVersionKind{Group: "apps.cozystack.io", Version: "v1alpha1", Kind: "KubernetesNodes"}

// unknownPoolResource stands for every resource of the pools' group.
var unknownPoolResource = poolKind.GroupVersion().WithResource("*")

// watchSlack is how much longer than it was asked to a server may keep a watch open.
const watchSlack = 30 * time.Second

// poolSource lists and watches the pools, and looks up the resource that serves their kind each time it
// lists: the kind may be absent, appear later, or be served under another name after an upgrade.
type poolSource struct {
	discovery    discovery.ServerResourcesInterfaceWithContext
	client       dynamic.Interface
	relistPeriod time.Duration

	mu sync.Mutex
	// found is the resource that served the last list.
	found schema.GroupVersionResource
	// listed is the resource of a list that no watch has continued yet; empty where there is none.
	listed schema.GroupVersionResource
}

func newPoolSource(d discovery.DiscoveryInterface, client dynamic.Interface, relistPeriod time.Duration) *poolSource {
	return &poolSource{
		discovery:    discovery.ToDiscoveryInterfaceWithContext(d),
		client:       client,
		relistPeriod: relistPeriod,
		found:        unknownPoolResource,
	}
}

// resource serves the pools; unknownPoolResource until they have been listed.
func (s *poolSource) resource() schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// IsWatchListSemanticsUnSupported keeps reflectors from streaming lists: the server behind the aggregator
// may accept the request and never end the list.
func (s *poolSource) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists the pools of all namespaces.
func (s *poolSource) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	resource, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	list, err := s.client.Resource(resource).List(ctx, options)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.listed = resource, resource
	return list, nil
}

// WatchWithContext continues a list, once: a second watch is refused as expired, so that each watch starts
// from a fresh list. The watch ends after the relist period, give or take a tenth.
func (s *poolSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	resource := s.listed
	s.listed = schema.GroupVersionResource{}
	s.mu.Unlock()
	if resource.Empty() {
		return nil, apierrors.NewResourceExpired("the pools are listed again before each watch")
	}
	period := wait.Jitter(s.relistPeriod*9/10, 0.2)
	options.TimeoutSeconds = ptr.To(int64(period.Seconds()))
	ctx, cancel := context.WithTimeout(ctx, period+watchSlack)
	w, err := s.client.Resource(resource).Watch(ctx, options)
	if err != nil {
		cancel()
		return nil, err
	}
	return boundedWatch{Interface: w, cancel: cancel}, nil
}

// find looks the resource up by its kind.
func (s *poolSource) find(ctx context.Context) (schema.GroupVersionResource, error) {
	groupVersion := poolKind.GroupVersion()
	list, err := s.discovery.ServerResourcesForGroupVersionWithContext(ctx, groupVersion.String())
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("find the resource of kind %s: %w", poolKind.Kind, err)
	}
	for _, r := range list.APIResources {
		isSubresource := strings.Contains(r.Name, "/")
		if r.Kind == poolKind.Kind && !isSubresource && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
			return groupVersion.WithResource(r.Name), nil
		}
	}
	return schema.GroupVersionResource{}, &meta.NoKindMatchError{GroupKind: poolKind.GroupKind(), SearchedVersions: []string{poolKind.Version}}
}

// boundedWatch gives its deadline back when it is stopped.
type boundedWatch struct {
	watch.Interface
	cancel context.CancelFunc
}

func (w boundedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}
