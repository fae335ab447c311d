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

package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// streamed asks for a list as the beginning of a watch.
const streamed = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// watchClauses are about watches, and hold whether or not anything changes.
func watchClauses() []clause {
	some := []need{objects(1)}
	return []clause{
		{"a watch without a resourceVersion, or of 0, begins with all objects", some, watchBeginsWithAll},
		{"a watch from a resourceVersion begins with what is newer", some, watchBeginsAfter},
		{"a watch of one name begins with that object", some, watchOfOneName},
		{"a watch ends cleanly when its time is over", nil, watchTimesOut},
		{"bookmarks come only to who allows them", some, bookmarksAreAllowed},
		{"a streaming list sends all objects and says where they end", some, streamingListOfAll},
		{"a streaming list of no match says at once where it ends", some, streamingListOfNone},
		{"a streaming list is not older than its resourceVersion", some, streamingListNotOlder},
		{"a streaming list without bookmarks does not say where it ends", some, streamingListWithoutBookmarks},
		{"a watch that declines initial events gets none", some, watchDeclinesInitialEvents},
		{"a streaming list that does not say how old it may be is 422", nil, streamingListIsValidated},
		{"a watch from a resourceVersion that is none is 400", nil, garbageVersionOfWatch},
		{"a watch from another server's version is 410", []need{epochs}, foreignVersionOfWatch},
		{"a watch from the future sends nothing but a timeout", nil, watchOfTheFuture},
		{"a timeoutSeconds that is no number is 400", nil, garbageTimeout},
		{"the old path of a watch is a watch", some, oldWatchPath},
	}
}

// emptyClauses hold for a resource without objects, and are all that can be put to one.
func emptyClauses() []clause {
	return []clause{
		{"a list of nothing has a version and an empty array", nil, listOfNothing},
		{"a streaming list of nothing says at once where it ends", nil, streamingListOfNothing},
		{"a watch of nothing ends cleanly when its time is over", nil, watchTimesOut},
	}
}

func listOfNothing(t *testing.T, s *subject) {
	a := s.ask(t, "")
	l := a.List(t)
	if older(t, l.GetResourceVersion(), "1") || len(l.Items) > 0 || !strings.Contains(strings.ReplaceAll(string(a.Body), " ", ""), `"items":[]`) {
		t.Errorf("the answer is %s", a.Body)
	}
}

func streamingListOfNothing(t *testing.T, s *subject) { s.endsAtOnce(t, streamed) }

// Events of other changes than the suite's may come in between, so the beginnings are held against the list that has the
// version that they tell of.
func watchBeginsWithAll(t *testing.T, s *subject) {
	for _, query := range []string{"", "resourceVersion=0", "resourceVersion="} {
		before := s.list(t, "")
		got := s.watch(t, query).Initial(t, s.size)
		sameUnlessChanged(t, before.Items, got)
	}
}

// sameUnlessChanged compares the objects that did not change meanwhile, and the order of all.
func sameUnlessChanged(t *testing.T, want []unstructured.Unstructured, got []*unstructured.Unstructured) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d objects, not %d", len(got), len(want))
	}
	for i := range want {
		if got[i].GetName() != want[i].GetName() {
			t.Errorf("object %d is %s, not %s", i, got[i].GetName(), want[i].GetName())
		}
		if got[i].GetResourceVersion() != want[i].GetResourceVersion() {
			continue
		}
		if diff := cmp.Diff(want[i].Object, got[i].Object); diff != "" {
			t.Errorf("%s differs (-list +watch):\n%s", got[i].GetName(), diff)
		}
	}
}

func watchBeginsAfter(t *testing.T, s *subject) {
	rv := s.list(t, "").GetResourceVersion()
	for _, e := range s.watch(t, "timeoutSeconds=1&resourceVersion="+rv).Rest(t) {
		if got := e.Object(t).GetResourceVersion(); !older(t, rv, got) {
			t.Errorf("%s of version %s comes after %s", e.Type, got, rv)
		}
	}
}

