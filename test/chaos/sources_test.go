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
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// usersUnknown is the check of an image that is known, but not who uses it.
func usersUnknown(image *v1alpha1.WorkerImage) error {
	return errors.Join(
		has(v1alpha1.ConditionReady, metav1.ConditionTrue)(image),
		has(v1alpha1.ConditionInUse, metav1.ConditionUnknown)(image),
		has(v1alpha1.ConditionDeletable, metav1.ConditionFalse)(image))
}

func TestTheServerOfThePoolsFails(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	s := p.replacePools(t, objects.NewPool("tenant-a", "chaos", "md0", "", schematicOf(0)), objects.NewPool("tenant-b", "chaos", "md0", "", schematicOf(0)),
		objects.NewPool("tenant-c", "chaos", "md0", "", schematicOf(0)))
	p.awaitHealthy(t)
	for _, failure := range []struct {
		name   string
		manner manner
	}{
		{"it is absent", absent},
		{"it does not answer", slow},
		{"it is unavailable", unavailable},
		{"it answers garbage", garbage},
	} {
		t.Run(failure.name, func(t *testing.T) {
			users, discovery, others := p.look(t, workerImages), p.look(t, group), p.look(t, otherKind)
			s.behave(t, failure.manner)
			took := p.every(t, "without known users", usersUnknown)
			shared.figures.note(t, "until InUse is Unknown", "%v", rounded(took))
			p.checkDeleteRefused(t, spare, http.StatusConflict)
			p.awaitLabel(t, spare, failure.name)
			shared.figures.note(t, "slowest list, discovery and other kind meanwhile", "%v, %v, %v",
				rounded(users.check(t, "a list of images", http.StatusOK)),
				rounded(discovery.check(t, "discovery", http.StatusOK)),
				rounded(others.check(t, "a list of another kind", http.StatusOK)))
			s.behave(t, serving)
			shared.figures.note(t, "from the end of the failure until users are known", "%v", rounded(p.awaitHealthy(t)))
		})
	}
	p.checkNothingLost(t)
}

