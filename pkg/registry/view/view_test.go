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
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
)

// Guards: the filter of Get, and the order of the questions in Caller.learn.
func TestACallerSeesThePoolsThatItMayGet(t *testing.T) {
	pools := []string{"tenant-a/k1", "tenant-a/k2", "tenant-b/k1", "tenant-c/k1"}
	for _, test := range []struct {
		name   string
		pools  []string
		grants []string
		want   string
		asked  []string
	}{
		{"who may in all namespaces", pools, []string{"*"}, "v1.0.0 tenant-a/k1 tenant-a/k2 tenant-b/k1 tenant-c/k1", []string{"-"}},
		{"who may in one namespace", pools, []string{"tenant-a"}, "v1.0.0 tenant-a/k1 tenant-a/k2", []string{"-", "tenant-a", "tenant-b", "tenant-c"}},
		{"who may in two", pools, []string{"tenant-a", "tenant-c"}, "v1.0.0 tenant-a/k1 tenant-a/k2 tenant-c/k1", []string{"-", "tenant-a", "tenant-b", "tenant-c"}},
		{"who may in every namespace, one by one", pools, []string{"tenant-a", "tenant-b", "tenant-c"}, "v1.0.0 tenant-a/k1 tenant-a/k2 tenant-b/k1 tenant-c/k1", []string{"-", "tenant-a", "tenant-b", "tenant-c"}},
		{"who may nowhere", pools, nil, "v1.0.0", []string{"-", "tenant-a", "tenant-b", "tenant-c"}},
		{"an image that no pool uses asks nobody", nil, []string{"tenant-a"}, "v1.0.0", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.set(t, "v1.0.0", test.pools...)
			f.authorizer.grant("anna", test.grants...)
			got, err := f.Get(as(t, "anna"), nameOf("v1.0.0"), &metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if describe(got) != test.want {
				t.Errorf("got %q, want %q", describe(got), test.want)
			}
			if diff := cmp.Diff(test.asked, f.authorizer.asked()); diff != "" {
				t.Errorf("unexpected questions (-want +got):\n%s", diff)
			}
		})
	}
}

// Guards: the attributes of a question.
func TestAQuestionIsAboutTheUserAsItIsAndTheResourceOfThePools(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1")
	ctx := as(t, "anna")
	if _, err := f.Get(ctx, nameOf("v1.0.0"), &metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	u, _ := request.UserFrom(ctx)
	want := authorizer.AttributesRecord{
		User: u, Verb: "get", APIGroup: "apps.cozystack.io", APIVersion: "v1alpha1", Resource: "kubernetesnodeses", ResourceRequest: true,
	}
	inNamespace := want
	inNamespace.Namespace = "tenant-a"
	if diff := cmp.Diff([]authorizer.AttributesRecord{want, inNamespace}, f.authorizer.questions); diff != "" {
		t.Errorf("unexpected questions (-want +got):\n%s", diff)
	}
}

// Guards: the user that is missing, in Caller.ask.
func TestWhoIsNobodySeesNothing(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1")
	got, err := f.Get(t.Context(), nameOf("v1.0.0"), &metav1.GetOptions{})
	if err != nil || describe(got) != "v1.0.0" || f.authorizer.asked() != nil {
		t.Errorf("got %q, %v", describe(got), err)
	}
}

// Guards: that an error counts for more than the decision that comes with it, and what logFailure leaves out.
func TestAnErrorOfTheAuthorizerHides(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
	f.authorizer.grant("anna", "*")
	f.authorizer.fail(errAuthorizer)
	var log bytes.Buffer
	ctx := klog.NewContext(as(t, "anna"), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log), textlogger.Verbosity(2))))
	got, err := f.Get(ctx, nameOf("v1.0.0"), &metav1.GetOptions{})
	if err != nil || describe(got) != "v1.0.0" {
		t.Errorf("got %q, %v", describe(got), err)
	}
	if text := log.String(); strings.Contains(text, "tenant-") || !strings.Contains(text, "hidden") {
		t.Errorf("logged %q", text)
	}
}

// Guards: the caller who has left, in logFailure.
func TestNothingIsHiddenFromWhoHasLeft(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1")
	var log bytes.Buffer
	ctx, leave := context.WithCancel(klog.NewContext(as(t, "anna"), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))))
	f.authorizer.hold = func(context.Context) { leave() }
	f.authorizer.fail(context.Canceled)
	// What is answered, nobody sees.
	_, _ = f.Get(ctx, nameOf("v1.0.0"), &metav1.GetOptions{})
	if ctx.Err() == nil || log.Len() > 0 {
		t.Errorf("with %v logged %q", ctx.Err(), log.String())
	}
}

// Guards: that a list asks about its namespaces together, and parallelQuestions.
func TestAListAsksOnceAboutEachNamespaceAndSomeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var pools, want []string
		for i := range 50 {
			namespace := "tenant-" + strconv.Itoa(i)
			pools, want = append(pools, namespace+"/k1", namespace+"/k2"), append(want, namespace)
		}
		for i := range 10 {
			f.set(t, "v1.0."+strconv.Itoa(i), pools...)
		}
		f.authorizer.grant("anna", "tenant-7")
		waiting, release := atomic.Int32{}, make(chan struct{})
		f.authorizer.hold = func(context.Context) { waiting.Add(1); <-release }

		listed := make(chan runtime.Object)
		go func() {
			list, err := f.List(as(t, "anna"), &internalversion.ListOptions{})
			if err != nil {
				t.Error(err)
			}
			listed <- list
		}()
		synctest.Wait()
		if n := waiting.Load(); n != 1 {
			t.Errorf("%d questions at first, want the one about all namespaces", n)
		}
		release <- struct{}{}
		synctest.Wait()
		if n := waiting.Load(); n != 1+16 {
			t.Errorf("%d questions at a time", n-1)
		}
		close(release)
		list := view.Unshared(<-listed).(*images.WorkerImageList)
		if len(list.Items) != 10 {
			t.Fatalf("%d images", len(list.Items))
		}
		for i := range list.Items {
			if got := describe(&list.Items[i]); got != "v1.0."+strconv.Itoa(i)+" tenant-7/k1 tenant-7/k2" {
				t.Errorf("got %q", got)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(append([]string{"-"}, want...), f.authorizer.asked()); diff != "" {
			t.Errorf("unexpected questions (-want +got):\n%s", diff)
		}
	})
}

