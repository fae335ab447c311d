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

package option

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/install"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

const (
	goldens  = "cozy-public"
	patience = 10 * time.Second
)

// fixture is a REST storage on a log that the test writes.
type fixture struct {
	*REST
	log *memory.Log
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	f := &fixture{log: memory.NewLog(memory.LogOptions{First: 1, Attrs: Attributes})}
	s := memory.New(memory.Options{
		Log:      f.log,
		Resource: images.Resource("options"),
		Prefix:   KeyPrefix,
		NewFunc:  func() runtime.Object { return &images.Option{} },
	})
	var err error
	f.REST, err = NewREST(scheme, serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion), s, goldens)
	if err != nil {
		t.Fatal(err)
	}
	f.log.SetReady(true)
	f.offer(t, "v1.13.6")
	return f
}

// offer publishes an offer of images of the versions.
func (f *fixture) offer(t *testing.T, versions ...string) {
	t.Helper()
	var choices []projection.Choice
	for _, v := range versions {
		choices = append(choices, projection.Choice{ID: golden.ID{SchematicID: "gpu", Version: v}})
	}
	for _, option := range projection.Options(choices, golden.ID{SchematicID: "gpu", Version: "v1.13.6"}, goldens) {
		if _, err := f.log.Apply(KeyPrefix+"/"+option.Namespace+"/"+option.Name, option); err != nil {
			t.Fatal(err)
		}
	}
}

// content is what the log has, copied.
func (f *fixture) content() []runtime.Object {
	var out []runtime.Object
	for _, name := range []string{projection.OptionImages, projection.OptionSchematics, projection.OptionVersions} {
		obj, _ := f.log.Get(KeyPrefix + "/" + goldens + "/" + name)
		out = append(out, obj.DeepCopyObject())
	}
	return out
}

func in(ctx context.Context, namespace string) context.Context {
	return genericapirequest.WithNamespace(ctx, namespace)
}

func selecting(t *testing.T, selector string) *internalversion.ListOptions {
	t.Helper()
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return &internalversion.ListOptions{FieldSelector: parsed}
}

func (f *fixture) list(t *testing.T, namespace string, options *internalversion.ListOptions) *images.OptionList {
	t.Helper()
	obj, err := f.List(in(t.Context(), namespace), options)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*images.OptionList)
}

// keys are the namespaces and names of what a list holds.
func keys(list *images.OptionList) []string {
	out := []string{}
	for _, option := range list.Items {
		out = append(out, option.Namespace+"/"+option.Name)
	}
	return out
}

// three are the keys of the Options of a namespace.
func three(namespace string) []string {
	return []string{namespace + "/workerimage", namespace + "/workerimage-schematic", namespace + "/workerimage-version"}
}