// awaitLabel makes sure that an image can be labelled, whoever uses it.
func (p *platform) awaitLabel(t *testing.T, name, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"chaos":%q}}}`, value)
	if _, err := p.images.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

func TestTheRightToReadASourceIsRevoked(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	t.Run("of the pools", func(t *testing.T) {
		giveBack := p.revoke(t, objects.Pools.Resource)
		// A watch that is open stays open, and tells the truth. The next list is refused.
		p.awaitHealthy(t)
		if err := p.RestartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.every(t, "without known users", usersUnknown)
		p.checkDeleteRefused(t, spare, http.StatusConflict)
		giveBack()
		shared.figures.note(t, "from the right given back until all is known", "%v", rounded(p.awaitHealthy(t)))
	})
	t.Run("of the goldens", func(t *testing.T) {
		giveBack := p.revoke(t, objects.DataVolumes.Resource)
		if err := p.Processes().Restart(cluster.ServerName); err != nil {
			t.Fatal(err)
		}
		await.For(t, "the server to say that it cannot know", p.turnedAway)
		discovery := p.look(t, group)
		p.checkTurnedAway(t)
		giveBack()
		shared.figures.note(t, "from the right given back until all is known", "%v", rounded(p.awaitHealthy(t)))
		discovery.check(t, "discovery", http.StatusOK)
	})
	p.checkNothingLost(t)
}

// turnedAway returns an error unless clients are told to come again, with the source that is missing.
func (p *platform) turnedAway(ctx context.Context) error {
	a, err := p.ask(ctx, workerImages)
	if err == nil && (a.Status != http.StatusServiceUnavailable && a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "") {
		err = fmt.Errorf("%d, Retry-After %q: %s", a.Status, a.Header.Get("Retry-After"), a.Body)
	}
	return err
}

func (p *platform) checkTurnedAway(t *testing.T) {
	t.Helper()
	if err := p.turnedAway(t.Context()); err != nil {
		t.Error(err)
	}
}

// revoke takes the right to read a kind from the server. It is given back by the function that is returned, or when the
// test ends.
func (p *platform) revoke(t *testing.T, resource string) (giveBack func()) {
	t.Helper()
	role, err := p.Resource(objects.ClusterRoles, "").Get(t.Context(), cluster.ServerName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules := role.Object["rules"].([]any)
	var left []any
	for _, rule := range rules {
		rule := rule.(map[string]any)
		var resources []any
		for _, r := range rule["resources"].([]any) {
			if r != resource {
				resources = append(resources, r)
			}
		}
		if len(resources) > 0 {
			left = append(left, map[string]any{"apiGroups": rule["apiGroups"], "resources": resources, "verbs": rule["verbs"]})
		}
	}
	p.setRules(t, left)
	giveBack = func() { p.setRules(t, rules) }
	t.Cleanup(giveBack)
	return giveBack
}

func (p *platform) setRules(t *testing.T, rules []any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"rules": rules})
	if err != nil {
		t.Fatal(err)
	}
	p.Patch(t, objects.ClusterRoles, "", cluster.ServerName, string(patch))
}

func TestThePoolsKindGoesAndComes(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	others, discovery := p.look(t, otherKind), p.look(t, group)
	giveBack := p.takeAwayKind(t, objects.Pools.GroupResource().String())
	shared.figures.note(t, "until users are unknown", "%v", rounded(p.every(t, "without known users", usersUnknown)))
	p.checkDeleteRefused(t, spare, http.StatusConflict)

	// So it is for a server that starts without the kind.
	if err := p.RestartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.every(t, "without known users", usersUnknown)
	p.checkDeleteRefused(t, spare, http.StatusConflict)
	giveBack()
	began := time.Now()
	for _, tenant := range tenants {
		p.makeAgain(t, objects.Pools, objects.NewPool(tenant, "chaos", "md0", "", schematicOf(0)))
	}
	p.awaitHealthy(t)
	shared.figures.note(t, "from the return of the kind until its objects are known", "%v", rounded(time.Since(began)))
	discovery.check(t, "discovery", http.StatusOK, http.StatusServiceUnavailable)
	others.check(t, "a list of another kind", http.StatusOK)
	p.checkNothingLost(t)
}

// With the kind of the goldens its objects are deleted, and with them the images: that is the truth. A server that starts
// without the kind knows no truth.
func TestTheGoldensKindGoesAndComes(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	others, discovery := p.look(t, otherKind), p.look(t, group)
	giveBack := p.takeAwayKind(t, objects.DataVolumes.GroupResource().String())
	await.For(t, "the images to be gone, or unknown", func(ctx context.Context) error {
		list, err := p.images.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := unknown(&list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err := p.Processes().Restart(cluster.ServerName); err != nil {
		t.Fatal(err)
	}
	await.For(t, "the server to say that it cannot know", p.turnedAway)
	giveBack()
	began := time.Now()
	p.populateAgain(t)
	p.awaitHealthy(t)
	shared.figures.note(t, "from the return of the kind until its objects are known", "%v", rounded(time.Since(began)))
	discovery.check(t, "discovery", http.StatusOK, http.StatusServiceUnavailable)
	others.check(t, "a list of another kind", http.StatusOK)
	p.checkNothingLost(t)
}

// populateAgain makes the goldens that went with their kind.
func (p *platform) populateAgain(t *testing.T) {
	t.Helper()
	for i := range population {
		p.Remove(t, objects.Claims, objects.Goldens, objects.NameOf(schematicOf(i)))
		golden := p.makeAgain(t, objects.DataVolumes, objects.NewGolden(schematicOf(i)))
		p.makeAgain(t, objects.Claims, objects.NewClaim(schematicOf(i), golden.GetUID()))
		p.finishImport(t, golden.GetName())
	}
}

func (p *platform) makeAgain(t *testing.T, resource schema.GroupVersionResource, object *unstructured.Unstructured) (made *unstructured.Unstructured) {
	t.Helper()
	await.For(t, object.GetName()+" to be made", func(ctx context.Context) (err error) {
		made, err = p.Resource(resource, object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	return made
}

// takeAwayKind removes a kind that is a custom resource, and its objects. It is given back by the function that is
// returned, or when the test ends.
func (p *platform) takeAwayKind(t *testing.T, name string) (giveBack func()) {
	t.Helper()
	kind, err := p.Resource(objects.Kinds, "").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Remove(t, objects.Kinds, "", name)
	fresh := objects.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name)
	fresh.SetAnnotations(kind.GetAnnotations())
	fresh.Object["spec"] = kind.Object["spec"]
	giveBack = func() {
		err := await.Poll(context.WithoutCancel(t.Context()), func(ctx context.Context) error {
			_, err := p.Resource(objects.Kinds, "").Create(ctx, fresh, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if err != nil {
			t.Errorf("give %s back: %v", name, err)
		}
	}
	t.Cleanup(giveBack)
	return giveBack
}
