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
	"crypto/sha256"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

func TestResourceVersionsThatClientsSend(t *testing.T) {
	const (
		ok       = "ok"
		bad      = "BadRequest"
		expired  = "Expired"
		tooLarge = "too large"
	)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(l *LogOptions, _ *Options) { l.Window = 2 })
		for i := range 4 {
			f.set(t, "a", strconv.Itoa(i))
		}
		for _, row := range []struct {
			name, rv                          string
			get, list, exact, watch, streamed string
		}{
			{"none", "", ok, ok, "", ok, ok},
			{"any", "0", ok, ok, "", ok, ok},
			{"the present one", f.version(4), ok, ok, ok, ok, ok},
			{"one whose successors are kept", f.version(2), ok, ok, ok, ok, ok},
			{"one whose successors are forgotten", f.version(1), ok, ok, expired, expired, ok},
			{"one that is still to come", f.version(5), tooLarge, tooLarge, tooLarge, tooLarge, tooLarge},
			{"one of an earlier process", versionOf(-time.Hour, "test"), expired, expired, expired, expired, expired},
			{"one of a later process", versionOf(time.Hour, "test"), expired, expired, expired, expired, expired},
			{"one of a process of the same second", versionOf(0, "other"), expired, expired, expired, expired, expired},
			{"a small number", "1", expired, expired, expired, expired, expired},
			{"a number above all int64", "18446744073709551615", expired, expired, expired, expired, expired},
			{"a number above all uint64", "18446744073709551616", bad, bad, bad, bad, bad},
			{"a negative number", "-1", bad, bad, bad, bad, bad},
			{"a word", "latest", bad, bad, bad, bad, bad},
		} {
			check := func(verb, want string, err error) {
				t.Helper()
				got := ok
				switch {
				case storage.IsTooLargeResourceVersion(err):
					got = tooLarge
					if _, retry := apierrors.SuggestsClientDelay(err); retry {
						t.Errorf("%s at %s: has clients retry", verb, row.name)
					}
				case err != nil:
					got = string(apierrors.ReasonForError(err))
				}
				if got != want {
					t.Errorf("%s at %s: %s instead of %s: %v", verb, row.name, got, want, err)
				}
			}
			check("get", row.get, f.Get(t.Context(), podKey("a"), storage.GetOptions{ResourceVersion: row.rv}, &example.Pod{}))
			for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchNotOlderThan} {
				_, err := f.list(t.Context(), storage.ListOptions{Predicate: selecting(), ResourceVersion: row.rv, ResourceVersionMatch: match})
				check("list "+string(match), row.list, err)
			}
			if row.exact != "" {
				_, err := f.list(t.Context(), storage.ListOptions{Predicate: selecting(), ResourceVersion: row.rv, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
				check("exact list", row.exact, err)
			}
			check("watch", row.watch, f.watchError(t, storage.ListOptions{Predicate: selecting(), ResourceVersion: row.rv}))
			check("streaming list", row.streamed, f.watchError(t, streaming(row.rv, selecting())))
		}
	})
}

// watchError returns what a client gets from a watch: from the request if it is not understood,
// from the stream otherwise.
func (f *fixture) watchError(t *testing.T, opts storage.ListOptions) error {
	t.Helper()
	opts.Recursive = true
	w, err := f.Watch(t.Context(), "/pods", opts)
	if err != nil {
		if !apierrors.IsBadRequest(err) {
			t.Errorf("not in the stream: %v", err)
		}
		return err
	}
	defer w.Stop()
	synctest.Wait()
	for {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if e.Type == "ERROR" {
				return apierrors.FromObject(e.Object)
			}
		default:
			return nil
		}
	}
}

func versionOf(later time.Duration, identity string) string {
	return strconv.FormatUint(FirstResourceVersion(started.Add(later), identity)+2, 10)
}

func TestAnEmptyListHasAVersionThatCanBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		list, err := f.list(t.Context(), listEverything)
		if err != nil || list.ResourceVersion != f.version(0) || list.Items == nil {
			t.Fatalf("%+v, %v", list, err)
		}
		w := f.watch(t.Context(), t, storage.ListOptions{Predicate: selecting(), ResourceVersion: list.ResourceVersion})
		f.set(t, "a", "1")
		if diff := cmp.Diff([]string{"ADDED a=1 at 1"}, w.drain(t)); diff != "" {
			t.Error(diff)
		}
		w.Stop()
	})
}

