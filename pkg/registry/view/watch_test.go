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
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// askAgainPeriod and answerTimeout of the package, in whose bounds a change of access takes effect.
const (
	askAgainPeriod = 2 * time.Second
	answerTimeout  = 8 * time.Second
)

func (f *fixture) watch(t *testing.T, name string, options internalversion.ListOptions) reader {
	t.Helper()
	w, err := f.Watch(as(t, name), &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return reader{w}
}

// fromNow is how a client watches that has listed.
func (f *fixture) fromNow() internalversion.ListOptions {
	return internalversion.ListOptions{ResourceVersion: f.resourceVersion()}
}

// Guards: that watcher.filter drops what reads the same, and nothing else.
func TestAChangeThatTheCallerCannotSeeIsNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(t, "v1.0.0", "tenant-a/k1=1", "tenant-b/k1=1")
		f.authorizer.grant("anna", "tenant-a")
		w := f.watch(t, "anna", f.fromNow())

		f.set(t, "v1.0.0", "tenant-a/k1=1", "tenant-b/k1=2")
		w.expect(t)
		f.set(t, "v1.0.0", "tenant-a/k1=1", "tenant-b/k1=2", "tenant-c/k1")
		w.expect(t)
		f.set(t, "v1.0.0", "tenant-a/k1=2", "tenant-b/k1=3", "tenant-c/k1")
		w.expect(t, "MODIFIED v1.0.0 tenant-a/k1=2")
		f.set(t, "v1.0.0", "tenant-a/k1=2")
		w.expect(t)
		f.set(t, "v1.0.0", "tenant-b/k1")
		w.expect(t, "MODIFIED v1.0.0")
		f.set(t, "v1.0.0")
		w.expect(t, "MODIFIED v1.0.0") // the condition Deletable
		f.set(t, "v1.0.1", "tenant-b/k1")
		w.expect(t, "ADDED v1.0.1")
		f.remove(t, "v1.0.1")
		w.expect(t, "DELETED v1.0.1")
	})
}

// Guards: that bookmarks pass.
func TestBookmarksPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.set(t, "v1.0.0", "tenant-a/k1=1", "tenant-b/k1=1")
		f.authorizer.grant("anna", "tenant-a")
		w := f.watch(t, "anna", internalversion.ListOptions{
			SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		})
		w.expect(t, "ADDED v1.0.0 tenant-a/k1=1", "BOOKMARK")
		f.set(t, "v1.0.0", "tenant-a/k1=1", "tenant-b/k1=2")
		w.expect(t)
		pass(time.Minute)
		synctest.Wait()
		e := <-w.ResultChan()
		if got := e.Object.(*images.WorkerImage).ResourceVersion; got != f.resourceVersion() {
			t.Errorf("a bookmark at %s, and the log is at %s", got, f.resourceVersion())
		}
	})
}

// Guards: watcher.askAgain, and the cause for which the log ends a watch.
func TestAWatchEndsWhenItsCallersAccessChanges(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after []string
		want          []string
	}{
		{"access is revoked", []string{"tenant-a", "tenant-b"}, []string{"tenant-a"}, []string{"ERROR 410 Expired", "closed"}},
		{"access is granted", []string{"tenant-a"}, []string{"tenant-a", "tenant-b"}, []string{"ERROR 410 Expired", "closed"}},
		{"an operator becomes a tenant", []string{"*"}, []string{"tenant-a"}, []string{"ERROR 410 Expired", "closed"}},
		{"a tenant becomes an operator", []string{"tenant-a"}, []string{"*"}, []string{"ERROR 410 Expired", "closed"}},
		{"nothing changes", []string{"tenant-a"}, []string{"tenant-a"}, nil},
		{"access is granted that shows nothing", []string{"tenant-a"}, []string{"tenant-a", "tenant-z"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
				f.authorizer.grant("anna", test.before...)
				w := f.watch(t, "anna", f.fromNow())
				pass(10 * askAgainPeriod)
				w.expect(t)
				f.authorizer.grant("anna", test.after...)
				pass(askAgainPeriod)
				w.expect(t, test.want...)
			})
		})
	}
}

