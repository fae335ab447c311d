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

package view_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/install"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/workerimage"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

var poolResource = schema.GroupVersionResource{Group: "apps.cozystack.io", Version: "v1alpha1", Resource: "kubernetesnodeses"}

// fixture serves WorkerImages from a log that the test writes.
type fixture struct {
	*workerimage.REST
	log        *memory.Log
	authorizer *grants
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{
		log:        memory.NewLog(memory.LogOptions{First: 1 << 32, Attrs: workerimage.Attributes}),
		authorizer: &grants{namespaces: map[string][]string{}},
	}
	f.log.SetReady(true)
	f.REST = f.serve(t, view.New(view.Config{
		Authorizer:   f.authorizer,
		PoolResource: func() schema.GroupVersionResource { return poolResource },
	}))
	return f
}

func (f *fixture) serve(t testing.TB, callers *view.View) *workerimage.REST {
	t.Helper()
	scheme := newScheme()
	served, err := workerimage.NewREST(workerimage.Config{
		Scheme: scheme,
		Codec:  serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion),
		Storage: memory.New(memory.Options{
			Log: f.log, Backend: atOnce{f.log}, Resource: images.Resource("workerimages"), Prefix: workerimage.KeyPrefix,
			NewFunc: func() runtime.Object { return &images.WorkerImage{} },
		}),
		Plan:      func(golden.ID) (catalog.Entry, field.ErrorList) { return catalog.Entry{}, nil },
		Plannable: func() error { return nil },
		Observer:  unobserved{},
		View:      callers,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(served.Destroy)
	return served
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

// set publishes an image that is used by pools, each given as namespace/name or namespace/name=disks.
func (f *fixture) set(t testing.TB, version string, pools ...string) {
	t.Helper()
	image := newImage(version, pools...)
	if _, err := f.log.Apply(key(image.Name), image); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) remove(t testing.TB, version string) {
	t.Helper()
	if _, err := f.log.Remove(key(nameOf(version))); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) resourceVersion() string { return strconv.FormatUint(f.log.ResourceVersion(), 10) }

func key(name string) string { return workerimage.KeyPrefix + "/" + name }

func nameOf(version string) string { return golden.ID{SchematicID: "aaa", Version: version}.Name() }

func newImage(version string, pools ...string) *images.WorkerImage {
	image := &images.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(version), UID: "1", Generation: 1},
		Spec:       images.WorkerImageSpec{SchematicID: "aaa", Version: version},
		Status: images.WorkerImageStatus{
			Phase:      images.WorkerImageReady,
			PoolCount:  int32(len(pools)),
			Conditions: []metav1.Condition{{Type: images.ConditionDeletable, Status: metav1.ConditionTrue}},
		},
	}
	if len(pools) > 0 {
		image.Status.Conditions[0] = metav1.Condition{
			Type: images.ConditionDeletable, Status: metav1.ConditionFalse, Reason: "InUse", Message: "At least one pool asks for the image.",
		}
	}
	for _, p := range pools {
		id, disks, _ := strings.Cut(p, "=")
		namespace, name, _ := strings.Cut(id, "/")
		cloned, _ := strconv.ParseInt(disks, 10, 32)
		image.Status.Pools = append(image.Status.Pools, images.PoolStatus{Namespace: namespace, Name: name, Disks: images.DiskCounts{Cloned: int32(cloned)}})
	}
	return image
}

// describe tells the version, the pools and the count of an image, and the phase of an entry besides.
func describe(obj runtime.Object) string {
	switch o := obj.(type) {
	case *images.WorkerImage:
		return describeUses(o.Spec.Version, o.Status.Pools, o.Status.PoolCount)
	case *images.CatalogEntry:
		return describeUses(o.Spec.Version+" "+string(o.Status.Phase), o.Status.Pools, o.Status.PoolCount)
	}
	return fmt.Sprintf("%T", obj)
}

func describeUses(what string, pools []images.PoolStatus, count int32) string {
	out := []string{what}
	for _, p := range pools {
		name := p.Namespace + "/" + p.Name
		if p.Disks.Cloned > 0 {
			name += fmt.Sprintf("=%d", p.Disks.Cloned)
		}
		out = append(out, name)
	}
	if int(count) != len(pools) {
		out = append(out, fmt.Sprintf("count %d", count))
	}
	return strings.Join(out, " ")
}