func watchOfOneName(t *testing.T, s *subject) {
	name := s.first(t)
	events := s.watch(t, "timeoutSeconds=1&fieldSelector=metadata.name="+name).Rest(t)
	if len(events) == 0 || events[0].Type != watch.Added {
		t.Fatalf("it does not begin with the object: %s", describe(events))
	}
	for _, e := range events {
		if got := e.Object(t).GetName(); got != name {
			t.Errorf("an event of %s", got)
		}
	}
}

func watchTimesOut(t *testing.T, s *subject) {
	const asked = 2 * time.Second
	began := time.Now()
	w := s.watch(t, fmt.Sprintf("timeoutSeconds=%d", int(asked.Seconds())))
	if got := w.Header.Get("Content-Type"); got != wire.JSON {
		t.Errorf("its content is %s", got)
	}
	for _, e := range w.Rest(t) {
		if e.Type == watch.Error {
			t.Errorf("it ends with an error: %s", e.Raw)
		}
	}
	if took := time.Since(began); took < asked {
		t.Errorf("it ends after %v", took)
	}
}

// bookmarkTime is long enough for a bookmark: one comes shortly before a watch times out.
const bookmarkTime = "timeoutSeconds=4"

// The page promises nobody a bookmark. One that comes has a form.
func bookmarksAreAllowed(t *testing.T, s *subject) {
	rv := s.list(t, "").GetResourceVersion()
	without := s.watch(t, bookmarkTime+"&resourceVersion="+rv)
	with := s.watch(t, bookmarkTime+"&allowWatchBookmarks=true&resourceVersion="+rv)
	for _, e := range with.Rest(t) {
		if isBookmark(e) {
			s.checkBookmark(t, e, rv)
		}
	}
	if events := without.Rest(t); slices.ContainsFunc(events, isBookmark) {
		t.Errorf("a bookmark comes to who did not allow it: %s", describe(events))
	}
}

// checkBookmark expects an object with a kind and a version and nothing else, annotations aside, which it returns.
func (s *subject) checkBookmark(t *testing.T, e wire.Event, notBefore string) map[string]string {
	t.Helper()
	o := e.Object(t)
	if o.GetKind() != s.Kind || o.GetAPIVersion() != s.GroupVersion().String() {
		t.Errorf("the bookmark is a %s of %s", o.GetKind(), o.GetAPIVersion())
	}
	if o.GetName() != "" || o.GetUID() != "" || older(t, o.GetResourceVersion(), notBefore) {
		t.Errorf("the bookmark after %s is %s", notBefore, e.Raw)
	}
	return o.GetAnnotations()
}

func streamingListOfAll(t *testing.T, s *subject) {
	for _, query := range []string{streamed, streamed + "&resourceVersion=", streamed + "&resourceVersion=0"} {
		before := s.list(t, "")
		w := s.watch(t, query)
		got := w.Initial(t, s.size)
		sameUnlessChanged(t, before.Items, got)
		s.checkInitialEnd(t, w, before.GetResourceVersion())
	}
}

// checkInitialEnd expects the bookmark that ends the initial events, and no event of a change before it.
func (s *subject) checkInitialEnd(t *testing.T, w *wire.Watch, notBefore string) {
	t.Helper()
	e := w.Next(t)
	if e.Type != watch.Bookmark {
		t.Fatalf("no bookmark, but %s %.300s", e.Type, e.Raw)
	}
	if got := s.checkBookmark(t, e, notBefore); got[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("the annotations of the bookmark are %v", got)
	}
}

func (s *subject) endsAtOnce(t *testing.T, query string) {
	t.Helper()
	rv := s.list(t, "").GetResourceVersion()
	s.checkInitialEnd(t, s.watch(t, query), rv)
}