// Guards: that visible copies the pools it returns. A second reader would see what the first does.
func TestWhatIsSharedIsNotModified(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1", "tenant-c/k1")
	shared, _ := f.log.Get(key(nameOf("v1.0.0")))
	before := shared.DeepCopyObject()
	f.authorizer.grant("anna", "tenant-c")
	if _, err := f.List(as(t, "anna"), &internalversion.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, shared); diff != "" {
		t.Errorf("the shared object changed (-before +after):\n%s", diff)
	}
}

// Guards: that visible returns the pools themselves to who sees all of them.
func TestWhoSeesAllIsServedWhatIsShared(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1")
	shared, _ := f.log.Get(key(nameOf("v1.0.0")))
	for _, allowed := range []string{"*", "tenant-a"} {
		f.authorizer.grant("anna", allowed)
		list, err := f.List(as(t, "anna"), &internalversion.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if &view.Unshared(list).(*images.WorkerImageList).Items[0].Status.Pools[0] != &shared.(*images.WorkerImage).Status.Pools[0] {
			t.Errorf("who may get pools in %s is served a copy", allowed)
		}
	}
}

// Guards: visibleInfo, visibleUpdate, and the filter of the answer.
func TestAnUpdateWorksOnWhatTheCallerSees(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
	f.authorizer.grant("anna", "tenant-a")
	var seen []string
	label := func(_ context.Context, obj, old runtime.Object) (runtime.Object, error) {
		seen = append(seen, describe(obj), describe(old))
		obj.(*images.WorkerImage).Labels = map[string]string{"a": "b"}
		return obj, nil
	}
	validate := func(_ context.Context, obj, old runtime.Object) error {
		seen = append(seen, describe(obj), describe(old))
		return nil
	}
	got, _, err := f.Update(as(t, "anna"), nameOf("v1.0.0"), rest.DefaultUpdatedObjectInfo(nil, fromOld, label),
		rest.ValidateAllObjectFunc, validate, false, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(seen, describe(got)) {
		if s != "v1.0.0 tenant-a/k1" {
			t.Errorf("saw %q", s)
		}
	}
	stored, _ := f.log.Get(key(nameOf("v1.0.0")))
	if image := stored.(*images.WorkerImage); describe(image) != "v1.0.0 tenant-a/k1 tenant-b/k1" || image.Labels["a"] != "b" {
		t.Errorf("stored %q with labels %v", describe(image), image.Labels)
	}
	if diff := cmp.Diff([]string{"-", "tenant-a", "tenant-b"}, f.authorizer.asked()); diff != "" {
		t.Errorf("unexpected questions (-want +got):\n%s", diff)
	}
}

// fromOld makes of the present object the one that later transformers change, as a patch does.
func fromOld(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
	return old.DeepCopyObject(), nil
}

// Guards: that validation and the guard are shown what the caller may see.
func TestARefusedDeletionNamesWhatTheCallerSees(t *testing.T) {
	for _, test := range []struct {
		name   string
		grants []string
		want   string
	}{
		{"all users are visible", []string{"*"}, "Used by tenant-a/k1, tenant-b/k1."},
		{"some are", []string{"tenant-a"}, "Used by tenant-a/k1, and pools that you may not see."},
		{"none is", nil, "Used by pools that you may not see."},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
			f.authorizer.grant("anna", test.grants...)
			var validated string
			validate := func(_ context.Context, obj runtime.Object) error {
				validated = describe(obj)
				return nil
			}
			_, _, err := f.Delete(as(t, "anna"), nameOf("v1.0.0"), validate, &metav1.DeleteOptions{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			sees := func(namespace string) bool {
				return slices.Contains(test.grants, namespace) || slices.Contains(test.grants, "*")
			}
			for _, namespace := range []string{"tenant-a", "tenant-b"} {
				for what, text := range map[string]string{"the refusal": err.Error(), "the validation": validated} {
					if strings.Contains(text, namespace) != sees(namespace) {
						t.Errorf("%s: %q", what, text)
					}
				}
			}
		})
	}
}

// Guards: that the deletions of a collection share what is known of the caller.
func TestACollectionAsksOnceAboutEachNamespace(t *testing.T) {
	f := newFixture(t)
	f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
	f.set(t, "v1.0.1", "tenant-a/k1", "tenant-b/k1")
	f.set(t, "v1.0.2")
	f.authorizer.grant("anna", "tenant-a")
	_, err := f.DeleteCollection(as(t, "anna"), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &internalversion.ListOptions{})
	if err == nil || strings.Contains(err.Error(), "tenant-b") || !strings.Contains(err.Error(), "tenant-a/k1") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"-", "tenant-a", "tenant-b"}, f.authorizer.asked()); diff != "" {
		t.Errorf("unexpected questions (-want +got):\n%s", diff)
	}
}
