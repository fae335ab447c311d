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
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/catalogentry"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// entries serves CatalogEntries from a log that the test writes.
type entries struct {
	*catalogentry.REST
	log        *memory.Log
	authorizer *grants
}

func newEntries(t testing.TB, window int) *entries {
	t.Helper()
	f := &entries{
		log:        memory.NewLog(memory.LogOptions{First: 1 << 32, Window: window, Attrs: catalogentry.Attributes}),
		authorizer: &grants{namespaces: map[string][]string{}},
	}
	f.log.SetReady(true)
	scheme := newScheme()
	served, err := catalogentry.NewREST(scheme, serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion),
		memory.New(memory.Options{
			Log: f.log, Resource: images.Resource("catalogentries"), Prefix: catalogentry.KeyPrefix,
			NewFunc: func() runtime.Object { return &images.CatalogEntry{} },
		}),
		view.New(view.Config{Authorizer: f.authorizer, PoolResource: func() schema.GroupVersionResource { return poolResource }}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(served.Destroy)
	f.REST = served
	return f
}

// An entry is there because the catalog declares it, because its image is there, or because pools ask for it.
const (
	asked = iota
	declared
	imported
)

// set publishes an entry that pools ask for, each given as namespace/name.
func (f *entries) set(t testing.TB, because int, version string, pools ...string) {
	t.Helper()
	image := newImage(version, pools...)
	entry := &images.CatalogEntry{
		ObjectMeta: metav1.ObjectMeta{Name: image.Name, UID: "1"},
		Spec:       images.CatalogEntrySpec{SchematicID: "aaa", Version: version},
		Status: images.CatalogEntryStatus{
			Declared: because == declared, Materialized: because == imported,
			Phase: images.CatalogEntryMissing, Pools: image.Status.Pools, PoolCount: image.Status.PoolCount,
		},
	}
	switch {
	case because == imported:
		entry.Status.Phase = "Ready"
	case len(pools) == 0:
		entry.Status.Phase = images.CatalogEntryAvailable
	}
	if _, err := f.log.Apply(catalogentry.KeyPrefix+"/"+entry.Name, entry); err != nil {
		t.Fatal(err)
	}
}

func (f *entries) remove(t testing.TB, version string) {
	t.Helper()
	if _, err := f.log.Remove(catalogentry.KeyPrefix + "/" + nameOf(version)); err != nil {
		t.Fatal(err)
	}
}

func (f *entries) list(t testing.TB, user string, options internalversion.ListOptions) *images.CatalogEntryList {
	t.Helper()
	list, err := f.List(as(t, user), &options)
	if err != nil {
		t.Fatal(err)
	}
	return view.Unshared(list).(*images.CatalogEntryList)
}

func (f *entries) watch(t *testing.T, user string, options internalversion.ListOptions) reader {
	t.Helper()
	w, err := f.Watch(as(t, user), &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return reader{w}
}

func describeAll(list *images.CatalogEntryList) (out []string) {
	for i := range list.Items {
		out = append(out, describe(&list.Items[i]))
	}
	return out
}

// several publishes entries of every kind, most of which only tenant-b asks for.
func (f *entries) several(t testing.TB) {
	t.Helper()
	f.set(t, asked, "v1.0.0", "tenant-b/k1")
	f.set(t, declared, "v1.0.1")
	f.set(t, declared, "v1.0.2", "tenant-b/k1")
	f.set(t, imported, "v1.0.3", "tenant-b/k1")
	f.set(t, asked, "v1.0.4", "tenant-a/k1", "tenant-b/k1")
	f.set(t, asked, "v1.0.5", "tenant-b/k1")
	f.set(t, declared, "v1.0.6", "tenant-a/k1", "tenant-b/k1")
	f.set(t, asked, "v1.0.7", "tenant-b/k1")
}

var (
	severalSeenByA = []string{
		"v1.0.1 Available", "v1.0.2 Available", "v1.0.3 Ready", "v1.0.4 Missing tenant-a/k1", "v1.0.6 Missing tenant-a/k1",
	}
	severalSeenByAll = []string{
		"v1.0.0 Missing tenant-b/k1", "v1.0.1 Available", "v1.0.2 Missing tenant-b/k1", "v1.0.3 Ready tenant-b/k1",
		"v1.0.4 Missing tenant-a/k1 tenant-b/k1", "v1.0.5 Missing tenant-b/k1", "v1.0.6 Missing tenant-a/k1 tenant-b/k1",
		"v1.0.7 Missing tenant-b/k1",
	}
)

// Guards: withoutHidden for lists, and what poolFields.show does to a phase.
func TestAnEntryThatOnlyHiddenPoolsAskForIsNotListed(t *testing.T) {
	f := newEntries(t, 0)
	f.several(t)
	f.authorizer.grant("anna", "tenant-a")
	f.authorizer.grant("olga", "*")
	if diff := cmp.Diff(severalSeenByA, describeAll(f.list(t, "anna", internalversion.ListOptions{}))); diff != "" {
		t.Errorf("unexpected entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"-", "tenant-a", "tenant-b"}, f.authorizer.asked()); diff != "" {
		t.Errorf("unexpected questions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(severalSeenByAll, describeAll(f.list(t, "olga", internalversion.ListOptions{}))); diff != "" {
		t.Errorf("unexpected entries of an operator (-want +got):\n%s", diff)
	}
}

// Guards: withoutHidden for one object. The error must be the Store's own.
func TestAnEntryThatOnlyHiddenPoolsAskForIsNotFound(t *testing.T) {
	f := newEntries(t, 0)
	f.several(t)
	f.authorizer.grant("anna", "tenant-a")
	get := func(version string) string {
		obj, err := f.Get(as(t, "anna"), nameOf(version), &metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return describe(obj)
	}
	absent := get("v1.0.9")
	for version, want := range map[string]string{
		"v1.0.0": strings.ReplaceAll(absent, "v1.0.9", "v1.0.0"),
		"v1.0.2": "v1.0.2 Available",
		"v1.0.3": "v1.0.3 Ready",
		"v1.0.4": "v1.0.4 Missing tenant-a/k1",
	} {
		if got := get(version); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Guards: listShown and cut. A page that ends at a hidden entry would name it in its token.
func TestPagesAreOfWhatIsShown(t *testing.T) {
	for limit, count := range map[int64]int{1: 5, 2: 3, 3: 2, 5: 1, 9: 1} {
		f := newEntries(t, 0)
		f.several(t)
		f.authorizer.grant("anna", "tenant-a")
		var seen []string
		options := internalversion.ListOptions{Limit: limit}
		version := ""
		pages := 0
		for more := true; more; pages++ {
			page := f.list(t, "anna", options)
			seen = append(seen, describeAll(page)...)
			if version != "" && page.ResourceVersion != version {
				t.Errorf("a page of version %s in a list of version %s", page.ResourceVersion, version)
			}
			version = page.ResourceVersion
			options.Continue, more = page.Continue, page.Continue != ""
			left := int64(len(severalSeenByA) - len(seen))
			if got := ptr.Deref(page.RemainingItemCount, 0); got != left {
				t.Errorf("%d entries are said to be left, and %d are", got, left)
			}
			token, err := base64.RawURLEncoding.DecodeString(page.Continue)
			if err != nil || more && !strings.Contains(string(token), nameOf(page.Items[len(page.Items)-1].Spec.Version)) {
				t.Errorf("the token is %s, %v", token, err)
			}
			f.set(t, declared, "v1.0.8") // which the list is too old for
		}
		if diff := cmp.Diff(severalSeenByA, seen); diff != "" || pages != count {
			t.Errorf("%d pages of %d (-want +got):\n%s", pages, limit, diff)
		}
	}
}

// Guards: inAnyView and predicate. A selector of the store's would tell what the phase is to others.
func TestSelectorsMatchWhatIsShown(t *testing.T) {
	f := newEntries(t, 0)
	f.several(t)
	f.authorizer.grant("anna", "tenant-a")
	for selector, want := range map[string][]string{
		"status.phase=Missing":                                            {"v1.0.4 Missing tenant-a/k1", "v1.0.6 Missing tenant-a/k1"},
		"status.phase=Available":                                          {"v1.0.1 Available", "v1.0.2 Available"},
		"status.phase!=Missing":                                           {"v1.0.1 Available", "v1.0.2 Available", "v1.0.3 Ready"},
		"metadata.name=" + nameOf("v1.0.5"):                               nil,
		"metadata.name=" + nameOf("v1.0.2"):                               {"v1.0.2 Available"},
		"status.phase=Missing,metadata.name=" + nameOf("v1.0.2"):          nil,
		"status.phase=Available,spec.schematicID=aaa,spec.version=v1.0.2": {"v1.0.2 Available"},
	} {
		t.Run(selector, func(t *testing.T) {
			options := internalversion.ListOptions{FieldSelector: fields.ParseSelectorOrDie(selector)}
			if diff := cmp.Diff(want, describeAll(f.list(t, "anna", options))); diff != "" {
				t.Errorf("unexpected entries (-want +got):\n%s", diff)
			}
			options.Limit = 1
			if page := f.list(t, "anna", options); len(page.Items) != min(len(want), 1) || page.RemainingItemCount != nil {
				t.Errorf("a page of %d, and %v are left", len(page.Items), page.RemainingItemCount)
			}
		})
	}
}

// Guards: that whoever asks for one entry causes questions about that one only.
func TestAListOfOneEntryAsksAboutItsNamespaces(t *testing.T) {
	f := newEntries(t, 0)
	f.several(t)
	f.set(t, declared, "v1.0.9", "tenant-c/k1")
	f.list(t, "anna", internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", nameOf("v1.0.9"))})
	if diff := cmp.Diff([]string{"-", "tenant-c"}, f.authorizer.asked()); diff != "" {
		t.Errorf("unexpected questions (-want +got):\n%s", diff)
	}
}

// Guards: filterHidden, case by case.
func TestAnEntryComesAndGoesWithThePoolsThatAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newEntries(t, 0)
		f.set(t, declared, "v1.0.1")
		f.set(t, asked, "v1.0.7", "tenant-b/k1")
		f.authorizer.grant("anna", "tenant-a")
		w := f.watch(t, "anna", internalversion.ListOptions{
			SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		})
		w.expect(t, "ADDED v1.0.1 Available", "BOOKMARK")
		all := f.watch(t, "olga", internalversion.ListOptions{ResourceVersion: f.list(t, "olga", internalversion.ListOptions{}).ResourceVersion})

		f.set(t, declared, "v1.0.1", "tenant-b/k1")
		f.set(t, declared, "v1.0.1")
		w.expect(t)
		f.set(t, declared, "v1.0.1", "tenant-a/k1", "tenant-b/k1")
		w.expect(t, "MODIFIED v1.0.1 Missing tenant-a/k1")
		f.set(t, declared, "v1.0.1", "tenant-b/k1")
		w.expect(t, "MODIFIED v1.0.1 Available")
		f.set(t, asked, "v1.0.1", "tenant-b/k1")
		w.expect(t, "DELETED v1.0.1 Available")
		f.remove(t, "v1.0.1")
		w.expect(t)

		f.set(t, asked, "v1.0.0", "tenant-b/k1")
		f.set(t, asked, "v1.0.0", "tenant-b/k1", "tenant-b/k2")
		w.expect(t)
		f.set(t, asked, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
		w.expect(t, "ADDED v1.0.0 Missing tenant-a/k1")
		f.set(t, asked, "v1.0.0", "tenant-a/k1")
		w.expect(t)
		f.set(t, asked, "v1.0.0", "tenant-b/k1")
		w.expect(t, "DELETED v1.0.0 Missing tenant-a/k1")
		f.set(t, declared, "v1.0.0", "tenant-b/k1")
		w.expect(t, "ADDED v1.0.0 Available")
		f.remove(t, "v1.0.0")
		w.expect(t, "DELETED v1.0.0 Available")
		f.set(t, asked, "v1.0.0", "tenant-b/k1")
		f.set(t, imported, "v1.0.0", "tenant-b/k1")
		w.expect(t, "ADDED v1.0.0 Ready")
		f.set(t, asked, "v1.0.0", "tenant-b/k1")
		w.expect(t, "DELETED v1.0.0 Ready")
		f.set(t, asked, "v1.0.0", "tenant-a/k1")
		w.expect(t, "ADDED v1.0.0 Missing tenant-a/k1")
		f.remove(t, "v1.0.0")
		w.expect(t, "DELETED v1.0.0 Missing tenant-a/k1")
		all.drain()
	})
}

// Guards: the version of what an event of the view shows.
func TestAnEntryThatGoesOutOfSightHasTheVersionOfTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newEntries(t, 0)
		f.set(t, declared, "v1.0.0", "tenant-b/k1")
		w := f.watch(t, "anna", internalversion.ListOptions{})
		w.expect(t, "ADDED v1.0.0 Available")
		f.set(t, asked, "v1.0.0", "tenant-b/k1")
		synctest.Wait()
		e := <-w.ResultChan()
		want := f.list(t, "anna", internalversion.ListOptions{}).ResourceVersion
		if got := e.Object.(*images.CatalogEntry).ResourceVersion; got != want || describeEvent(e) != "DELETED v1.0.0 Available" {
			t.Errorf("%s at version %s, want %s", describeEvent(e), got, want)
		}
	})
}

// Guards: that watches select what is shown.
func TestAWatchOfAPhaseIsOfThePhaseThatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newEntries(t, 0)
		f.set(t, declared, "v1.0.0", "tenant-b/k1")
		f.authorizer.grant("anna", "tenant-a")
		of := func(phase string) reader {
			return f.watch(t, "anna", internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.phase", phase)})
		}
		available, missing := of("Available"), of("Missing")
		available.expect(t, "ADDED v1.0.0 Available")
		missing.expect(t)
		f.set(t, declared, "v1.0.0")
		available.expect(t)
		f.set(t, declared, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
		available.expect(t, "DELETED v1.0.0 Available")
		missing.expect(t, "ADDED v1.0.0 Missing tenant-a/k1")
		f.set(t, declared, "v1.0.0", "tenant-b/k1")
		available.expect(t, "ADDED v1.0.0 Available")
		missing.expect(t, "DELETED v1.0.0 Missing tenant-a/k1")
	})
}

// Guards: that it is not guessed whether the client has an entry.
func TestAWatchThatIsTooSlowToKnowWhatWasBeforeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 4
		f := newEntries(t, window)
		f.set(t, asked, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
		release := make(chan struct{})
		w := f.watch(t, "anna", internalversion.ListOptions{ResourceVersion: f.list(t, "anna", internalversion.ListOptions{}).ResourceVersion})
		w.expect(t)
		f.authorizer.answerAfter(release)
		f.set(t, asked, "v1.0.0", "tenant-c/k1")
		synctest.Wait()
		for range window {
			f.set(t, asked, "v1.0.0", "tenant-b/k1")
			f.set(t, asked, "v1.0.0", "tenant-b/k2")
			synctest.Wait()
		}
		close(release)
		w.expect(t, "ERROR 410 Expired", "closed")
	})
}

// Guards: that what is hidden is asked about again.
func TestAWatchEndsWhenItsCallerMaySeeWhoAsksForAHiddenEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newEntries(t, 0)
		f.set(t, asked, "v1.0.0", "tenant-b/k1")
		f.authorizer.grant("anna", "tenant-a")
		w := f.watch(t, "anna", internalversion.ListOptions{})
		w.expect(t)
		f.authorizer.grant("anna", "tenant-a", "tenant-b")
		pass(askAgainPeriod)
		w.expect(t, "ERROR 410 Expired", "closed")
		f.watch(t, "anna", internalversion.ListOptions{}).expect(t, "ADDED v1.0.0 Missing tenant-b/k1")
	})
}

// Guards: that nobody stands between who sees all and the log.
func TestWhoSeesAllIsSentTheSharedEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newEntries(t, 0)
		f.authorizer.grant("olga", "*")
		w := f.watch(t, "olga", internalversion.ListOptions{})
		f.set(t, asked, "v1.0.0", "tenant-a/k1")
		w.expect(t, "ADDED shared v1.0.0 Missing tenant-a/k1")
	})
}