func TestPagesAreOfOneState(t *testing.T) {
	f := newFixture(t)
	var want []string
	for i := range 7 {
		f.set(t, fmt.Sprintf("p%d", i), "1")
		want = append(want, fmt.Sprintf("p%d=1", i))
	}
	at := f.version(7)
	pred := selecting()
	pred.Limit = 2
	var got []string
	for {
		page, err := f.list(t.Context(), storage.ListOptions{Predicate: pred})
		if err != nil || page.ResourceVersion != at {
			t.Fatalf("a page at %s instead of %s: %v", page.ResourceVersion, at, err)
		}
		got = append(got, describeList(page)...)
		if pred.Continue = page.Continue; pred.Continue == "" {
			break
		}
		if left := page.RemainingItemCount; left == nil || *left != int64(7-len(got)) {
			t.Errorf("%v are said to be left after %d of 7", left, len(got))
		}
		f.remove(t, fmt.Sprintf("p%d", len(got)))
		f.set(t, fmt.Sprintf("p%d", len(got)+1), "2")
		f.set(t, "a-new-one", strconv.Itoa(len(got)))
		f.set(t, "z-new-one", strconv.Itoa(len(got)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAContinueTokenThatExpiredComesWithAFreshOne(t *testing.T) {
	for name, expire := range map[string]func(*testing.T, *fixture) *fixture{
		"because the log forgot": func(t *testing.T, f *fixture) *fixture {
			f.set(t, "c", "2")
			f.log.compactTo(f.log.ResourceVersion())
			return f
		},
		"because another process issued it": func(t *testing.T, _ *fixture) *fixture {
			other := newFixture(t, func(l *LogOptions, _ *Options) { l.First = FirstResourceVersion(started, "other") })
			other.set(t, "a", "1")
			other.set(t, "c", "2")
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.set(t, "a", "1")
			f.set(t, "b", "1")
			pred := selecting()
			pred.Limit = 1
			page, err := f.list(t.Context(), storage.ListOptions{Predicate: pred})
			if err != nil {
				t.Fatal(err)
			}
			pred.Continue = page.Continue
			f = expire(t, f)
			f.remove(t, "b")
			_, err = f.list(t.Context(), storage.ListOptions{Predicate: pred})
			status, ok := err.(apierrors.APIStatus)
			if !apierrors.IsResourceExpired(err) || !ok || status.Status().Continue == "" {
				t.Fatalf("%v", err)
			}
			pred.Continue = status.Status().Continue
			rest, err := f.list(t.Context(), storage.ListOptions{Predicate: pred})
			if diff := cmp.Diff([]string{"c=2"}, describeList(rest)); err != nil || diff != "" {
				t.Errorf("the rest: %v\n%s", err, diff)
			}
		})
	}
}

func TestAContinueTokenThatIsNoneIsABadRequest(t *testing.T) {
	pred := selecting()
	pred.Continue = "nonsense"
	if _, err := newFixture(t).list(t.Context(), storage.ListOptions{Predicate: pred}); !apierrors.IsBadRequest(err) {
		t.Error(err)
	}
}

func TestListsAreFiltered(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	f.set(t, "b", "2")
	f.set(t, "c", "1")
	named := storage.SelectionPredicate{Field: fields.OneTermEqualSelector("metadata.name", "c")}
	for name, row := range map[string]struct {
		pred storage.SelectionPredicate
		want []string
	}{
		"by nothing":       {storage.SelectionPredicate{}, []string{"a=1", "b=2", "c=1"}},
		"by a label":       {selecting("1"), []string{"a=1", "c=1"}},
		"by a field alone": {named, []string{"c=1"}},
		"by a label alone": {storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"l": "2"})}, []string{"b=2"}},
		"to nothing":       {selecting("3"), nil},
	} {
		list, err := f.list(t.Context(), storage.ListOptions{Predicate: row.pred})
		if diff := cmp.Diff(row.want, describeList(list)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestObjectsAreSelectedByNameAndLabelsByDefault(t *testing.T) {
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.Attrs = nil })
	f.set(t, "a", "1")
	f.set(t, "b", "1")
	f.set(t, "b-other", "2")
	pred := selecting("1")
	pred.Field = fields.OneTermEqualSelector("metadata.name", "b")
	list, err := f.list(t.Context(), storage.ListOptions{Predicate: pred})
	if diff := cmp.Diff([]string{"b=1"}, describeList(list)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestListsAndWatchesAreSharded(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.ShardedListAndWatch, true)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		const pods = 20
		for i := range pods {
			pod := newPod(fmt.Sprintf("p%d", i), "1")
			pod.UID = types.UID(fmt.Sprintf("%x", sha256.Sum256([]byte(pod.Name))))
			apply(t, f.log, podKey(pod.Name), pod)
		}
		found := 0
		for _, half := range []sharding.ShardRangeRequirement{
			{Key: "object.metadata.uid", Start: "0x0000000000000000", End: "0x8000000000000000"},
			{Key: "object.metadata.uid", Start: "0x8000000000000000", End: "0x10000000000000000"},
		} {
			pred := selecting()
			pred.ShardSelector = sharding.NewSelector(half)
			list, err := f.list(t.Context(), storage.ListOptions{Predicate: pred})
			if err != nil || list.ShardInfo == nil || len(list.Items) == 0 || len(list.Items) == pods {
				t.Fatalf("%d items, %v, %v", len(list.Items), list.ShardInfo, err)
			}
			found += len(list.Items)
			w := f.watch(t.Context(), t, storage.ListOptions{Predicate: pred, ResourceVersion: f.version(0)})
			if got := w.drain(t); len(got) != len(list.Items) {
				t.Errorf("%d listed, %d watched", len(list.Items), len(got))
			}
			w.Stop()
		}
		if found != pods {
			t.Errorf("%d of %d pods are in two halves", found, pods)
		}
	})
}

func TestWhatLeavesTheStorageCanBeModified(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	got := &example.Pod{}
	if err := f.Get(t.Context(), podKey("a"), storage.GetOptions{}, got); err != nil {
		t.Fatal(err)
	}
	got.Labels["l"] = "modified" // Get alone may be modified in depth
	list, err := f.list(t.Context(), listEverything)
	if err != nil {
		t.Fatal(err)
	}
	list.Items[0].ResourceVersion, list.Items[0].Kind = "modified", "Pod"
	obj, _ := f.log.Get(podKey("a"))
	want := newPod("a", "1")
	want.ResourceVersion = f.version(1)
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Error(diff)
	}
}

func TestAPrefixIsAWholeSegment(t *testing.T) {
	f := newFixture(t)
	err := f.Get(t.Context(), "/podsx/a", storage.GetOptions{IgnoreNotFound: true}, &example.Pod{})
	if err == nil {
		t.Error("/podsx/a is taken for a key below /pods")
	}
}
