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
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// soon is within what a client that was moved to another replica is promised, on a machine that has nothing else to do.
// It is reported, not enforced.
const soon = 2 * time.Second

// eitherHistory runs a test of replicas that have a history each, and of replicas that serve one.
func eitherHistory(t *testing.T, test func(*testing.T, *platform)) {
	t.Helper()
	t.Run("a history each", func(t *testing.T) { test(t, threeReplicas(t)) })
	t.Run("one history", func(t *testing.T) {
		p := oneHistory(t)
		p.awaitOneHistory(t)
		test(t, p)
	})
}

func TestInformersFollowAFlip(t *testing.T) { eitherHistory(t, informersFollowAFlip) }

func informersFollowAFlip(t *testing.T, p *platform) {
	p.populate(t)
	old := p.startInformers(t)
	for _, replicas := range []int{2, 3} {
		var took []time.Duration
		for flip := range 2 * replicas {
			took = append(took, p.follow(t, func() { p.Balancer().FlipTo(flip % replicas) })...)
		}
		within := 0
		for _, d := range took {
			if d <= soon {
				within++
			}
		}
		shared.figures.note(t, fmt.Sprintf("informers up to date after a flip between %d replicas", replicas),
			"%s; %d within %v", spread(took), within, soon)
	}
	for _, i := range old {
		i.checkEqual(t, p.access)
	}
	p.Balancer().Spread()
	p.checkReplicasAgree(t)
}

func TestInformersFollowACut(t *testing.T) { eitherHistory(t, informersFollowACut) }

func informersFollowACut(t *testing.T, p *platform) {
	p.populate(t)
	for _, affinity := range []bool{false, true} {
		p.Balancer().SetAffinity(affinity)
		took := append(p.follow(t, p.Balancer().Cut), p.follow(t, p.Balancer().Cut)...)
		shared.figures.note(t, fmt.Sprintf("informers up to date after all connections are cut, affinity %v", affinity), "%s", spread(took))
	}
	p.Balancer().SetAffinity(false)
}

func TestRollingRestartsUnderLoad(t *testing.T) { eitherHistory(t, rollingRestartsUnderLoad) }

