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
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// changeClauses are about what happens when an object changes.
func changeClauses() []clause {
	driven := []need{objects(1), changes}
	return []clause{
		{"every change is an event, with a version that rises", driven, everyChangeIsAnEvent},
		{"what an event says is what a get says", driven, eventIsRead},
		{"a watch goes on after any of its events", driven, watchGoesOn},
		{"no event is lost after a bookmark", driven, nothingIsLostAfterABookmark},
		{"a streaming list goes on with what changes", driven, streamingListGoesOn},
		{"a watch of one name is not told of others", []need{objects(2), changes}, watchOfAnotherName},
		{"a list of an exact version stays as it was", driven, exactVersionStays},
		{"a get or list that is not older shows the change", driven, notOlderShowsTheChange},
		{"pages stay those of the first", []need{objects(2), changes, notFirst}, pagesStay},
		{"the uid of an object does not change with it", driven, uidStays},
		{"a Table of a watch has a row for each change", driven, tableOfAWatch},
		{"metadata of a watch has an event for each change", driven, metadataOfAWatch},
	}
}

// selectClauses are about selectors that an object comes to match, and ceases to.
func selectClauses() []clause {
	selected := []need{objects(1), selection}
	return []clause{
		{"an object enters a selector as ADDED and leaves it as DELETED", selected, entersAndLeaves},
		{"a list selects what a selector matches at its version", selected, listSelects},
		{"a streaming list sends what its selector matches", selected, streamingListSelects},
	}
}

// swing changes the object of the driver a number of times, beginning with the state that is selected.
func (s *subject) swing(t *testing.T, count int) {
	t.Helper()
	for i := range count {
		s.set(t, i%2 == 0)
	}
}

// notFirst expects that what is driven is on a page that is read after the changes.
func notFirst(_ context.Context, s *subject) lack {
	if s.past.page.Items[0].GetName() == s.Driver.Name {
		return lack{reason: "the object that is driven is on the first page"}
	}
	return lack{}
}

// settledList is the list before the changes of a clause.
func (s *subject) settledList(t *testing.T) *list {
	t.Helper()
	s.settle(t)
	return s.list(t, "")
}

// driven is the query for the events of the object that is driven, after a version.
func (s *subject) driven(rv string) string {
	return "fieldSelector=metadata.name=" + s.Driver.Name + "&resourceVersion=" + rv
}

// versionNow is the version of the object that is driven.
func (s *subject) versionNow(t *testing.T) string {
	t.Helper()
	return s.client.Get(t, s.object(s.Driver.Name), wire.JSON).Object(t).GetResourceVersion()
}

// throughNow returns the events up to the present state of the object that is driven.
func (s *subject) throughNow(t *testing.T, w *wire.Watch) []wire.Event {
	t.Helper()
	return s.throughVersion(t, w, s.versionNow(t))
}

const swings = 4

func everyChangeIsAnEvent(t *testing.T, s *subject) {
	before := s.settledList(t).GetResourceVersion()
	w := s.watch(t, s.driven(before))
	s.swing(t, swings)
	events := s.throughNow(t, w)
	if len(events) < swings {
		t.Errorf("%d changes are %d events: %s", swings, len(events), describe(events))
	}
	for _, e := range events {
		rv := e.Object(t).GetResourceVersion()
		if e.Type != watch.Modified || !older(t, before, rv) {
			t.Errorf("%s of version %s comes after %s", e.Type, rv, before)
		}
		before = rv
	}
}

func eventIsRead(t *testing.T, s *subject) {
	w := s.watch(t, s.driven(s.settledList(t).GetResourceVersion()))
	for i := range swings {
		s.set(t, i%2 == 0)
		got := s.client.Get(t, s.object(s.Driver.Name), wire.JSON).Object(t)
		last := w.Until(t, func(e wire.Event) bool { return e.Object(t).GetResourceVersion() == got.GetResourceVersion() })
		if diff := cmp.Diff(got.Object, last[len(last)-1].Object(t).Object); diff != "" {
			t.Errorf("change %d differs (-get +event):\n%s", i, diff)
		}
	}
}

