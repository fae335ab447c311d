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
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	imagesclient "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/stack"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

const (
	group        = "/apis/images.cozystack.io/v1alpha1"
	workerImages = group + "/workerimages"
)

// platform is a stack, seen by its administrator.
type platform struct {
	*stack.Stack
	access
}

// access is a way to the server, past a cluster's API server or through it.
type access struct {
	wire   *wire.Client
	images imagesclient.WorkerImageInterface
}

func singleServer(t *testing.T) *platform {
	t.Helper()
	return newPlatform(t, shared.single.Get(t))
}

// threeReplicas have a history each.
func threeReplicas(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(t, shared.replicas.Get(t))
	p.Balancer().Spread()
	return p
}

// oneHistory has three replicas that serve one history.
func oneHistory(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(t, shared.oneHistory.Get(t))
	p.Balancer().Spread()
	return p
}

func newPlatform(t *testing.T, s *stack.Stack) *platform {
	t.Helper()
	return &platform{Stack: s, access: newAccess(t, s.RESTConfig())}
}

func newAccess(t *testing.T, config *rest.Config) access {
	t.Helper()
	client, err := wire.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	images, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return access{wire: client, images: images.ImagesV1alpha1().WorkerImages()}
}

// direct is access to one replica that does not depend on kube-apiserver to be passed on.
func (p *platform) direct(t *testing.T, replica int) access {
	t.Helper()
	return newAccess(t, p.ReplicaConfig(replica))
}

// ask sends one request, and does not try again.
func (a access) ask(ctx context.Context, path string) (wire.Answer, error) {
	return a.wire.Try(ctx, http.MethodGet, path, nil, "")
}

// onlooker is somebody who asks the same question again and again.
type onlooker struct {
	mu      sync.Mutex
	answers []wire.Answer
	errs    []error
	stop    func()
}

// look asks until it is told to stop, or the test ends.
func (a access) look(t *testing.T, path string) *onlooker {
	t.Helper()
	o := &onlooker{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { o.add(a.ask(ctx, path)) }, await.Interval)
	})
	o.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(o.stop)
	return o
}

func (o *onlooker) add(a wire.Answer, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.errs = append(o.errs, err)
		return
	}
	o.answers = append(o.answers, a)
}

// check ends the looking and fails the test for every answer but the expected. It returns the slowest answer.
func (o *onlooker) check(t *testing.T, what string, expected ...int) (slowest time.Duration) {
	t.Helper()
	o.stop()
	for _, err := range o.errs {
		t.Errorf("%s: %v", what, err)
	}
	if len(o.answers) == 0 {
		t.Errorf("%s: never answered", what)
	}
	unexpected := map[int]string{}
	for _, a := range o.answers {
		slowest = max(slowest, a.Took)
		if !contains(expected, a.Status) {
			unexpected[a.Status] = string(a.Body)
		}
	}
	for status, body := range unexpected {
		t.Errorf("%s: %d %s", what, status, body)
	}
	return slowest
}

func contains(all []int, one int) bool {
	for _, v := range all {
		if v == one {
			return true
		}
	}
	return false
}

// every waits until all images that a way to the server shows are as the check wants them.
func (a access) every(t *testing.T, what string, check func(*v1alpha1.WorkerImage) error) time.Duration {
	t.Helper()
	return await.For(t, "every image to be "+what, func(ctx context.Context) error {
		list, err := a.images.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("there is none")
		}
		for i := range list.Items {
			if err := check(&list.Items[i]); err != nil {
				return fmt.Errorf("%s: %w", list.Items[i].Name, err)
			}
		}
		return nil
	})
}

// has is the check that a condition of an image has a status.
func has(kind string, status metav1.ConditionStatus) func(*v1alpha1.WorkerImage) error {
	return func(image *v1alpha1.WorkerImage) error {
		c := ptr.Deref(meta.FindStatusCondition(image.Status.Conditions, kind), metav1.Condition{})
		if c.Status != status {
			return fmt.Errorf("%s is %q: %s %s", kind, c.Status, c.Reason, c.Message)
		}
		return nil
	}
}

// checkDeleteRefused makes sure that an image cannot be deleted now, with a code that says why.
func (a access) checkDeleteRefused(t *testing.T, name string, codes ...int) {
	t.Helper()
	err := a.images.Delete(t.Context(), name, metav1.DeleteOptions{})
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !contains(codes, int(status.Status().Code)) {
		t.Errorf("delete %s: got %v, want one of %v", name, err, codes)
	}
}

// state is what a server says of all images, apart from when it says so.
func (a access) state(ctx context.Context) (map[string]v1alpha1.WorkerImage, error) {
	list, err := a.images.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	state := map[string]v1alpha1.WorkerImage{}
	for _, image := range list.Items {
		state[image.Name] = image
	}
	return state, nil
}

// apart are the fields in which servers differ: the version is each one's own, and a condition that was Unknown for a
// while has changed at another time.
var apart = cmp.Options{
	cmpopts.IgnoreTypes(metav1.TypeMeta{}),
	cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"),
	cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"),
}

// checkNothingLost makes sure that what the servers show comes to be what fresh ones do.
func (p *platform) checkNothingLost(t *testing.T) {
	t.Helper()
	before := make([]map[string]v1alpha1.WorkerImage, p.Replicas())
	for i := range before {
		var err error
		if before[i], err = p.direct(t, i).state(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.RestartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range before {
		fresh := p.direct(t, i)
		var diff string
		_ = await.Poll(t.Context(), func(ctx context.Context) error {
			after, err := fresh.state(ctx)
			if err == nil {
				if diff = cmp.Diff(after, before[i], apart); diff != "" {
					err = errors.New("they differ")
				}
			}
			return err
		})
		if diff != "" {
			t.Errorf("replica %d (-fresh +before):\n%s", i, diff)
		}
	}
	p.awaitServed(t)
}

// awaitServed returns how long it takes until the server answers through kube-apiserver.
func (p *platform) awaitServed(t *testing.T) time.Duration {
	t.Helper()
	return await.For(t, "the server to be served", func(ctx context.Context) error {
		a, err := p.ask(ctx, workerImages)
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return err
	})
}
