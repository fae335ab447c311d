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
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// readClauses are about gets and lists, and hold whether or not anything changes.
func readClauses() []clause {
	some, several := []need{objects(1)}, []need{objects(2)}
	return []clause{
		{"a list says what it is and of which version", some, listSaysWhatItIs},
		{"a list is sorted by namespace and name", some, listIsSorted},
		{"no item of a list is newer than the list", some, itemsAreNotNewer},
		{"the version of a list never falls", some, versionNeverFalls},
		{"an object is the same in a get and in a list", some, getIsListed},
		{"an object has a uid of its own, the same in every answer", some, uidsAreTheirOwn},
		{"a get or list with resourceVersion 0 is of any version", some, anyVersion},
		{"a get or list with a resourceVersion is not older", some, notOlder},
		{"a list of an exact version is of that version", some, exactVersion},
		{"a list with a limit and a resourceVersion is exact", some, limitIsExact},
		{"resourceVersionMatch needs a resourceVersion it can match, or it is 422", nil, matchIsValidated},
		{"a list with a resourceVersion that is none is 400", nil, garbageVersionOfList},
		{"a get with a resourceVersion that is none is 400", some, garbageVersionOfGet},
		{"a get or list of the future is 504 and names the cause", some, futureIsTooLarge},
		{"a get or list of another server's version is 410", []need{objects(1), epochs}, foreignVersionExpires},
		{"pages make up the list, and count what remains", several, pagesMakeUpTheList},
		{"a limit that is not reached makes no pages", some, limitNotReached},
		{"a page of what a selector selects does not count what remains", several, selectedPagesDoNotCount},
		{"a limit with resourceVersion 0 loses nothing", several, pagesOfAnyVersion},
		{"a continue token that is none is 400", nil, garbageToken},
		{"a continue token and a resourceVersion are 400, and 0 is ignored", several, tokenAndVersion},
		{"a continue token of another server is 410 and brings another", []need{objects(2), epochs}, foreignTokenExpires},
		{"a limit that is no number is 400, and a negative one is none", nil, garbageLimit},
		{"an object that is missing is 404 and named", nil, missingIsNotFound},
		{"a list selects an object by its name", some, listByName},
		{"a field selector that is not supported is 400", nil, unsupportedField},
		{"a selector that cannot be read is 400", nil, garbageSelector},
	}
}

func listSaysWhatItIs(t *testing.T, s *subject) {
	l := s.list(t, "")
	if l.GetKind() != s.Kind+"List" || l.GetAPIVersion() != s.GroupVersion().String() {
		t.Errorf("it is a %s of %s", l.GetKind(), l.GetAPIVersion())
	}
	if rv := l.GetResourceVersion(); rv == "" || rv == "0" {
		t.Errorf("its version is %q", rv)
	}
	for i := range l.Items {
		if o := &l.Items[i]; o.GetName() == "" || o.GetResourceVersion() == "" || s.Namespace != o.GetNamespace() {
			t.Errorf("item %d is %s/%s of version %q", i, o.GetNamespace(), o.GetName(), o.GetResourceVersion())
		}
	}
}

func listIsSorted(t *testing.T, s *subject) {
	if names := namesOf(s.list(t, "")); !slices.IsSorted(names) {
		t.Errorf("the order is %v", names)
	}
}

func itemsAreNotNewer(t *testing.T, s *subject) {
	l := s.list(t, "")
	for i := range l.Items {
		if rv := l.Items[i].GetResourceVersion(); older(t, l.GetResourceVersion(), rv) {
			t.Errorf("%s is of version %s in a list of %s", l.Items[i].GetName(), rv, l.GetResourceVersion())
		}
	}
}

func versionNeverFalls(t *testing.T, s *subject) {
	before := s.list(t, "").GetResourceVersion()
	for range 10 {
		now := s.list(t, "").GetResourceVersion()
		if older(t, now, before) {
			t.Errorf("%s comes after %s", now, before)
		}
		before = now
	}
}

