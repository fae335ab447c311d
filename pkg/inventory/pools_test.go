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
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// poolServer is the API server of the pools: its discovery, and a dynamic client that remembers what it
// was asked for.
type poolServer struct {
	dynamic.Interface
	discovery *fakediscovery.FakeDiscovery
	source    *poolSource

	pools     []unstructured.Unstructured
	resources []string // that were listed
	watch     *watch.FakeWatcher
	watchCtx  context.Context //nolint:containedctx // the test looks at its deadline
	options   metav1.ListOptions
}

func newPoolServer(resources ...metav1.APIResource) *poolServer {
	s := &poolServer{discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}}
	s.serve(resources...)
	s.source = newPoolSource(s.discovery, s, time.Minute)
	return s
}

func (s *poolServer) serve(resources ...metav1.APIResource) {
	s.discovery.Resources = nil
	if len(resources) > 0 {
		s.discovery.Resources = []*metav1.APIResourceList{{GroupVersion: "apps.cozystack.io/v1alpha1", APIResources: resources}}
	}
}

// breakDown makes discovery fail, as it does while the server behind the aggregator is down.
func (s *poolServer) breakDown(err error) {
	s.discovery.ReactionChain = nil
	s.discovery.AddReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return err != nil, nil, err })
}

func (s *poolServer) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return poolResource{server: s, name: resource.Resource}
}

type poolResource struct {
	dynamic.NamespaceableResourceInterface
	server *poolServer
	name   string
}

func (r poolResource) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	r.server.resources = append(r.server.resources, r.name)
	return &unstructured.UnstructuredList{Items: r.server.pools}, nil
}

func (r poolResource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	r.server.watch, r.server.watchCtx, r.server.options = watch.NewFake(), ctx, options
	return r.server.watch, nil
}

// nodes is how the kind is served.
func nodes(name string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: "KubernetesNodes", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}}
}

func TestPoolsAreFoundByKindWhateverTheirResourceIsCalled(t *testing.T) {
	for _, name := range []string{"kubernetesnodeses", "kubernetesnodes", "pools"} {
		s := newPoolServer(
			metav1.APIResource{Name: "kuberneteses", Kind: "Kubernetes", Verbs: metav1.Verbs{"list", "watch"}},
			metav1.APIResource{Name: name + "/status", Kind: "KubernetesNodes", Verbs: metav1.Verbs{"list", "watch"}},
			metav1.APIResource{Name: "unlisted", Kind: "KubernetesNodes", Verbs: metav1.Verbs{"get"}},
			nodes(name),
		)
		if _, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if len(s.resources) != 1 || s.resources[0] != name {
			t.Errorf("listed %v instead of %s", s.resources, name)
		}
	}
}

func TestTheResourceOfThePoolsIsWhatWasListedLast(t *testing.T) {
	s := newPoolServer()
	group := schema.GroupVersion{Group: "apps.cozystack.io", Version: "v1alpha1"}
	inventory := New(Config{Sources: Sources{PoolResource: s.source.resource}})
	for _, step := range []struct {
		name   string
		served []metav1.APIResource
		want   string
	}{
		{"any, before the kind was found", nil, "*"},
		{"the plural that was found", []metav1.APIResource{nodes("kubernetesnodeses")}, "kubernetesnodeses"},
		{"another after an upgrade", []metav1.APIResource{nodes("pools")}, "pools"},
		{"still that when the kind is gone", nil, "pools"},
	} {
		s.serve(step.served...)
		_, _ = s.source.ListWithContext(t.Context(), metav1.ListOptions{}) // fails while the kind is not served
		if got := inventory.PoolResource(); got != group.WithResource(step.want) {
			t.Errorf("%s: got %v", step.name, got)
		}
	}
	if got := New(Config{}).PoolResource(); got != group.WithResource("*") {
		t.Errorf("of a snapshot: %v", got)
	}
}

func TestPoolsAreLookedUpAtEveryList(t *testing.T) {
	s := newPoolServer(nodes("kubernetesnodeses"))
	for _, name := range []string{"kubernetesnodeses", "kubernetesnodes"} {
		s.serve(nodes(name))
		if _, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if last := s.resources[len(s.resources)-1]; last != name {
			t.Errorf("listed %s instead of %s", last, name)
		}
	}
}