func watchGoesOn(t *testing.T, s *subject) {
	before := s.settledList(t).GetResourceVersion()
	w := s.watch(t, s.driven(before))
	s.swing(t, swings)
	events := s.throughNow(t, w)
	for i, e := range events[:len(events)-1] {
		again := s.watch(t, s.driven(e.Object(t).GetResourceVersion()))
		var got []wire.Event
		for range events[i+1:] {
			got = append(got, again.Next(t))
		}
		again.Stop()
		if diff := cmp.Diff(events[i+1:], got); diff != "" {
			t.Errorf("after event %d (-first time +again):\n%s", i, diff)
		}
	}
}

// The watch is cut at its bookmark while changes go on, and what both halves saw must be what one watch sees.
func nothingIsLostAfterABookmark(t *testing.T, s *subject) {
	before := s.settledList(t).GetResourceVersion()
	whole := s.watch(t, s.driven(before))
	cut := s.watch(t, bookmarkTime+"&allowWatchBookmarks=true&"+s.driven(before))
	s.swing(t, swings)
	first := cut.Until(t, isBookmark)
	bookmark := first[len(first)-1].Object(t).GetResourceVersion()
	cut.Stop()
	s.swing(t, swings)
	second := s.throughNow(t, s.watch(t, s.driven(bookmark)))
	want := s.throughNow(t, whole)
	if diff := cmp.Diff(want, append(first[:len(first)-1], second...)); diff != "" {
		t.Errorf("a watch that is cut at a bookmark differs (-whole +cut):\n%s", diff)
	}
}

func streamingListGoesOn(t *testing.T, s *subject) {
	s.settle(t)
	w := s.watch(t, streamed+"&fieldSelector=metadata.name="+s.Driver.Name)
	begun := w.Until(t, isBookmark)
	bookmark := begun[len(begun)-1].Object(t).GetResourceVersion()
	s.swing(t, swings)
	for _, e := range s.throughNow(t, w) {
		if rv := e.Object(t).GetResourceVersion(); e.Type != watch.Modified || !older(t, bookmark, rv) {
			t.Errorf("%s of version %s comes after the bookmark of %s", e.Type, rv, bookmark)
		}
	}
}

func watchOfAnotherName(t *testing.T, s *subject) {
	l := s.settledList(t)
	names := slices.DeleteFunc(namesOf(l), func(name string) bool { return name == s.Driver.Name })
	w := s.watch(t, "timeoutSeconds=5&fieldSelector=metadata.name="+names[0]+"&resourceVersion="+l.GetResourceVersion())
	s.swing(t, swings)
	for _, e := range w.Rest(t) {
		if got := e.Object(t).GetName(); got != names[0] {
			t.Errorf("%s of %s", e.Type, got)
		}
	}
}

func exactVersionStays(t *testing.T, s *subject) {
	var lists []*list
	lists = append(lists, s.settledList(t))
	for i := range swings {
		s.set(t, i%2 == 0)
		lists = append(lists, s.list(t, ""))
	}
	for _, want := range lists {
		rv := want.GetResourceVersion()
		sameLists(t, want, s.list(t, "resourceVersionMatch=Exact&resourceVersion="+rv))
		sameLists(t, want, s.list(t, "limit=1000&resourceVersion="+rv))
	}
}

func notOlderShowsTheChange(t *testing.T, s *subject) {
	w := s.watch(t, s.driven(s.settledList(t).GetResourceVersion()))
	for i := range swings {
		s.set(t, i%2 == 0)
		events := s.throughNow(t, w)
		rv := events[len(events)-1].Object(t).GetResourceVersion()
		got := s.client.Get(t, s.object(s.Driver.Name)+"?resourceVersion="+rv, wire.JSON).Object(t)
		l := s.list(t, "resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name="+s.Driver.Name+"&resourceVersion="+rv)
		if len(l.Items) != 1 || older(t, l.Items[0].GetResourceVersion(), rv) || older(t, got.GetResourceVersion(), rv) {
			t.Errorf("after the event of %s the get is of %s and the list %v", rv, got.GetResourceVersion(), namesOf(l))
		}
	}
}