// getIsListed compares answers of one version: objects may change meanwhile.
func getIsListed(t *testing.T, s *subject) {
	for i := range s.size {
		l := s.list(t, "")
		if i >= len(l.Items) {
			return
		}
		listed := &l.Items[i]
		got := s.client.Get(t, s.object(listed.GetName()), wire.JSON).Object(t)
		if got.GetResourceVersion() != listed.GetResourceVersion() {
			continue
		}
		if diff := cmp.Diff(listed.Object, got.Object); diff != "" {
			t.Errorf("%s differs (-list +get):\n%s", listed.GetName(), diff)
		}
	}
}

func uidsAreTheirOwn(t *testing.T, s *subject) {
	l := s.list(t, "")
	uids := map[string]types.UID{}
	seen := sets.New[types.UID]()
	for i := range l.Items {
		o := &l.Items[i]
		if o.GetUID() == "" || seen.Has(o.GetUID()) {
			t.Errorf("the uid of %s is %q, as another's", o.GetName(), o.GetUID())
		}
		seen.Insert(o.GetUID())
		uids[o.GetName()] = o.GetUID()
	}
	var metadata metav1.PartialObjectMetadataList
	s.client.Get(t, s.path, wire.MetadataList).Decode(t, &metadata)
	for _, o := range metadata.Items {
		checkUID(t, "metadata", uids, o.Name, o.UID)
	}
	for _, o := range s.watch(t, "").Initial(t, s.size) {
		checkUID(t, "watch", uids, o.GetName(), o.GetUID())
	}
}

func checkUID(t *testing.T, where string, uids map[string]types.UID, name string, uid types.UID) {
	t.Helper()
	if want, listed := uids[name]; listed && uid != want {
		t.Errorf("the uid of %s is %s in a list and %s in a %s", name, want, uid, where)
	}
}

func anyVersion(t *testing.T, s *subject) {
	for _, query := range []string{"resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan"} {
		l := s.list(t, query)
		if rv := l.GetResourceVersion(); rv == "" || rv == "0" {
			t.Errorf("%s: the version is %q", query, rv)
		}
	}
	s.client.Get(t, s.object(s.first(t))+"?resourceVersion=0", wire.JSON).Object(t)
}

func notOlder(t *testing.T, s *subject) {
	rv := s.list(t, "").GetResourceVersion()
	for _, query := range []string{"resourceVersion=" + rv, "resourceVersionMatch=NotOlderThan&resourceVersion=" + rv} {
		l := s.list(t, query)
		if older(t, l.GetResourceVersion(), rv) {
			t.Errorf("%s: the version is %s", query, l.GetResourceVersion())
		}
	}
	s.client.Get(t, s.object(s.first(t))+"?resourceVersion="+rv, wire.JSON).Object(t)
}

func exactVersion(t *testing.T, s *subject) {
	want := s.list(t, "")
	got := s.list(t, "resourceVersionMatch=Exact&resourceVersion="+want.GetResourceVersion())
	sameLists(t, want, got)
}

func limitIsExact(t *testing.T, s *subject) {
	want := s.list(t, "")
	got := s.list(t, fmt.Sprintf("limit=%d&resourceVersion=%s", len(want.Items), want.GetResourceVersion()))
	sameLists(t, want, got)
}

func sameLists(t *testing.T, want, got *list) {
	t.Helper()
	if diff := cmp.Diff(want.UnstructuredContent(), got.UnstructuredContent()); diff != "" {
		t.Errorf("the lists differ (-want +got):\n%s", diff)
	}
}

