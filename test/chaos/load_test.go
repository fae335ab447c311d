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

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	informers "github.com/cozystack/workerimage-apiserver/pkg/generated/informers/externalversions/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

const (
	// loadGoldens come, change and go while there is load.
	loadGoldens  = 4
	loadInterval = 10 * time.Millisecond
)

// load changes goldens of its own, over and over. What the cluster refuses while it is broken is tried again.
type load struct {
	steps atomic.Int64
	end   func()
	p     *platform
}

// startLoad changes goldens until it is told to stop, or the test ends.
func (p *platform) startLoad(t *testing.T) *load {
	t.Helper()
	l := &load{p: p}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { wait.UntilWithContext(ctx, l.step, loadInterval) })
	l.end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		for i := range loadGoldens {
			p.Remove(t, objects.DataVolumes, objects.Goldens, objects.NameOf(busy(i)))
		}
	})
	t.Cleanup(l.end)
	return l
}

func busy(i int) string { return fmt.Sprintf("busy-%d", i) }

var busyPhases = []string{"Pending", "ImportScheduled", "ImportInProgress", "Succeeded", "Failed"}

func (l *load) step(ctx context.Context) {
	schematic := busy(rand.IntN(loadGoldens))
	client := l.p.Resource(objects.DataVolumes, objects.Goldens)
	var err error
	switch rand.IntN(8) {
	case 0:
		err = client.Delete(ctx, objects.NameOf(schematic), metav1.DeleteOptions{})
	case 1, 2:
		_, err = client.Create(ctx, objects.NewGolden(schematic), metav1.CreateOptions{})
	default:
		patch := fmt.Sprintf(`{"status":{"phase":%q,"progress":"%d.0%%","restartCount":%d}}`,
			busyPhases[rand.IntN(len(busyPhases))], rand.IntN(100), rand.IntN(100))
		_, err = client.Patch(ctx, objects.NameOf(schematic), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	}
	if err == nil {
		l.steps.Add(1)
	}
}

// awaitSteps waits until some more changes have been made.
func (l *load) awaitSteps(t *testing.T, more int) {
	t.Helper()
	until := l.steps.Load() + int64(more)
	await.For(t, fmt.Sprintf("%d changes", more), func(context.Context) error {
		if now := l.steps.Load(); now < until {
			return fmt.Errorf("%d to go", until-now)
		}
		return nil
	})
}

// mark makes a change that shows: who has seen it has seen all that came before.
func (p *platform) mark(t *testing.T) (restarts int32) {
	t.Helper()
	object, err := p.Resource(objects.DataVolumes, objects.Goldens).Get(t.Context(), spare, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var dataVolume struct{ Status struct{ RestartCount int32 } }
	content, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &dataVolume); err != nil {
		t.Fatal(err)
	}
	restarts = dataVolume.Status.RestartCount + 1
	p.Patch(t, objects.DataVolumes, objects.Goldens, spare, fmt.Sprintf(`{"status":{"restartCount":%d}}`, restarts), "status")
	return restarts
}

// informer is a stock one.
type informer struct {
	cache.SharedIndexInformer
	stop func()
}

// startInformers runs informers that list, and that stream their lists, as controllers do.
func (p *platform) startInformers(t *testing.T) []informer {
	t.Helper()
	var all []informer
	for _, streaming := range []bool{true, false} {
		// What a client does is decided when it is made.
		t.Run(fmt.Sprintf("streaming %v", streaming), func(sub *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(sub, clientfeatures.WatchListClient, streaming)
			all = append(all, p.startInformer(sub, t))
		})
	}
	return all
}

func (p *platform) startInformer(t, owner *testing.T) informer {
	t.Helper()
	client, err := versioned.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	i := informer{SharedIndexInformer: informers.NewWorkerImageInformer(client, 0, cache.Indexers{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(owner.Context()))
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(ctx) })
	i.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	owner.Cleanup(i.stop)
	await.For(t, "an informer to sync", func(context.Context) error {
		if !i.HasSynced() {
			return fmt.Errorf("it has %d objects", len(i.GetStore().ListKeys()))
		}
		return nil
	})
	return i
}

// follow returns how long each of two new informers takes to show a change that is made after something has happened to
// the server. They are new each time since an informer that lost its server tries again the later, up to half a minute,
// the more often that has happened within two minutes, whatever it watches.
func (p *platform) follow(t *testing.T, happening func()) []time.Duration {
	t.Helper()
	var took []time.Duration
	all := p.startInformers(t)
	happening()
	began := time.Now()
	mark := p.mark(t)
	for _, i := range all {
		i.awaitMark(t, mark)
		took = append(took, time.Since(began))
	}
	for _, i := range all {
		i.checkEqual(t, p.access)
		i.stop()
	}
	return took
}

// awaitMark waits until the informer has seen a change.
func (i informer) awaitMark(t *testing.T, mark int32) {
	t.Helper()
	await.For(t, "an informer to see a change", func(context.Context) error {
		object, found, err := i.GetStore().GetByKey(spare)
		if err != nil || !found {
			return fmt.Errorf("found: %v, %w", found, err)
		}
		if got := object.(*v1alpha1.WorkerImage).Status.DataVolume.RestartCount; got != mark {
			return fmt.Errorf("it is at %d, not at %d", got, mark)
		}
		return nil
	})
}

// checkEqual makes sure that the informer comes to hold what a list holds, the versions included.
func (i informer) checkEqual(t *testing.T, a access) {
	t.Helper()
	await.For(t, "an informer to have what a list has", func(ctx context.Context) error {
		want, err := a.state(ctx)
		if err != nil {
			return err
		}
		got := map[string]v1alpha1.WorkerImage{}
		for _, object := range i.GetStore().List() {
			image := object.(*v1alpha1.WorkerImage)
			got[image.Name] = *image
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
			return fmt.Errorf("(-list +store):\n%s", diff)
		}
		return nil
	})
}

// checkWhole makes sure that an answer is the whole population or none.
func checkWhole(t *testing.T, a wire.Answer) {
	t.Helper()
	if a.Status != http.StatusOK {
		return
	}
	var list v1alpha1.WorkerImageList
	if err := json.Unmarshal(a.Body, &list); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, image := range list.Items {
		there[image.Name] = true
	}
	for i := range population {
		if !there[objects.NameOf(schematicOf(i))] {
			t.Errorf("a list has %d images, and %s is missing", len(list.Items), objects.NameOf(schematicOf(i)))
		}
	}
}