func TestPoolsThatNobodyServesAreAnErrorAndNotAnEmptyList(t *testing.T) {
	s := newPoolServer()
	if _, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without the group: %v", err)
	}
	s.serve(metav1.APIResource{Name: "kuberneteses", Kind: "Kubernetes", Verbs: metav1.Verbs{"list", "watch"}})
	if _, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{}); !meta.IsNoMatchError(err) {
		t.Errorf("without the kind: %v", err)
	}
	s.breakDown(errUnavailable)
	if _, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("while the server is down: %v", err)
	}
}

func TestListsOfPoolsAreNotStreamed(t *testing.T) {
	if !watchlist.DoesClientNotSupportWatchListSemantics(newPoolServer().source) {
		t.Error("they are")
	}
}

func TestEachWatchOfPoolsFollowsAListOfItsOwn(t *testing.T) {
	s := newPoolServer(nodes("kubernetesnodeses"))
	watchPools := func() error {
		w, err := s.source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		if err == nil {
			w.Stop()
		}
		return err
	}
	for range 2 {
		if err := watchPools(); !apierrors.IsResourceExpired(err) {
			t.Fatalf("a watch without a list: %v", err)
		}
		if _, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := watchPools(); err != nil {
			t.Fatalf("a watch after a list: %v", err)
		}
	}
}

func TestAWatchOfPoolsEndsAfterTheRelistPeriodWhateverTheServerDoes(t *testing.T) {
	s := newPoolServer(nodes("kubernetesnodeses"))
	if _, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := s.source.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Duration(ptr.Deref(s.options.TimeoutSeconds, 0)) * time.Second
	if asked < time.Minute*8/10 || asked > time.Minute*12/10 {
		t.Errorf("the server is asked to end it after %s", asked)
	}
	deadline, ok := s.watchCtx.Deadline()
	if left := time.Until(deadline); !ok || left < asked-time.Second || left > asked+watchSlack+2*time.Second {
		t.Errorf("it ends on our side after %s", left)
	}
	w.Stop()
	if s.watchCtx.Err() == nil || !s.watch.IsStopped() {
		t.Error("something is left of it after it was stopped")
	}
}

func TestARelistOfPoolsIsNoFailure(t *testing.T) {
	run(t, func(f *fixture) {
		s := newPoolServer(nodes("kubernetesnodeses"))
		s.pools = []unstructured.Unstructured{*poolObject("tenant-a", poolA, imageID(goldA))}
		f.Inventory.pools.listerWatcher = s.source
		f.startReady()
		s.watch.Stop()
		f.pass(retryAtLeast)
		f.expect("the watch has ended and the pools were listed again")
		if h := f.source("kubernetesnodes"); len(s.resources) != 2 || h.LastError != nil || !h.Readable {
			t.Errorf("%d lists, readable %v, error %v", len(s.resources), h.Readable, h.LastError)
		}
	})
}

func TestPoolsComeAndGoWithTheirServer(t *testing.T) {
	run(t, func(f *fixture) {
		s := newPoolServer()
		s.pools = []unstructured.Unstructured{*poolObject("tenant-a", poolA, imageID(goldA))}
		f.Inventory.pools.listerWatcher = s.source
		f.startReady()
		expect := func(why, want string) {
			f.t.Helper()
			if got := f.condition(goldA, images.ConditionInUse); got != want {
				f.t.Errorf("%s: InUse is %s", why, got)
			}
		}
		expect("the kind is not there", "Unknown SourceNotReadable")

		s.serve(nodes("kubernetesnodeses"))
		f.pass(foundWithin)
		expect("the kind appears", "True DeclaredByPools")

		s.breakDown(errUnavailable)
		s.watch.Stop()
		f.pass(2 * time.Minute)
		expect("its server is down", "Unknown SourceNotReadable")

		s.breakDown(nil)
		f.pass(foundWithin)
		expect("its server is back", "True DeclaredByPools")

		s.serve()
		s.watch.Stop()
		f.pass(2 * time.Minute)
		expect("the kind goes away", "Unknown SourceNotReadable")
	})
}