func matchIsValidated(t *testing.T, s *subject) {
	for _, query := range []string{
		"resourceVersionMatch=Exact",
		"resourceVersionMatch=NotOlderThan",
		"resourceVersionMatch=Exact&resourceVersion=0",
		"resourceVersionMatch=Roughly&resourceVersion=0",
		"resourceVersionMatch=NotOlderThan&resourceVersion=0&continue=x",
		"sendInitialEvents=true",
		"sendInitialEvents=false",
	} {
		t.Run(query, func(t *testing.T) {
			status := s.ask(t, query).Refused(t, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			if status.Details == nil || status.Details.Kind != "ListOptions" || len(status.Details.Causes) == 0 {
				t.Errorf("the details are %+v", status.Details)
			}
		})
	}
}

// garbageVersions are no resourceVersions.
func garbageVersions() []string { return []string{"x", "-1", "1.5", "99999999999999999999", "0x10"} }

func garbageVersionOfList(t *testing.T, s *subject) {
	for _, rv := range garbageVersions() {
		s.ask(t, "resourceVersion="+rv).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		s.ask(t, "resourceVersionMatch=Exact&resourceVersion="+rv).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
}

func garbageVersionOfGet(t *testing.T, s *subject) {
	for _, rv := range garbageVersions() {
		a := s.client.Get(t, s.object(s.first(t))+"?resourceVersion="+rv, wire.JSON)
		a.Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
}

// far is by how much a version of the future is ahead.
const far = 100_000

func futureIsTooLarge(t *testing.T, s *subject) {
	rv := moved(t, s.list(t, "").GetResourceVersion(), far)
	for _, path := range []string{
		s.object(s.first(t)) + "?resourceVersion=" + rv,
		s.path + "?resourceVersion=" + rv,
		s.path + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + rv,
		s.path + "?resourceVersionMatch=Exact&resourceVersion=" + rv,
	} {
		status := s.client.Get(t, path, wire.JSON).Refused(t, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
		isTooLarge(t, status)
	}
}

func isTooLarge(t *testing.T, status metav1.Status) {
	t.Helper()
	if status.Details == nil || !slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeResourceVersionTooLarge
	}) {
		t.Errorf("the details name no cause %s: %+v", metav1.CauseTypeResourceVersionTooLarge, status.Details)
	}
}

// epoch is more versions than one server issues.
const epoch = 1 << 40

// foreign are versions that other servers issued: one that started before, one that started later, and one that counts
// from one, as kube-apiserver does.
func foreign(t *testing.T, rv string) []string {
	t.Helper()
	return []string{moved(t, rv, -epoch), moved(t, rv, epoch), "1", "4711"}
}

func foreignVersionExpires(t *testing.T, s *subject) {
	for _, rv := range foreign(t, s.list(t, "").GetResourceVersion()) {
		for _, path := range []string{
			s.object(s.first(t)) + "?resourceVersion=" + rv,
			s.path + "?resourceVersion=" + rv,
			s.path + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + rv,
			s.path + "?resourceVersionMatch=Exact&resourceVersion=" + rv,
			s.path + "?limit=1&resourceVersion=" + rv,
		} {
			s.client.Get(t, path, wire.JSON).Refused(t, http.StatusGone, metav1.StatusReasonExpired)
		}
	}
}

// moved is a version some events later.
func moved(t *testing.T, rv string, by int64) string {
	t.Helper()
	version, ok := new(big.Int).SetString(rv, 10)
	if !ok {
		t.Fatalf("version %q is no number", rv)
	}
	return version.Add(version, big.NewInt(by)).String()
}

func pagesMakeUpTheList(t *testing.T, s *subject) {
	for _, limit := range []int{1, s.size - 1} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			pages := s.pages(t, fmt.Sprintf("limit=%d", limit))
			want := s.list(t, "resourceVersionMatch=Exact&resourceVersion="+pages[0].GetResourceVersion())
			left := int64(len(want.Items))
			for i, page := range pages {
				left -= int64(len(page.Items))
				if last := i == len(pages)-1; !last && len(page.Items) != limit {
					t.Errorf("page %d has %d items", i, len(page.Items))
				}
				checkRemaining(t, i, page, left)
			}
			sameItems(t, want, pages)
		})
	}
}

