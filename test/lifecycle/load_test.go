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

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	imagesclient "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	informers "github.com/cozystack/workerimage-apiserver/pkg/generated/informers/externalversions/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

const (
	// read is the schematic of a sample that is always there, dry one that is never made, and busy one that comes and goes.
	// Imports of the last do not end, as the rules of every stack have it.
	read = "gpu-nvidia"
	dry  = "lifecycle"
	busy = "stuck-lifecycle"

	watches = 50
)

func newImage(schematic string) *v1alpha1.WorkerImage {
	return &v1alpha1.WorkerImage{Spec: v1alpha1.WorkerImageSpec{SchematicID: schematic, Version: objects.Release}}
}

// request is what a client asks for again and again.
type request struct {
	name string
	// every is how long it takes until it asks again: together about twenty times a second.
	every time.Duration
	send  func(context.Context, imagesclient.WorkerImageInterface) error
}

func requests() []request {
	return []request{
		{"list", 200 * time.Millisecond, func(ctx context.Context, images imagesclient.WorkerImageInterface) error {
			list, err := images.List(ctx, metav1.ListOptions{})
			if err == nil && !slices.ContainsFunc(list.Items, func(i v1alpha1.WorkerImage) bool { return i.Name == objects.NameOf(read) }) {
				err = fmt.Errorf("%s is not among %d images", objects.NameOf(read), len(list.Items))
			}
			return err
		}},
		{"get", 125 * time.Millisecond, func(ctx context.Context, images imagesclient.WorkerImageInterface) error {
			_, err := images.Get(ctx, objects.NameOf(read), metav1.GetOptions{})
			return err
		}},
		{"dry run", 250 * time.Millisecond, func(ctx context.Context, images imagesclient.WorkerImageInterface) error {
			_, err := images.Create(ctx, newImage(dry), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}},
		{"create and delete", 500 * time.Millisecond, createAndDelete},
	}
}

// createAndDelete makes an image and deletes it, unless the one of before is not gone yet.
func createAndDelete(ctx context.Context, images imagesclient.WorkerImageInterface) error {
	image, err := images.Get(ctx, objects.NameOf(busy), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err := images.Create(ctx, newImage(busy), metav1.CreateOptions{})
		// Another server than the one that was asked before may not know yet that it is gone.
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
	case err != nil:
		return fmt.Errorf("get: %w", err)
	case image.DeletionTimestamp != nil:
		return nil
	}
	err = images.Delete(ctx, objects.NameOf(busy), metav1.DeleteOptions{})
	// One server may have made it, and another be asked to delete it that learns of it a moment later. It goes the next time.
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// load is clients that ask and watch, until they are told to stop or the test ends.
type load struct {
	p         *platform
	stop      func()
	informers []cache.SharedIndexInformer

	mu       sync.Mutex
	sent     int
	answered map[string]int
	failed   []failure
	// unsent counts writes of which unsent says that they can be sent again.
	unsent int
	// retried counts what client-go does not show to its callers, unless it goes on for too long.
	retried map[string]int
}

// failure is a request that client-go gave up, or did not repeat.
type failure struct {
	at   time.Time
	what string
	err  error
}

// startLoad returns when all watches have begun.
func (p *platform) startLoad(t *testing.T) *load {
	t.Helper()
	l := &load{p: p, answered: map[string]int{}, retried: map[string]int{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	l.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(l.stop)
	for _, streaming := range []bool{true, false} {
		// What a client does is decided when it is made.
		t.Run(fmt.Sprintf("streaming %v", streaming), func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streaming)
			for range watches / 2 {
				l.informers = append(l.informers, l.newInformer(t))
			}
		})
	}
	for _, informer := range l.informers {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	for _, informer := range l.informers {
		await.For(t, "an informer to sync", func(context.Context) error {
			if !informer.HasSynced() {
				return errors.New("it has not")
			}
			return nil
		})
	}
	images := imagesOf(t, l.observed(p.RESTConfig()))
	for _, request := range requests() {
		running.Go(func() {
			wait.UntilWithContext(ctx, func(ctx context.Context) { l.note(ctx, request.name, request.send(ctx, images)) }, request.every)
		})
	}
	return l
}

func (l *load) newInformer(t *testing.T) cache.SharedIndexInformer {
	t.Helper()
	client, err := versioned.NewForConfig(l.p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return informers.NewWorkerImageInformer(client, 0, cache.Indexers{})
}

// observed counts what client-go is answered with.
func (l *load) observed(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.Context().Err() != nil {
				return response, err
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.sent++
			switch {
			case err != nil:
				l.retried["no answer"]++
			case response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError:
				l.retried[fmt.Sprintf("%s, Retry-After %q", response.Status, response.Header.Get("Retry-After"))]++
			}
			return response, err
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (l *load) note(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.answered[what]++
	case what != "get" && what != "list" && unsent(err):
		l.unsent++
	default:
		l.failed = append(l.failed, failure{time.Now(), what, fmt.Errorf("%w %v", err, causes(err))})
	}
}

// unsent is true for a request that came to kube-apiserver in the moment in which a server that leaves closed their
// connection. Nothing was done, and kube-apiserver would repeat it if it had kept its body.
func unsent(err error) bool {
	return apierrors.IsServiceUnavailable(err) && slices.ContainsFunc(causes(err), func(cause metav1.StatusCause) bool {
		return strings.Contains(cause.Message, "graceful shutdown GOAWAY")
	})
}

func causes(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// awaitAnswers waits until each kind of request has been answered some more times.
func (l *load) awaitAnswers(t *testing.T, more int) {
	t.Helper()
	count := func() map[string]int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return maps.Clone(l.answered)
	}
	before := count()
	await.For(t, "answers", func(context.Context) error {
		now := count()
		for _, request := range requests() {
			if now[request.name] < before[request.name]+more {
				return fmt.Errorf("%d answers to %s", now[request.name]-before[request.name], request.name)
			}
		}
		return nil
	})
}

// failuresAfter returns what failed after a point in time, and forgets all that failed before.
func (l *load) failuresAfter(since time.Time) []failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := slices.DeleteFunc(slices.Clone(l.failed), func(f failure) bool { return f.at.Before(since) })
	l.failed = nil
	return failed
}

// check makes sure that nothing has failed since it was last asked, and that the informers hold what a list holds.
func (l *load) check(t *testing.T, after string) {
	t.Helper()
	l.awaitAnswers(t, 2)
	for _, f := range l.failuresAfter(time.Time{}) {
		t.Errorf("%s, %s at %s: %v", after, f.what, f.at.Format(time.TimeOnly), f.err)
	}
	l.mu.Lock()
	t.Logf("%s: %d requests, answered %v, repeated by client-go or answered with an error %v, not sent %d", after, l.sent, l.answered, l.retried, l.unsent)
	l.mu.Unlock()
}

// checkInformers makes sure that all informers come to hold what a list holds, the versions included.
func (l *load) checkInformers(t *testing.T) {
	t.Helper()
	for i, informer := range l.informers {
		await.For(t, fmt.Sprintf("informer %d to have what a list has", i), func(ctx context.Context) error {
			want, err := state(ctx, l.p.images)
			if err != nil {
				return err
			}
			got := map[string]v1alpha1.WorkerImage{}
			for _, object := range informer.GetStore().List() {
				image := object.(*v1alpha1.WorkerImage)
				got[image.Name] = *image
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
				return errors.New("(-list +store):\n" + diff)
			}
			return nil
		})
	}
}