func pagesStay(t *testing.T, s *subject) {
	want := s.settledList(t)
	first := s.list(t, "limit=1&resourceVersion="+want.GetResourceVersion())
	s.swing(t, swings-1)
	pages := s.pagesAfter(t, "limit=1", first)
	sameItems(t, want, pages)
}

func uidStays(t *testing.T, s *subject) {
	before := s.settledList(t)
	w := s.watch(t, s.driven(before.GetResourceVersion()))
	uid := s.client.Get(t, s.object(s.Driver.Name), wire.JSON).Object(t).GetUID()
	s.swing(t, swings)
	for _, e := range s.throughNow(t, w) {
		if got := e.Object(t).GetUID(); got != uid {
			t.Errorf("%s with uid %s, which was %s", e.Type, got, uid)
		}
	}
}

// The object that leaves is as it was while it was selected, with the version of the change.
func entersAndLeaves(t *testing.T, s *subject) {
	before := s.settledList(t).GetResourceVersion()
	all := s.watch(t, s.driven(before))
	selected := s.watch(t, s.Driver.Selector+"&resourceVersion="+before)

	s.set(t, true)
	entering := selected.Next(t)
	change := last(s.throughVersion(t, all, entering.Object(t).GetResourceVersion()))
	if entering.Type != watch.Added || change.Type != watch.Modified {
		t.Errorf("what enters is %s, and %s to who selects", change.Type, entering.Type)
	}
	if diff := cmp.Diff(change.Object(t).Object, entering.Object(t).Object); diff != "" {
		t.Errorf("what enters differs (-unselected +selected):\n%s", diff)
	}

	s.set(t, false)
	leaving := last(selected.Until(t, func(e wire.Event) bool { return e.Type == watch.Deleted }))
	rv := leaving.Object(t).GetResourceVersion()
	events := append([]wire.Event{change}, s.throughVersion(t, all, rv)...)
	was := events[len(events)-2].Object(t)
	was.SetResourceVersion(rv)
	if diff := cmp.Diff(was.Object, leaving.Object(t).Object); diff != "" {
		t.Errorf("what leaves differs from what was there (-was +leaves):\n%s", diff)
	}
	if got := last(events).Object(t).GetResourceVersion(); got != rv {
		t.Errorf("it leaves at %s, and changes at %s", rv, got)
	}
}

func last(events []wire.Event) wire.Event { return events[len(events)-1] }

// throughVersion returns the events up to a version.
func (s *subject) throughVersion(t *testing.T, w *wire.Watch, rv string) []wire.Event {
	t.Helper()
	return w.Until(t, func(e wire.Event) bool { return !older(t, e.Object(t).GetResourceVersion(), rv) })
}

func listSelects(t *testing.T, s *subject) {
	s.settle(t)
	for _, selected := range []bool{false, true, false} {
		s.set(t, selected)
		l := s.list(t, s.Driver.Selector)
		if got := slices.Contains(namesOf(l), s.Driver.Name); got != selected {
			t.Errorf("%s is in the list: %v, selected: %v", s.Driver.Name, got, selected)
		}
		s.set(t, !selected)
		again := s.list(t, s.Driver.Selector+"&resourceVersionMatch=Exact&resourceVersion="+l.GetResourceVersion())
		sameLists(t, l, again)
	}
}

func streamingListSelects(t *testing.T, s *subject) {
	s.settle(t)
	s.endsAtOnce(t, streamed+"&"+s.Driver.Selector)
	s.set(t, true)
	w := s.watch(t, streamed+"&"+s.Driver.Selector)
	if got := w.Initial(t, 1)[0].GetName(); got != s.Driver.Name {
		t.Errorf("it begins with %s", got)
	}
	s.checkInitialEnd(t, w, "1")
}