func checkRemaining(t *testing.T, number int, page *list, left int64) {
	t.Helper()
	remaining := page.GetRemainingItemCount()
	switch {
	case left == 0 && (page.GetContinue() != "" || remaining != nil):
		t.Errorf("the last page goes on with %q, and %v remain", page.GetContinue(), remaining)
	case left > 0 && (remaining == nil || *remaining != left):
		t.Errorf("after page %d %d items are left, and %v remain", number, left, remaining)
	}
}

// pages follows the continue tokens from a first page to the last.
func (s *subject) pages(t *testing.T, query string) []*list {
	t.Helper()
	return s.pagesAfter(t, query, s.list(t, query))
}

func (s *subject) pagesAfter(t *testing.T, query string, first *list) []*list {
	t.Helper()
	pages := []*list{first}
	limit, _, _ := strings.Cut(query, "&")
	for page := first; page.GetContinue() != ""; {
		page = s.list(t, limit+"&continue="+page.GetContinue())
		if page.GetResourceVersion() != first.GetResourceVersion() {
			t.Fatalf("page %d is of version %s, and the first of %s", len(pages), page.GetResourceVersion(), first.GetResourceVersion())
		}
		pages = append(pages, page)
	}
	return pages
}

func sameItems(t *testing.T, want *list, pages []*list) {
	t.Helper()
	var items []unstructured.Unstructured
	for _, page := range pages {
		items = append(items, page.Items...)
	}
	if diff := cmp.Diff(want.Items, items); diff != "" {
		t.Errorf("the pages differ from the list (-list +pages):\n%s", diff)
	}
}

func limitNotReached(t *testing.T, s *subject) {
	for _, limit := range []int{s.size, s.size + 1, 1 << 30} {
		l := s.list(t, fmt.Sprintf("limit=%d", limit))
		if l.GetContinue() != "" || l.GetRemainingItemCount() != nil {
			t.Errorf("limit %d: it goes on with %q", limit, l.GetContinue())
		}
	}
}

func selectedPagesDoNotCount(t *testing.T, s *subject) {
	const selector = "labelSelector=!conformance.cozystack.io/nothing"
	page := s.list(t, "limit=1&"+selector)
	if page.GetContinue() == "" || page.GetRemainingItemCount() != nil {
		t.Errorf("it goes on with %q and counts %v", page.GetContinue(), page.GetRemainingItemCount())
	}
	want := s.list(t, "resourceVersionMatch=Exact&resourceVersion="+page.GetResourceVersion())
	rest := s.list(t, selector+"&continue="+page.GetContinue())
	sameItems(t, want, []*list{page, rest})
}

func pagesOfAnyVersion(t *testing.T, s *subject) {
	pages := s.pages(t, "limit=1&resourceVersion=0")
	want := s.list(t, "resourceVersionMatch=Exact&resourceVersion="+pages[0].GetResourceVersion())
	sameItems(t, want, pages)
}

