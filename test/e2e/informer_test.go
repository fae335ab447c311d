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

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	informers "github.com/cozystack/workerimage-apiserver/pkg/generated/informers/externalversions/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// tooLong is for a sync that waits for something that does not come. A sync that works takes milliseconds.
const tooLong = 5 * time.Second

// modes are the ways in which an informer gets its first list.
var modes = []struct {
	name      string
	streaming bool
}{
	{"by a streaming list", true},
	{"by a list and a watch", false},
}

// informer is a stock one, and what it asked for.
type informer struct {
	cache.SharedIndexInformer
	requests *requests
}

// startInformer runs an informer until the test ends that owner is of. Its way of listing is that of the gate now.
func (p *platform) startInformer(t, owner *testing.T, selector string) informer {
	t.Helper()
	config := p.RESTConfig()
	asked := &requests{}
	config.Wrap(asked.record)
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	i := informer{requests: asked, SharedIndexInformer: informers.NewFilteredWorkerImageInformer(client, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.FieldSelector = selector })}
	ctx, cancel := context.WithCancel(context.WithoutCancel(owner.Context()))
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	owner.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return i
}

// awaitSync returns how long it took.
func (i informer) awaitSync(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	select {
	case <-i.HasSyncedChecker().Done():
	case <-ctx.Done():
		t.Fatal("the informer does not sync")
	}
	return time.Since(began)
}

// requests are those that a client sent.
type requests struct {
	mu       sync.Mutex
	lists    int
	streamed int
}

func (r *requests) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		switch query := request.URL.Query(); {
		case !query.Has("watch"):
			r.lists++
		case query.Has("sendInitialEvents"):
			r.streamed++
		}
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

// check makes sure that the first list came in the one way and that the other was not needed.
func (r *requests) check(t *testing.T, streaming bool) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if streaming != (r.streamed > 0) || streaming != (r.lists == 0) {
		t.Errorf("%d lists and %d streaming lists were asked for", r.lists, r.streamed)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestAnInformerSyncsAtOnce(t *testing.T) {
	p := quietPlatform(t)
	for _, situation := range []struct {
		name     string
		goldens  []string
		selector string
		want     int
	}{
		{"where there is no golden", nil, "", 0},
		{"where there are three", []string{"sync-a", "sync-b", "sync-c"}, "", 3},
		{"where none matches", []string{"sync-a", "sync-b", "sync-c"}, "status.phase=Ready", 0},
	} {
		t.Run(situation.name, func(t *testing.T) {
			for _, schematic := range situation.goldens {
				p.createGolden(t, objects.NewGolden(schematic))
				p.awaitImage(t, objects.NameOf(schematic), "there", exists)
			}
			for _, mode := range modes {
				t.Run(mode.name, func(t *testing.T) {
					clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, mode.streaming)
					i := p.startInformer(t, t, situation.selector)
					took := i.awaitSync(t)
					t.Logf("synced in %v", took)
					if took > tooLong {
						t.Errorf("it took %v", took)
					}
					i.requests.check(t, mode.streaming)
					equal(t, len(i.GetStore().List()), situation.want)
				})
			}
		})
	}
}

func TestAnInformerIsRightAfterAThousandChanges(t *testing.T) {
	p := quietPlatform(t)
	var all []informer
	for _, mode := range modes {
		t.Run(mode.name, func(sub *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(sub, clientfeatures.WatchListClient, mode.streaming)
			i := p.startInformer(sub, t, "")
			i.awaitSync(sub)
			all = append(all, i)
		})
	}
	events := p.record(t)
	c := newChurn(t, p)
	for range 1000 {
		c.step(t)
	}
	c.finish(t)
	for i := range all {
		await.For(t, "the informer to have what a list has", func(ctx context.Context) error { return p.compare(ctx, all[i].GetStore()) })
		all[i].requests.check(t, modes[i].streaming)
	}
	await.For(t, "a plain watch to have told the same", func(ctx context.Context) error { return p.compare(ctx, events) })
	t.Logf("%d events told of 1000 changes", events.count())
}

// lister is what a client keeps of what it has read.
type lister interface{ List() []any }

// compare returns an error unless a store holds exactly what a list holds now.
func (p *platform) compare(ctx context.Context, store lister) error {
	list, err := p.images.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	want := map[string]*v1alpha1.WorkerImage{}
	for i := range list.Items {
		want[list.Items[i].Name] = &list.Items[i]
	}
	got := map[string]*v1alpha1.WorkerImage{}
	for _, object := range store.List() {
		image, ok := object.(*v1alpha1.WorkerImage)
		if !ok {
			return fmt.Errorf("the store holds a %T", object)
		}
		got[image.Name] = image
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
		return errors.New("(-list +store):\n" + diff)
	}
	return nil
}
