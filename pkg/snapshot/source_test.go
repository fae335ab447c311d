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

package snapshot

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// versioned is an object whose content is a version of its own.
func versioned(name, uid string, content int64) object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Thing",
		"metadata": map[string]any{"name": name, "uid": uid},
		"spec":     content,
	}}
}

func contentOf(objects ...object) map[types.NamespacedName]object {
	out := map[types.NamespacedName]object{}
	for _, o := range objects {
		out[types.NamespacedName{Name: o.GetName()}] = o
	}
	return out
}

// next returns n events that are there already.
func next(t *testing.T, w watch.Interface, n int) []string {
	t.Helper()
	var out []string
	for range n {
		select {
		case event := <-w.ResultChan():
			o, err := meta.Accessor(event.Object)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %s at %s", event.Type, o.GetName(), o.GetResourceVersion()))
		default:
			t.Fatalf("no event after %v", out)
		}
	}
	select {
	case event := <-w.ResultChan():
		t.Fatalf("one event too many: %v", event)
	default:
	}
	return out
}

func startWatch(t *testing.T, s *source, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := s.WatchWithContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func TestAWatchGetsTheDifference(t *testing.T) {
	s := newSource()
	s.replace(contentOf(versioned("stays", "1", 0), versioned("changes", "2", 0), versioned("goes", "3", 0), versioned("is made again", "4", 0)))
	w := startWatch(t, s, metav1.ListOptions{ResourceVersion: s.resourceVersion()})

	s.replace(contentOf(versioned("stays", "1", 0), versioned("changes", "2", 1), versioned("goes", "3", 0), versioned("is made again", "4", 0)))
	if diff := cmp.Diff([]string{"MODIFIED changes at 6"}, next(t, w, 1)); diff != "" {
		t.Error(diff)
	}
	s.replace(contentOf(versioned("stays", "1", 0), versioned("changes", "2", 1), versioned("is made again", "4", 0)))
	if diff := cmp.Diff([]string{"DELETED goes at 7"}, next(t, w, 1)); diff != "" {
		t.Error(diff)
	}
	s.replace(contentOf(versioned("stays", "1", 0), versioned("changes", "2", 1), versioned("is made again", "5", 0)))
	if diff := cmp.Diff([]string{"DELETED is made again at 8", "ADDED is made again at 9"}, next(t, w, 2)); diff != "" {
		t.Error(diff)
	}
	s.replace(contentOf(versioned("stays", "1", 0), versioned("changes", "2", 1), versioned("is made again", "5", 0), versioned("comes", "6", 0)))
	if diff := cmp.Diff([]string{"ADDED comes at 10"}, next(t, w, 1)); diff != "" {
		t.Error(diff)
	}
}

func TestAStreamedListEndsWithItsVersion(t *testing.T) {
	s := newSource()
	s.replace(contentOf(versioned("a", "1", 0)))
	w := startWatch(t, s, metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	s.replace(contentOf(versioned("a", "1", 1)))
	if diff := cmp.Diff([]string{"ADDED a at 2", "BOOKMARK  at 2", "MODIFIED a at 3"}, next(t, w, 3)); diff != "" {
		t.Error(diff)
	}
}

func TestAWatchFromAnotherVersionMustListAgain(t *testing.T) {
	s := newSource()
	s.replace(contentOf(versioned("a", "1", 0)))
	for _, version := range []string{"", "0", "1", "3", "x"} {
		if _, err := s.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version}); !apierrors.IsResourceExpired(err) {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestAListHasTheVersionThatItsWatchContinues(t *testing.T) {
	s := newSource()
	s.replace(contentOf(versioned("a", "1", 0), versioned("b", "2", 0)))
	list, err := s.ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if meta.LenList(list) != 2 {
		t.Errorf("%d objects", meta.LenList(list))
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		t.Fatal(err)
	}
	startWatch(t, s, metav1.ListOptions{ResourceVersion: m.GetResourceVersion()})
}

func TestAWatchThatWasStoppedHoldsNobodyUp(t *testing.T) {
	s := newSource()
	w := startWatch(t, s, metav1.ListOptions{ResourceVersion: s.resourceVersion()})
	w.Stop()
	w.Stop()
	for n := range int64(2 * watchBuffer) {
		s.replace(contentOf(versioned("a", "1", n)))
	}
	if len(s.watchers) != 0 {
		t.Errorf("%d watches are kept", len(s.watchers))
	}
}

func TestAWatchThatLagsGetsEverything(t *testing.T) {
	const changes = 5 * watchBuffer
	s := newSource()
	w := startWatch(t, s, metav1.ListOptions{ResourceVersion: s.resourceVersion()})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := range int64(changes) {
			s.replace(contentOf(versioned("a", "1", n)))
		}
	})
	var last int64
	for range changes {
		last, _ = (<-w.ResultChan()).Object.(*unstructured.Unstructured).Object["spec"].(int64)
	}
	writer.Wait()
	if last != changes-1 {
		t.Errorf("the last content is %d", last)
	}
}

func TestWhatWasHandedOutIsNotModified(t *testing.T) {
	s := newSource()
	s.replace(contentOf(versioned("a", "1", 0)))
	w := startWatch(t, s, metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	first := (<-w.ResultChan()).Object
	<-w.ResultChan() // the end of the list
	firstCopy := first.DeepCopyObject()
	s.replace(contentOf(versioned("a", "1", 0)))
	s.replace(contentOf(versioned("a", "1", 1)))
	second := (<-w.ResultChan()).Object
	secondCopy := second.DeepCopyObject()
	s.replace(nil)
	if diff := cmp.Diff(firstCopy, first); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(secondCopy, second); diff != "" {
		t.Error(diff)
	}
}