// Guards: stamp and the copies it works on, in Get and in List.
func TestANamespaceReadsTheOptionsAsItsOwn(t *testing.T) {
	f := newFixture(t)
	before := f.content()
	for _, namespace := range []string{"tenant-a", "tenant-b", goldens} {
		obj, err := f.Get(in(t.Context(), namespace), projection.OptionVersions, &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := before[2].DeepCopyObject().(*images.Option)
		want.Namespace, want.UID = namespace, projection.OptionUID(namespace, projection.OptionVersions)
		if diff := cmp.Diff(want, obj); diff != "" {
			t.Errorf("get in %s (-want +got):\n%s", namespace, diff)
		}
		list := f.list(t, namespace, nil)
		if diff := cmp.Diff(three(namespace), keys(list)); diff != "" {
			t.Errorf("list in %s (-want +got):\n%s", namespace, diff)
		}
		if diff := cmp.Diff(want, &list.Items[2]); diff != "" {
			t.Errorf("item of a list in %s (-want +got):\n%s", namespace, diff)
		}
	}
	if diff := cmp.Diff(before, f.content()); diff != "" {
		t.Errorf("the log was written to (-before +after):\n%s", diff)
	}
}

// Guards: isIdentity for all namespaces.
func TestAllNamespacesHaveTheOptionsOfTheLog(t *testing.T) {
	f := newFixture(t)
	if diff := cmp.Diff(three(goldens), keys(f.list(t, metav1.NamespaceAll, nil))); diff != "" {
		t.Errorf("unexpected list (-want +got):\n%s", diff)
	}
}

// Guards: that the error of Get is handed on.
func TestWhatIsNotThereIsNotFoundInAnyNamespace(t *testing.T) {
	f := newFixture(t)
	for _, namespace := range []string{"tenant-a", goldens} {
		if _, err := f.Get(in(t.Context(), namespace), "gpu", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", namespace, err)
		}
	}
}

// Guards: listOptions: that the two namespaces change places, in a copy.
func TestSelectors(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		namespace, selector string
		want                []string
	}{
		{"tenant-a", "metadata.name=workerimage", []string{"tenant-a/workerimage"}},
		{"tenant-a", "metadata.name!=workerimage", []string{"tenant-a/workerimage-schematic", "tenant-a/workerimage-version"}},
		{"tenant-a", "metadata.name=gpu", nil},
		{"tenant-a", "metadata.namespace=tenant-a", three("tenant-a")},
		{"tenant-a", "metadata.namespace=tenant-b", nil},
		{"tenant-a", "metadata.namespace=cozy-public", nil},
		{"tenant-a", "metadata.namespace!=tenant-a", nil},
		{"tenant-a", "metadata.namespace!=cozy-public", three("tenant-a")},
		{"tenant-a", "metadata.namespace!=tenant-b", three("tenant-a")},
		{"tenant-a", "metadata.namespace=tenant-a,metadata.name=workerimage-version", []string{"tenant-a/workerimage-version"}},
		{"tenant-a", "metadata.namespace=cozy-public,metadata.name=workerimage-version", nil},
		{goldens, "metadata.namespace=cozy-public", three(goldens)},
		{goldens, "metadata.namespace=tenant-a", nil},
		{metav1.NamespaceAll, "metadata.namespace=cozy-public", three(goldens)},
		{metav1.NamespaceAll, "metadata.namespace=tenant-a", nil},
		{metav1.NamespaceAll, "metadata.name=workerimage", []string{goldens + "/workerimage"}},
	} {
		t.Run(test.selector+" in "+test.namespace, func(t *testing.T) {
			options := selecting(t, test.selector)
			want := test.want
			if want == nil {
				want = []string{}
			}
			if diff := cmp.Diff(want, keys(f.list(t, test.namespace, options))); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
			if got := options.FieldSelector.String(); got != selecting(t, test.selector).FieldSelector.String() {
				t.Errorf("the request was written to: %s", got)
			}
			if diff := cmp.Diff(want, f.watched(t, test.namespace, options)); diff != "" {
				t.Errorf("watch (-want +got):\n%s", diff)
			}
		})
	}
}

// watched are the keys that a watch begins with.
func (f *fixture) watched(t *testing.T, namespace string, options *internalversion.ListOptions) []string {
	t.Helper()
	options = options.DeepCopy()
	yes := true
	options.SendInitialEvents, options.AllowWatchBookmarks = &yes, true
	w, err := f.Watch(in(t.Context(), namespace), options)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	out := []string{}
	for event := next(t, w); event.Type != watch.Bookmark; event = next(t, w) {
		option := optionOf(t, event)
		out = append(out, option.Namespace+"/"+option.Name)
	}
	slices.Sort(out)
	return out
}

// next is the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		if !open {
			t.Fatal("the watch has ended")
		}
		return event
	case <-time.After(patience):
		t.Fatal("no event comes")
	}
	return watch.Event{}
}