// as is the context of a request by a user of that name.
func as(t testing.TB, name string) context.Context {
	ctx := request.WithNamespace(t.Context(), metav1.NamespaceNone)
	return request.WithUser(ctx, &user.DefaultInfo{Name: name, Groups: []string{"group of " + name}, Extra: map[string][]string{"scopes": {name}}})
}

// grants is an authorizer: the namespaces that each user may get pools in. Every user of * may in all.
type grants struct {
	mu         sync.Mutex
	namespaces map[string][]string
	questions  []authorizer.AttributesRecord
	err        error
	// onlyCount is true for benchmarks, which change nothing here and remember no question.
	onlyCount bool
	count     atomic.Int64
	// hold is called by each question before it is answered.
	hold func(context.Context)
}

func (g *grants) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if g.onlyCount {
		return g.decide(a), "", nil
	}
	g.mu.Lock()
	g.questions = append(g.questions, a.(authorizer.AttributesRecord))
	hold := g.hold
	g.mu.Unlock()
	if hold != nil {
		hold(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil || ctx.Err() != nil {
		return authorizer.DecisionAllow, "", cmp.Or(g.err, ctx.Err())
	}
	return g.decide(a), "", nil
}

func (g *grants) decide(a authorizer.Attributes) authorizer.Decision {
	g.count.Add(1)
	allowed := g.namespaces[a.GetUser().GetName()]
	if slices.Contains(allowed, "*") || a.GetNamespace() != "" && slices.Contains(allowed, a.GetNamespace()) {
		return authorizer.DecisionAllow
	}
	return authorizer.DecisionNoOpinion
}

func (g *grants) grant(name string, namespaces ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.namespaces[name] = namespaces
}

func (g *grants) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// hang answers no question until its caller gives up.
func (g *grants) hang() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = func(ctx context.Context) { <-ctx.Done() }
}

// answerAfter answers no question before a channel is closed, whatever becomes of its caller.
func (g *grants) answerAfter(release <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = func(context.Context) { <-release }
}

// asked returns the namespaces that were asked about since it was called last, sorted; - stands for all.
func (g *grants) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for _, q := range g.questions {
		if q.Namespace == "" {
			q.Namespace = "-"
		}
		out = append(out, q.Namespace)
	}
	g.questions = nil
	slices.Sort(out)
	return out
}

// reader describes the events of a watch. It is for use in a synctest bubble.
type reader struct{ watch.Interface }

// expect compares all that was sent until nothing moves.
func (r reader) expect(t testing.TB, want ...string) {
	t.Helper()
	if diff := gocmp.Diff(want, r.drain()); diff != "" {
		t.Errorf("unexpected events (-want +got):\n%s", diff)
	}
}

func (r reader) drain() (events []string) {
	for synctest.Wait(); ; synctest.Wait() {
		select {
		case e, ok := <-r.ResultChan():
			if !ok {
				return append(events, "closed")
			}
			events = append(events, describeEvent(e))
		default:
			return events
		}
	}
}

func describeEvent(e watch.Event) string {
	if o, ok := e.Object.(runtime.CacheableObject); ok {
		return fmt.Sprintf("%s shared %s", e.Type, describe(o.GetObject()))
	}
	if status, ok := e.Object.(*metav1.Status); ok {
		return fmt.Sprintf("%s %d %s", e.Type, status.Code, status.Reason)
	}
	if e.Type == watch.Bookmark {
		return string(e.Type)
	}
	return fmt.Sprintf("%s %s", e.Type, describe(e.Object))
}

// unobserved is nobody who wants to know what becomes of writes.
type unobserved struct{}

func (unobserved) Wrote(string, error) {}

func (unobserved) RefusedDelete(string) {}

// atOnce is a backend that writes to the log itself.
type atOnce struct{ log *memory.Log }

func (b atOnce) Create(_ context.Context, key string, obj runtime.Object) (memory.Visible, error) {
	return b.apply(key, obj)
}

func (b atOnce) Update(_ context.Context, key string, _, obj runtime.Object) (memory.Visible, error) {
	return b.apply(key, obj)
}

func (b atOnce) Delete(_ context.Context, key string, _ runtime.Object) (memory.Visible, error) {
	_, err := b.log.Remove(key)
	return done, err
}

func (b atOnce) apply(key string, obj runtime.Object) (memory.Visible, error) {
	_, err := b.log.Apply(key, obj)
	return done, err
}

func done(runtime.Object) bool { return true }

var errAuthorizer = errors.New("tenant-b cannot be asked about")

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