func garbageToken(t *testing.T, s *subject) {
	for _, token := range []string{
		"x",
		base64.RawURLEncoding.EncodeToString([]byte("garbage")),
		base64.RawURLEncoding.EncodeToString([]byte(`{}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":0,"start":"x"}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":""}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":"../../x"}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v9","rv":1,"start":"x"}`)),
	} {
		s.ask(t, "limit=1&continue="+token).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
}

func tokenAndVersion(t *testing.T, s *subject) {
	page := s.list(t, "limit=1")
	next := "limit=1&continue=" + page.GetContinue() + "&resourceVersion="
	s.ask(t, next+page.GetResourceVersion()).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	if second := s.list(t, next+"0"); second.GetResourceVersion() != page.GetResourceVersion() {
		t.Errorf("the second page is of %s, and the first of %s", second.GetResourceVersion(), page.GetResourceVersion())
	}
}

func foreignTokenExpires(t *testing.T, s *subject) {
	page := s.list(t, "limit=1")
	for _, rv := range foreign(t, page.GetResourceVersion()) {
		t.Run(rv, func(t *testing.T) {
			s.expiredToken(t, page, tokenOf(t, page.GetContinue(), rv))
		})
	}
}

// expiredToken is the contract of a token that is no longer good: 410, with another that leads to the rest of the list as
// it is now.
func (s *subject) expiredToken(t *testing.T, page *list, token string) {
	t.Helper()
	status := s.ask(t, "limit=1&continue="+token).Refused(t, http.StatusGone, metav1.StatusReasonExpired)
	if status.Continue == "" {
		t.Fatalf("no token to go on with: %+v", status)
	}
	now := s.list(t, "")
	rest := s.list(t, "continue="+status.Continue)
	if older(t, rest.GetResourceVersion(), now.GetResourceVersion()) {
		t.Errorf("the rest is of version %s, and the list was at %s", rest.GetResourceVersion(), now.GetResourceVersion())
	}
	if diff := cmp.Diff(namesOf(now), append(namesOf(page), namesOf(rest)...)); diff != "" {
		t.Errorf("the first page and the rest differ from the list (-list +pages):\n%s", diff)
	}
}

// tokenOf is a continue token as if its list were of another version.
func tokenOf(t *testing.T, token, rv string) string {
	t.Helper()
	content, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatalf("decode the token %s: %v", token, err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(content, &fields); err != nil {
		t.Fatalf("decode the token %s: %v", content, err)
	}
	fields["rv"] = json.Number(rv)
	if content, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(content)
}

func garbageLimit(t *testing.T, s *subject) {
	s.ask(t, "limit=x").Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	if l := s.list(t, "limit=-1"); l.GetContinue() != "" {
		t.Errorf("limit -1 goes on with %q", l.GetContinue())
	}
}

func missingIsNotFound(t *testing.T, s *subject) {
	const name = "conformance-missing"
	status := s.client.Get(t, s.object(name), wire.JSON).Refused(t, http.StatusNotFound, metav1.StatusReasonNotFound)
	want := &metav1.StatusDetails{Group: s.Group, Kind: s.GroupVersionResource.Resource, Name: name}
	if diff := cmp.Diff(want, status.Details); diff != "" {
		t.Errorf("the details (-want +got):\n%s", diff)
	}
}

func listByName(t *testing.T, s *subject) {
	name := s.first(t)
	if names := namesOf(s.list(t, "fieldSelector=metadata.name="+name)); !slices.Equal(names, []string{name}) {
		t.Errorf("equal: %v", names)
	}
	if names := namesOf(s.list(t, "fieldSelector=metadata.name!="+name)); slices.Contains(names, name) || len(names) != s.size-1 {
		t.Errorf("unequal: %v", names)
	}
	if l := s.list(t, "fieldSelector=metadata.name=conformance-missing"); len(l.Items) > 0 || older(t, l.GetResourceVersion(), "1") {
		t.Errorf("missing: %v of version %s", namesOf(l), l.GetResourceVersion())
	}
}

func unsupportedField(t *testing.T, s *subject) {
	for _, query := range []string{"fieldSelector=status.nothing=1", "watch=1&fieldSelector=status.nothing=1", "fieldSelector=metadata.uid=1"} {
		s.ask(t, query).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
}

func garbageSelector(t *testing.T, s *subject) {
	for _, query := range []string{"fieldSelector=x", "labelSelector=a==b==c", "labelSelector=a+in", "labelSelector=!!", "watch=1&labelSelector=a==b==c"} {
		s.ask(t, query).Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
}

func namesOf(l *list) []string {
	var names []string
	for i := range l.Items {
		names = append(names, l.Items[i].GetName())
	}
	return names
}