// Guards: discard, and that forwarding heeds a view that has become another. A client that reads slowly must not be sent
// later what it may not see any more.
func TestWhatWaitsToBeReadIsNotSentWhenAccessChanges(t *testing.T) {
	for _, access := range []string{"*", "tenant-a"} {
		for name, events := range map[string]int{"a few events wait": 3, "more wait than there is room for": 200} {
			t.Run(fmt.Sprintf("%s, for who sees %s", name, access), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					f.set(t, "v1.0.0", "tenant-a/k1")
					f.authorizer.grant("anna", access)
					w := f.watch(t, "anna", f.fromNow())
					for i := range events {
						f.set(t, "v1.0.0", "tenant-a/k1="+strconv.Itoa(i))
					}
					synctest.Wait()
					f.authorizer.grant("anna")
					pass(askAgainPeriod)
					w.expect(t, "ERROR 410 Expired", "closed")
				})
			})
		}
	}
}

// Guards: that a question which is asked again and fails hides, and answerTimeout.
func TestAWatchEndsWhenNobodyAnswersWhatItsCallerMaySee(t *testing.T) {
	for name, breakIt := range map[string]func(*grants){
		"the authorizer fails": func(g *grants) { g.fail(errAuthorizer) },
		"the authorizer hangs": func(g *grants) { g.hang() },
	} {
		for _, access := range []string{"*", "tenant-a"} {
			t.Run(fmt.Sprintf("%s, for who sees %s", name, access), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t)
					f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
					f.authorizer.grant("anna", access)
					w := f.watch(t, "anna", f.fromNow())
					w.expect(t)
					breakIt(f.authorizer)
					pass(askAgainPeriod + answerTimeout)
					w.expect(t, "ERROR 410 Expired", "closed")
				})
			})
		}
	}
}

// Guards: that nobody stands between who sees all and the log.
func TestWhoSeesAllIsSentWhatIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.authorizer.grant("anna", "*")
		w := f.watch(t, "anna", f.fromNow())
		f.set(t, "v1.0.0", "tenant-a/k1", "tenant-b/k1")
		w.expect(t, "ADDED shared v1.0.0 tenant-a/k1 tenant-b/k1")
	})
}

// Guards: that forwarding heeds Stop. A client may go away while it does not read.
func TestAWatchThatNobodyReadsCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.authorizer.grant("anna", "tenant-a")
		w := f.watch(t, "anna", f.fromNow())
		for i := range 200 {
			f.set(t, "v1.0."+strconv.Itoa(i), "tenant-a/k1")
		}
		synctest.Wait()
		w.Stop()
		synctest.Wait()
		if n := f.log.Stats().Watchers; n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

// Guards: that Stop waits. What is asked for a client that is gone must not outlive the server.
func TestStopReturnsWhenNothingIsLeftOfAWatch(t *testing.T) {
	for _, access := range []string{"*", "tenant-a"} {
		t.Run("for who sees "+access, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.set(t, "v1.0.0", "tenant-a/k1")
				f.authorizer.grant("anna", access)
				w := f.watch(t, "anna", f.fromNow())
				w.expect(t)
				release := make(chan struct{})
				f.authorizer.answerAfter(release)
				pass(askAgainPeriod)
				stopped := make(chan struct{})
				go func() { w.Stop(); close(stopped) }()
				synctest.Wait()
				select {
				case <-stopped:
					t.Error("a question is still open")
				default:
				}
				close(release)
				<-stopped
			})
		})
	}
}

// Guards: refusalsPerSecond.
func TestRefusalsAreAskedAboutAgainWithinABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		var pools []string
		for i := range 1000 {
			pools = append(pools, "tenant-"+strconv.Itoa(i)+"/k1")
		}
		f.set(t, "v1.0.0", pools...)
		f.authorizer.grant("anna", "tenant-7")
		for range 3 {
			f.watch(t, "anna", f.fromNow())
		}
		synctest.Wait()
		if n := len(f.authorizer.asked()); n != 3*1001 {
			t.Errorf("%d questions at the start", n)
		}
		pass(100 * time.Second)
		synctest.Wait()
		asked := map[string]int{}
		for _, namespace := range f.authorizer.asked() {
			asked[namespace]++
		}
		if n := asked["tenant-7"]; n < 3*50 || n > 3*100 {
			t.Errorf("what is seen was asked about %d times", asked["tenant-7"])
		}
		delete(asked, "tenant-7")
		total, atLeast := 0, 1000
		for _, n := range asked {
			total, atLeast = total+n, min(atLeast, n)
		}
		if total > 102*50 || total < 98*50 || len(asked) != 1000 || atLeast < 1 {
			t.Errorf("%d questions about %d refusals, each at least %d times", total, len(asked), atLeast)
		}
	})
}