func tableOfAWatch(t *testing.T, s *subject) {
	w := s.watchAs(t, s.driven(s.settledList(t).GetResourceVersion()), wire.Table)
	s.swing(t, swings)
	for i := range swings {
		e := w.Next(t)
		table := s.checkTable(t, e.Raw, 1, i == 0)
		if e.Type != watch.Modified || rowName(t, table, 0) != s.Driver.Name {
			t.Errorf("%s of %s", e.Type, rowName(t, table, 0))
		}
	}
}

func metadataOfAWatch(t *testing.T, s *subject) {
	w := s.watchAs(t, s.driven(s.settledList(t).GetResourceVersion()), wire.Metadata)
	s.swing(t, swings)
	for range swings {
		o := w.Next(t).Object(t)
		if o.GetKind() != "PartialObjectMetadata" || o.GetName() != s.Driver.Name || len(o.Object) != 3 {
			t.Errorf("the event is of %v", o.Object)
		}
	}
}

// past is how a resource was once.
type past struct {
	version string
	page    *list
}

func (s *subject) remember(t *testing.T) past {
	t.Helper()
	page := s.list(t, "limit=1")
	return past{version: page.GetResourceVersion(), page: page}
}

const (
	// churnSwings are made between two questions whether the past is forgotten.
	churnSwings = 100
	churnRounds = 100
)

// churnAway makes changes until the server has forgotten the past.
func (s *subject) churnAway(ctx context.Context) error {
	churn := s.Driver.Churn
	if churn == nil {
		churn = s.swingAway
	}
	for range churnRounds {
		response, err := s.client.Open(ctx, http.MethodGet, s.path+"?limit=1&resourceVersionMatch=Exact&resourceVersion="+s.past.version, nil, "")
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusGone {
			return nil
		}
		if err := churn(ctx); err != nil {
			return fmt.Errorf("change %s: %w", s.Driver.Name, err)
		}
	}
	return fmt.Errorf("the server remembers version %s after %d rounds of changes", s.past.version, churnRounds)
}

func (s *subject) swingAway(ctx context.Context) error {
	for i := range churnSwings {
		if err := s.Driver.Set(ctx, i%2 == 0); err != nil {
			return err
		}
	}
	return nil
}

// historyClauses are about versions that a server has forgotten. They come last, since they take many changes.
func historyClauses() []clause {
	return []clause{
		{"a list of a version that is forgotten is 410", []need{objects(1), changes, forgotten}, forgottenVersionOfList},
		{"a watch from a version that is forgotten is 410", []need{objects(1), changes, forgotten}, forgottenVersionOfWatch},
		{"a continue token that has expired is 410 and brings another", []need{objects(2), changes, forgotten}, forgottenToken},
		{"a get or list that is not older than a forgotten version is answered", []need{objects(1), changes, forgotten}, forgottenIsNotOlder},
	}
}

func forgottenVersionOfList(t *testing.T, s *subject) {
	for _, query := range []string{"resourceVersionMatch=Exact&", "limit=1&"} {
		s.ask(t, query+"resourceVersion="+s.past.version).Refused(t, http.StatusGone, "Expired")
	}
}

func forgottenVersionOfWatch(t *testing.T, s *subject) {
	for _, query := range []string{"", "allowWatchBookmarks=true&", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&"} {
		s.refusedWatch(t, query+"resourceVersion="+s.past.version, http.StatusGone, "Expired")
	}
}

func forgottenToken(t *testing.T, s *subject) {
	s.expiredToken(t, s.past.page, s.past.page.GetContinue())
}

func forgottenIsNotOlder(t *testing.T, s *subject) {
	s.list(t, "resourceVersion="+s.past.version)
	s.client.Get(t, s.object(s.first(t))+"?resourceVersion="+s.past.version, wire.JSON).Object(t)
	s.watch(t, streamed+"&resourceVersion="+s.past.version).Initial(t, s.size)
}