func streamingListOfNone(t *testing.T, s *subject) {
	s.endsAtOnce(t, streamed+"&fieldSelector=metadata.name=conformance-missing")
	s.endsAtOnce(t, streamed+"&labelSelector=conformance.cozystack.io/nothing")
}

func streamingListNotOlder(t *testing.T, s *subject) {
	before := s.list(t, "")
	w := s.watch(t, streamed+"&resourceVersion="+before.GetResourceVersion())
	w.Initial(t, s.size)
	s.checkInitialEnd(t, w, before.GetResourceVersion())
}

func streamingListWithoutBookmarks(t *testing.T, s *subject) {
	events := s.watch(t, bookmarkTime+"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan").Rest(t)
	if len(events) < s.size || slices.ContainsFunc(events, isBookmark) {
		t.Errorf("the events of %d objects are %s", s.size, describe(events))
	}
}

func watchDeclinesInitialEvents(t *testing.T, s *subject) {
	rv := s.list(t, "").GetResourceVersion()
	const declined = "timeoutSeconds=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
	for _, query := range []string{declined, declined + "&resourceVersion=" + rv, declined + "&resourceVersion=0"} {
		for _, e := range s.watch(t, query).Rest(t) {
			if got := e.Object(t).GetResourceVersion(); !older(t, rv, got) {
				t.Errorf("%s: %s of version %s, which was there at %s", query, e.Type, got, rv)
			}
		}
	}
}

func streamingListIsValidated(t *testing.T, s *subject) {
	for _, query := range []string{
		"sendInitialEvents=true",
		"sendInitialEvents=true&allowWatchBookmarks=true",
		"sendInitialEvents=false",
		"sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
		"resourceVersionMatch=NotOlderThan&resourceVersion=1",
		"resourceVersionMatch=Exact&resourceVersion=1",
		"continue=x",
	} {
		t.Run(query, func(t *testing.T) {
			status := s.ask(t, "watch=1&timeoutSeconds=1&"+query).Refused(t, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			if status.Details == nil || len(status.Details.Causes) == 0 {
				t.Errorf("the details are %+v", status.Details)
			}
		})
	}
}

func garbageVersionOfWatch(t *testing.T, s *subject) {
	for _, rv := range garbageVersions() {
		s.ask(t, "watch=1&timeoutSeconds=1&resourceVersion="+rv).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
}

func foreignVersionOfWatch(t *testing.T, s *subject) {
	for _, rv := range foreign(t, s.list(t, "").GetResourceVersion()) {
		for _, query := range []string{"resourceVersion=" + rv, streamed + "&resourceVersion=" + rv, "allowWatchBookmarks=true&resourceVersion=" + rv} {
			s.refusedWatch(t, query, http.StatusGone, metav1.StatusReasonExpired)
		}
	}
}

// watchOfTheFuture allows for waiting: the page leaves it to the server whether a watch waits for its version.
func watchOfTheFuture(t *testing.T, s *subject) {
	rv := moved(t, s.list(t, "").GetResourceVersion(), far)
	for _, e := range s.watch(t, "timeoutSeconds=1&resourceVersion="+rv).Rest(t) {
		var status metav1.Status
		e.Decode(t, &status)
		if e.Type != watch.Error {
			t.Fatalf("%s of %.300s", e.Type, e.Raw)
		}
		wire.CheckStatus(t, status, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
		isTooLarge(t, status)
	}
}

func garbageTimeout(t *testing.T, s *subject) {
	s.ask(t, "watch=1&timeoutSeconds=x").Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}

func oldWatchPath(t *testing.T, s *subject) {
	old := *s
	version := "/" + s.Version
	old.path = strings.Replace(s.path, version, version+"/watch", 1)
	objects := old.watch(t, "").Initial(t, s.size)
	if got, want := objects[0].GetName(), s.first(t); got != want {
		t.Errorf("it begins with %s, not %s", got, want)
	}
}