// optionOf is what a client is sent.
func optionOf(t *testing.T, event watch.Event) *images.Option {
	t.Helper()
	obj := event.Object
	if shared, ok := obj.(runtime.CacheableObject); ok {
		obj = shared.GetObject()
	}
	option, ok := obj.(*images.Option)
	if !ok {
		t.Fatalf("%s %T", event.Type, event.Object)
	}
	return option
}

// Guards: that tokens pass the translation as they are.
func TestAListHasPages(t *testing.T) {
	f := newFixture(t)
	for _, namespace := range []string{"tenant-a", goldens, metav1.NamespaceAll} {
		owner := namespace
		if namespace == metav1.NamespaceAll {
			owner = goldens
		}
		var got []string
		options := &internalversion.ListOptions{Limit: 1}
		for {
			list := f.list(t, namespace, options)
			got = append(got, keys(list)...)
			if list.Continue == "" {
				break
			}
			options = &internalversion.ListOptions{Limit: 1, Continue: list.Continue}
			f.offer(t, "v1.13.6", fmt.Sprintf("v1.14.%d", len(got))) // the rest is of the state that the first page was of
		}
		if diff := cmp.Diff(three(owner), got); diff != "" {
			t.Errorf("pages of %q (-want +got):\n%s", namespace, diff)
		}
	}
}

// Guards: stamped, and that it works on a copy of what is shared.
func TestAWatchFollowsTheOffer(t *testing.T) {
	f := newFixture(t)
	before := f.list(t, "tenant-a", nil)
	w, err := f.Watch(in(t.Context(), "tenant-a"), &internalversion.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.offer(t, "v1.13.6") // the same
	f.offer(t, "v1.13.6", "v1.14.0")
	after := f.list(t, "tenant-a", nil)
	shared := f.content()
	for i := range after.Items {
		event := next(t, w)
		if event.Type != watch.Modified {
			t.Fatalf("%s %v", event.Type, event.Object)
		}
		if diff := cmp.Diff(&after.Items[i], optionOf(t, event)); diff != "" {
			t.Errorf("the watch differs from the list (-list +watch):\n%s", diff)
		}
	}
	if diff := cmp.Diff(shared, f.content()); diff != "" {
		t.Errorf("the log was written to (-before +after):\n%s", diff)
	}
}

// Guards: isIdentity in Watch.
func TestTheNamespaceOfTheLogIsSentWhatIsEncodedOnce(t *testing.T) {
	f := newFixture(t)
	for namespace, want := range map[string]bool{goldens: true, metav1.NamespaceAll: true, "tenant-a": false} {
		w, err := f.Watch(in(t.Context(), namespace), &internalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		event := next(t, w)
		w.Stop()
		if _, shared := event.Object.(runtime.CacheableObject); shared != want {
			t.Errorf("namespace %q: %T", namespace, event.Object)
		}
	}
}

// Guards: that nobody writes to what is shared, with the race detector.
func TestManyReadAtOnce(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var readers sync.WaitGroup
	for i := range 8 {
		namespace := fmt.Sprintf("tenant-%d", i%4)
		w, err := f.Watch(in(ctx, namespace), &internalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			defer w.Stop()
			for range 30 {
				obj, err := f.Get(in(ctx, namespace), projection.OptionImages, &metav1.GetOptions{})
				if err != nil || obj.(*images.Option).Namespace != namespace {
					t.Errorf("get in %s: %v %v", namespace, obj, err)
				}
				list, err := f.List(in(ctx, namespace), nil)
				if err != nil || list.(*images.OptionList).Items[1].Namespace != namespace {
					t.Errorf("list in %s: %v %v", namespace, list, err)
				}
				event := <-w.ResultChan()
				if option, ok := event.Object.(*images.Option); !ok || option.Namespace != namespace || option.UID != projection.OptionUID(namespace, option.Name) {
					t.Errorf("watch in %s: %v", namespace, event)
				}
			}
		})
	}
	for i := range 30 {
		f.offer(t, "v1.13.6", fmt.Sprintf("v1.14.%d", i))
	}
	readers.Wait()
}