func rollingRestartsUnderLoad(t *testing.T, p *platform) {
	p.populate(t)
	old := p.startInformers(t)
	work := p.startLoad(t)
	users := p.startUsers(t)
	for range 3 {
		users.awaitRequests(t, 50)
		if err := p.RestartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	users.awaitRequests(t, 50)
	users.check(t)
	work.end()
	for _, i := range old {
		i.checkEqual(t, p.access)
	}
	p.checkReplicasAgree(t)
}

func TestAReplicaIsKilledUnderLoad(t *testing.T) { eitherHistory(t, aReplicaIsKilledUnderLoad) }

func aReplicaIsKilledUnderLoad(t *testing.T, p *platform) {
	p.populate(t)
	work := p.startLoad(t)
	var took []time.Duration
	for victim := range p.Replicas() {
		p.Balancer().FlipTo(victim)
		p.awaitServed(t)
		p.Balancer().Spread()
		took = append(took, p.follow(t, func() {
			if err := p.Processes().Kill(p.Replica(victim)); err != nil {
				t.Fatal(err)
			}
		})...)
		if err := p.RollReplica(t.Context(), victim); err != nil {
			t.Fatal(err)
		}
	}
	shared.figures.note(t, "informers up to date after kill -9 of the replica that served them", "%s", spread(took))
	work.end()
	p.checkReplicasAgree(t)
}

func TestOfFiftyCreatesOverTheReplicasOneMakesTheImage(t *testing.T) {
	eitherHistory(t, ofFiftyCreatesOverTheReplicasOneMakesTheImage)
}

func ofFiftyCreatesOverTheReplicasOneMakesTheImage(t *testing.T, p *platform) {
	const schematic = "wanted"
	p.Create(t, objects.StorageClasses, defaultClass())
	p.Create(t, objects.ConfigMaps, catalogOf(schematic))
	t.Cleanup(func() { p.Remove(t, objects.DataVolumes, objects.Goldens, objects.NameOf(schematic)) })
	replicas := make([]access, p.Replicas())
	for i := range replicas {
		replicas[i] = p.direct(t, i)
		await.For(t, "the replica to know the catalog", func(ctx context.Context) error {
			_, err := replicas[i].images.Create(ctx, newImage(schematic), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	answers := make([]error, 50)
	var running sync.WaitGroup
	for i := range answers {
		running.Go(func() {
			_, answers[i] = replicas[i%len(replicas)].images.Create(t.Context(), newImage(schematic), metav1.CreateOptions{})
		})
	}
	running.Wait()
	made, refused := 0, 0
	for _, err := range answers {
		switch {
		case err == nil:
			made++
		case apierrors.IsAlreadyExists(err):
			refused++
		default:
			t.Errorf("got %v", err)
		}
	}
	if made != 1 || refused != len(answers)-1 {
		t.Errorf("%d were answered with 201 and %d with 409", made, refused)
	}
	// What one replica answered with is at the others within moments.
	p.checkReplicasAgree(t)
}

// checkReplicasAgree makes sure that all replicas come to show the same, the uids included.
func (p *platform) checkReplicasAgree(t *testing.T) {
	t.Helper()
	replicas := make([]access, p.Replicas())
	for i := range replicas {
		replicas[i] = p.direct(t, i)
	}
	took := await.For(t, "the replicas to agree", func(ctx context.Context) error {
		first, err := replicas[0].state(ctx)
		if err != nil {
			return err
		}
		for i := 1; i < len(replicas); i++ {
			other, err := replicas[i].state(ctx)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(first, other, apart); diff != "" {
				return fmt.Errorf("(-replica 0 +replica %d):\n%s", i, diff)
			}
		}
		return nil
	})
	shared.figures.note(t, "until all replicas show the same", "%v", rounded(took))
}

// A plain watch ends with its replica, and kubectl does not begin another by itself. A new one begins with all images.
func TestAPlainWatchEndsWithItsReplica(t *testing.T) { eitherHistory(t, aPlainWatchEndsWithItsReplica) }

func aPlainWatchEndsWithItsReplica(t *testing.T, p *platform) {
	p.populate(t)
	p.Balancer().FlipTo(0)
	p.awaitServed(t)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	watch := exec.CommandContext(ctx, p.Kubectl(), "--kubeconfig", p.Kubeconfig(), "get", "workerimages", "-w", "--no-headers")
	out := &output{}
	watch.Stdout, watch.Stderr = out, out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	await.For(t, "kubectl to list", func(context.Context) error {
		if n := strings.Count(out.String(), "\n"); n < population {
			return fmt.Errorf("%d lines", n)
		}
		return nil
	})
	p.mark(t)
	p.Balancer().FlipTo(1)
	err := watch.Wait()
	if ctx.Err() != nil {
		t.Fatalf("kubectl goes on with a watch that nobody answers:\n%s", out)
	}
	shared.figures.note(t, "kubectl get -w, when its replica goes away", "%d lines, then it ends: %v", strings.Count(out.String(), "\n"), err)
	if again, err := p.images.List(t.Context(), metav1.ListOptions{}); err != nil || len(again.Items) != population {
		t.Errorf("a list after that: %v", err)
	}
}

// A version of one replica is none of another's: a client is told to list again, and never shown a mixture.
func TestAVersionOfOneReplicaIsExpiredAtAnother(t *testing.T) {
	p := threeReplicas(t)
	p.populate(t)
	list, err := p.direct(t, 0).images.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other := p.direct(t, 1)
	_, err = other.images.List(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a list: %v", err)
	}
	events, err := other.images.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	event := <-events.ResultChan()
	if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch: %v", err)
	}
}

// output is what a program has written so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

const patch = "patch"

// users list, get and label images through client-go, as programs do.
type users struct {
	stop func()

	mu    sync.Mutex
	count int
	// crossed are writes that met the end of a connection on their way.
	crossed int
	errs    map[string]error
}

// startUsers runs until it is told to stop, or the test ends.
func (p *platform) startUsers(t *testing.T) *users {
	t.Helper()
	u := &users{errs: map[string]error{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for verb, do := range map[string]func(context.Context, int) error{
		"list": func(ctx context.Context, _ int) error {
			list, err := p.images.List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) < population {
				err = fmt.Errorf("%d images", len(list.Items))
			}
			return err
		},
		"get": func(ctx context.Context, _ int) error {
			_, err := p.images.Get(ctx, used, metav1.GetOptions{})
			return err
		},
		patch: func(ctx context.Context, i int) error {
			label := fmt.Appendf(nil, `{"metadata":{"labels":{"round":"%d"}}}`, i)
			image, err := p.images.Patch(ctx, used, types.MergePatchType, label, metav1.PatchOptions{})
			if err == nil && image.Labels["round"] != fmt.Sprint(i) {
				err = fmt.Errorf("the label is %q", image.Labels["round"])
			}
			return err
		},
	} {
		running.Go(func() {
			i := 0
			wait.UntilWithContext(ctx, func(ctx context.Context) {
				i++
				u.note(verb, do(ctx, i))
			}, await.Interval)
		})
	}
	u.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(u.stop)
	return u
}

func (u *users) note(verb string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	switch {
	case verb == patch && isCrossed(err):
		u.crossed++
	case err != nil:
		u.errs[verb+": "+err.Error()] = err
	}
}

// isCrossed tells that kube-apiserver had sent a request on when the replica said that its connection ends. It sends those
// again that have no body, and cannot do so with the others.
func isCrossed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusServiceUnavailable {
		return false
	}
	_, isToldToRetry := apierrors.SuggestsClientDelay(err)
	return !isToldToRetry
}

func (u *users) awaitRequests(t *testing.T, more int) {
	t.Helper()
	u.mu.Lock()
	until := u.count + more
	u.mu.Unlock()
	await.For(t, "requests", func(context.Context) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.count < until {
			return fmt.Errorf("%d to go", until-u.count)
		}
		return nil
	})
}

// check ends the requests and fails the test for every error.
func (u *users) check(t *testing.T) {
	t.Helper()
	u.stop()
	for what := range u.errs {
		t.Error(what)
	}
	shared.figures.note(t, "errors that client-go let its callers see", "%d of %d requests, all of them writes that met the end of a connection", u.crossed, u.count)
}

func newImage(schematic string) *v1alpha1.WorkerImage {
	return &v1alpha1.WorkerImage{Spec: v1alpha1.WorkerImageSpec{SchematicID: schematic, Version: objects.Release}}
}
