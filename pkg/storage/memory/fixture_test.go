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

package memory

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// fixture is a storage of pods whose backend writes to the log at once.
type fixture struct {
	*Storage
	log *Log
}

var started = time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)

func newFixture(t testing.TB, change ...func(*LogOptions, *Options)) *fixture {
	t.Helper()
	logOptions := LogOptions{First: FirstResourceVersion(started, "test"), Attrs: podAttrs}
	options := Options{
		Resource: schema.GroupResource{Resource: "pods"},
		Prefix:   "/pods",
		NewFunc:  func() runtime.Object { return &example.Pod{} },
	}
	for _, c := range change {
		c(&logOptions, &options)
	}
	options.Log = NewLog(logOptions)
	options.Log.SetReady(true)
	f := &fixture{log: options.Log}
	if options.Backend == nil {
		options.Backend = atOnce{f.log}
	}
	f.Storage = New(options)
	return f
}

func podAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not a pod", obj)
	}
	return labels.Set(pod.Labels), fields.Set{
		"metadata.name":      pod.Name,
		"metadata.namespace": pod.Namespace,
		"spec.nodeName":      pod.Spec.NodeName,
	}, nil
}

// version is that of the n-th event.
func (f *fixture) version(n int) string {
	return strconv.FormatUint(f.log.first+uint64(n), 10)
}

// set publishes a pod with one label, and returns the log's version.
func (f *fixture) set(t testing.TB, name, label string) string {
	t.Helper()
	apply(t, f.log, podKey(name), newPod(name, label))
	return strconv.FormatUint(f.log.ResourceVersion(), 10)
}

func (f *fixture) remove(t testing.TB, name string) string {
	t.Helper()
	if _, err := f.log.Remove(podKey(name)); err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(f.log.ResourceVersion(), 10)
}

func (f *fixture) list(ctx context.Context, opts storage.ListOptions) (*example.PodList, error) {
	opts.Recursive = true
	list := &example.PodList{}
	return list, f.GetList(ctx, "/pods", opts, list)
}

// watch starts a watch and describes its events by versions counted from the first.
func (f *fixture) watch(ctx context.Context, t testing.TB, opts storage.ListOptions) *reader {
	t.Helper()
	opts.Recursive = true
	w, err := f.Watch(ctx, "/pods", opts)
	if err != nil {
		t.Fatal(err)
	}
	return &reader{Interface: w, first: f.log.first}
}

func podKey(name string) string { return "/pods/" + name }

func newPod(name, label string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": label}}}
}

// everything, with a selector of pods' one label if given.
func selecting(label ...string) storage.SelectionPredicate {
	pred := storage.Everything
	if len(label) > 0 {
		pred.Label = labels.SelectorFromSet(labels.Set{"l": label[0]})
	}
	return pred
}

var listEverything = storage.ListOptions{Predicate: storage.Everything}

func withBookmarks(pred storage.SelectionPredicate) storage.SelectionPredicate {
	pred.AllowWatchBookmarks = true
	return pred
}

func describeList(list *example.PodList) []string {
	var out []string
	for _, pod := range list.Items {
		out = append(out, pod.Name+"="+pod.Labels["l"])
	}
	return out
}

type reader struct {
	watch.Interface
	first uint64
}

// drain waits until nothing moves, and describes all that was sent until then. It is for use in a
// synctest bubble.
func (r *reader) drain(t testing.TB) (events []string) {
	t.Helper()
	for synctest.Wait(); ; synctest.Wait() {
		select {
		case e, ok := <-r.ResultChan():
			if !ok {
				return append(events, "closed")
			}
			events = append(events, r.describe(t, e))
		default:
			return events
		}
	}
}

func (r *reader) describe(t testing.TB, e watch.Event) string {
	t.Helper()
	if e.Type == watch.Error {
		return "ERROR " + string(apierrors.ReasonForError(apierrors.FromObject(e.Object)))
	}
	pod := toPod(t, e.Object)
	words := []string{string(e.Type)}
	if e.Type == watch.Bookmark {
		if pod.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			words = append(words, "initial-events-end")
		}
	} else {
		words = append(words, pod.Name+"="+pod.Labels["l"])
	}
	return strings.Join(append(words, fmt.Sprintf("at %d", parse(t, pod.ResourceVersion)-r.first)), " ")
}

func toPod(t testing.TB, obj runtime.Object) *example.Pod {
	t.Helper()
	if shared, ok := obj.(runtime.CacheableObject); ok {
		obj = shared.GetObject()
	}
	pod, ok := obj.(*example.Pod)
	if !ok {
		t.Fatalf("%T is not a pod", obj)
	}
	return pod
}

// volume has the kinds of values that change when they are read, or read alike when they differ.
type volume struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Size     resource.Quantity
	Limit    *resource.Quantity
	ByPool   map[string]resource.Quantity
	Replicas []resource.Quantity
	Imported metav1.Time
	Renewed  metav1.MicroTime
}

func (v *volume) DeepCopyObject() runtime.Object {
	out := *v
	v.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Size = v.Size.DeepCopy()
	if v.Limit != nil {
		limit := v.Limit.DeepCopy()
		out.Limit = &limit
	}
	out.ByPool = maps.Clone(v.ByPool)
	out.Replicas = append([]resource.Quantity(nil), v.Replicas...)
	return &out
}

func volumeAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	return accessor.GetLabels(), fields.Set{"metadata.name": accessor.GetName()}, nil
}

// atOnce is a backend whose writes are in the log when it returns.
type atOnce struct{ log *Log }

func (b atOnce) Create(_ context.Context, key string, obj runtime.Object) (Visible, error) {
	return visibleAtOnce, b.apply(key, obj)
}

func (b atOnce) Update(_ context.Context, key string, old, obj runtime.Object) (Visible, error) {
	if err := b.check(key, old); err != nil {
		return nil, err
	}
	return visibleAtOnce, b.apply(key, obj)
}

func (b atOnce) Delete(_ context.Context, key string, old runtime.Object) (Visible, error) {
	if err := b.check(key, old); err != nil {
		return nil, err
	}
	_, err := b.log.Remove(key)
	return visibleAtOnce, err
}

func (b atOnce) apply(key string, obj runtime.Object) error {
	_, err := b.log.Apply(key, obj)
	return err
}

func (b atOnce) check(key string, old runtime.Object) error {
	if obj, _ := b.log.Get(key); obj != old {
		return conflict(key)
	}
	return nil
}

func visibleAtOnce(runtime.Object) bool { return true }

func conflict(key string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, key, fmt.Errorf("it has changed"))
}

// compactTo forgets the events up to rv.
func (l *Log) compactTo(rv uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.ring.len > 0 && l.ring.at(0).rv <= rv {
		l.ring.evict()
	}
	l.compacted = max(l.compacted, min(rv, l.rv))
}

func apply(t testing.TB, l *Log, key string, obj runtime.Object) {
	t.Helper()
	if _, err := l.Apply(key, obj); err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, rv string) uint64 {
	t.Helper()
	parsed, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
