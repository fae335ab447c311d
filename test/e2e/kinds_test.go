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
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// soon is how long it may take until a kind that appears shows.
const soon = 30 * time.Second

// The stack is the test's own: it takes the kinds away that everything else needs.
func TestKindsComeAndGo(t *testing.T) {
	whole := t
	p := newPlatform(t, startStack(t, stack.Options{KindsOnly: true}))
	cdiKinds, poolKinds := p.takeKinds(t, "cdi.kubevirt.io"), p.takeKinds(t, "apps.cozystack.io")
	const schematic = "unforeseen"
	name := objects.NameOf(schematic)

	t.Run("without CDI the server is ready, and has no list rather than an empty one", func(t *testing.T) {
		// The server that starts now has never seen the kinds.
		if err := p.Processes().Kill(cluster.ServerName); err != nil {
			t.Fatal(err)
		}
		lists := p.listWhile(t, func() { p.restartServer(t) })
		for _, a := range append(lists, p.wire.Get(t, workerImages, wire.JSON), p.wire.Get(t, workerImages+"/"+name, wire.JSON), p.wire.Get(t, workerImages+"?watch=1&timeoutSeconds=1", wire.JSON)) {
			if a.Status != http.StatusServiceUnavailable {
				t.Errorf("the answer is %d: %s", a.Status, a.Body)
			}
		}
		a := p.wire.Get(t, workerImages, wire.JSON)
		if a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), "datavolumes") {
			t.Errorf("the answer does not say when to come back or what is missing: %v %s", a.Header, a.Body)
		}
		equal(t, p.wire.Get(t, group, wire.JSON).Status, http.StatusOK)
		p.checkReady(t)
	})
	t.Run("goldens appear with their kind", func(t *testing.T) {
		p.giveKinds(t, cdiKinds)
		golden := p.createGolden(whole, objects.NewGolden(schematic))
		began := time.Now()
		image := p.awaitImage(t, name, "there", exists)
		within(t, began, soon)
		checkIdentity(t, image, golden)
		used := condition(image, v1alpha1.ConditionInUse)
		equal(t, used.Status, metav1.ConditionUnknown)
		equal(t, used.Reason, "SourceNotReadable")
	})
	t.Run("pools appear with theirs", func(t *testing.T) {
		p.giveKinds(t, poolKinds)
		p.Create(whole, objects.Pools, objects.NewPool("tenant-a", "unforeseen", "md0", "replicated", schematic))
		began := time.Now()
		p.awaitImage(t, name, "in use", func(image *v1alpha1.WorkerImage) bool {
			return condition(image, v1alpha1.ConditionInUse).Status == metav1.ConditionTrue && image.Status.PoolCount == 1
		})
		within(t, began, soon)
	})
	t.Run("without the kind of pools nobody knows whether a golden is in use", func(t *testing.T) {
		p.takeKinds(t, "apps.cozystack.io")
		image := p.awaitImage(t, name, "perhaps in use", func(image *v1alpha1.WorkerImage) bool {
			return condition(image, v1alpha1.ConditionInUse).Status == metav1.ConditionUnknown
		})
		equal(t, image.Status.Phase, v1alpha1.WorkerImagePending)
		equal(t, p.wire.Get(t, workerImages, wire.JSON).Status, http.StatusOK)
		p.checkReady(t)
	})
}

func within(t *testing.T, began time.Time, limit time.Duration) {
	t.Helper()
	if took := time.Since(began); took > limit {
		t.Errorf("it took %v", took)
	}
}

// checkReady asks the server itself, as a kubelet does.
func (p *platform) checkReady(t *testing.T) {
	t.Helper()
	config := p.ReplicaConfig(0)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	equal(t, response.StatusCode, http.StatusOK)
}

// takeKinds deletes the kinds of a group and returns what was deleted.
func (p *platform) takeKinds(t *testing.T, group string) []*unstructured.Unstructured {
	t.Helper()
	all, err := p.Resource(objects.Kinds, "").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var taken []*unstructured.Unstructured
	for i := range all.Items {
		kind := &all.Items[i]
		if of, _, _ := unstructured.NestedString(kind.Object, "spec", "group"); of == group {
			p.Remove(t, objects.Kinds, "", kind.GetName())
			taken = append(taken, kind)
		}
	}
	if len(taken) == 0 {
		t.Fatalf("there is no kind of %s", group)
	}
	return taken
}

// giveKinds makes kinds again and waits until they are served.
func (p *platform) giveKinds(t *testing.T, taken []*unstructured.Unstructured) {
	t.Helper()
	for _, kind := range taken {
		again := objects.New(kind.GetAPIVersion(), kind.GetKind(), "", kind.GetName())
		again.Object["spec"] = kind.Object["spec"]
		if _, err := p.Resource(objects.Kinds, "").Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		await.For(t, "kind "+kind.GetName(), func(ctx context.Context) error {
			now, err := p.Resource(objects.Kinds, "").Get(ctx, kind.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			return established(now)
		})
	}
}

func established(kind *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(kind.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return nil
		}
	}
	return errors.New("it is not established")
}

// listWhile lists over and over while something is done, and returns the answers.
func (p *platform) listWhile(t *testing.T, do func()) []wire.Answer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var answers []wire.Answer
	var listing sync.WaitGroup
	listing.Go(func() {
		for ctx.Err() == nil {
			// What does not arrive is not an answer.
			if a, err := p.wire.Try(ctx, http.MethodGet, workerImages, wire.Accepting(wire.JSON), ""); err == nil {
				answers = append(answers, a)
			}
		}
	})
	defer listing.Wait()
	defer cancel()
	do()
	cancel()
	listing.Wait()
	return answers
}
