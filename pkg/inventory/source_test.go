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

package inventory

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

var (
	errAbsent      = apierrors.NewNotFound(schema.GroupResource{Group: "cdi.kubevirt.io", Resource: "datavolumes"}, "")
	errUnavailable = apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	errTooMany     = apierrors.NewTooManyRequests("later", 1)
	errRefused     = syscall.ECONNREFUSED
	errForbidden   = apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "", errors.New("no"))
)

// foundWithin is how soon a kind that appears must be there.
const foundWithin = 30 * time.Second

func TestWithoutDataVolumesNothingIsReadyUntilTheyAppear(t *testing.T) {
	run(t, func(f *fixture) {
		for _, cdi := range []*fakeSource{f.dataVolumes, f.profiles, f.cdis} {
			cdi.fail(errAbsent)
		}
		f.claims.put(claimObject(goldens, goldA, "replicated"))
		f.start()
		f.pass(10 * time.Minute)
		f.expect("while CDI is absent")
		if f.out.isReady() {
			t.Error("it is ready")
		}

		f.dataVolumes.put(goldenObject(goldA))
		for _, cdi := range []*fakeSource{f.dataVolumes, f.profiles, f.cdis} {
			cdi.recover()
		}
		f.pass(foundWithin)
		if got := f.out.take(); len(got) < 2 || got[0] != goldA+" Ready" || got[1] != "ready" {
			t.Errorf("published %v", got)
		}
	})
}

func TestWithoutAccessToClaimsNothingIsReady(t *testing.T) {
	run(t, func(f *fixture) {
		f.claims.fail(errForbidden)
		f.dataVolumes.put(goldenObject(goldA))
		f.start()
		f.pass(time.Minute)
		f.expect("while claims are forbidden")
	})
}

func TestPoolsThatAreAbsentAreUnknownUntilTheyAppear(t *testing.T) {
	run(t, func(f *fixture) {
		f.pools.fail(errAbsent)
		f.startReady()
		if got := f.condition(goldA, images.ConditionInUse); got != "Unknown SourceNotReadable" {
			t.Errorf("while they are absent: InUse is %s", got)
		}
		f.pools.recover()
		f.pass(foundWithin)
		if got := f.condition(goldA, images.ConditionInUse); got != "True DeclaredByPools" {
			t.Errorf("when they appear: InUse is %s", got)
		}
	})
}

func TestPoolsWhoseServerFailsAreUnknownAfterTheGracePeriodAndKnownAgainLater(t *testing.T) {
	run(t, func(f *fixture) {
		f.pools.put(poolObject("tenant-b", poolA, imageID(goldB)))
		f.dataVolumes.put(goldenObject(goldB))
		f.startReady()
		f.pools.fail(errUnavailable)
		f.pass(DefaultGracePeriod - tick)
		f.expect("within the grace period")
		f.pass(tick)
		f.expect("after it", goldA+" Ready", goldB+" Pending")
		if got := f.condition(goldA, images.ConditionDeletable); got != "Unknown SourceNotReadable" && got != "False SourceNotReadable" {
			t.Errorf("Deletable is %s", got)
		}
		f.pass(2 * time.Minute)
		f.expect("nothing changes")

		f.pools.recover()
		f.pools.forget(poolObject("tenant-b", poolA, imageID(goldB)))
		f.pass(foundWithin)
		f.out.take()
		if got := f.condition(goldA, images.ConditionInUse); got != "True DeclaredByPools" {
			t.Errorf("InUse is %s", got)
		}
		if got := f.condition(goldB, images.ConditionInUse); got != "False NotInUse" {
			t.Errorf("InUse of an image whose pool went meanwhile is %s", got)
		}
	})
}

func TestDataVolumesThatCannotBeReadKeepTheNamesAndAreUnknown(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.dataVolumes.fail(errUnavailable)
		f.pass(DefaultGracePeriod)
		f.expect("after the grace period", goldA+" Unknown")
		f.dataVolumes.recover()
		f.pass(foundWithin)
		f.expect("when they can be read", goldA+" Ready")
	})
}

func TestWithoutTheCDIObjectTheStrategyIsNotKnown(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		if got := f.out.image(t, goldA).Status.CloneStrategy; got != "csi-clone" {
			t.Errorf("the strategy is %q", got)
		}
		f.cdis.fail(errAbsent)
		f.pass(DefaultGracePeriod)
		if got := f.out.image(t, goldA).Status.CloneStrategy; got != "" {
			t.Errorf("the strategy is %q, and might be overridden", got)
		}
	})
}

func TestAnOutageOfLessThanHalfTheGracePeriodIsNotSeen(t *testing.T) {
	for name, err := range map[string]error{
		"unavailable": errUnavailable, "connection refused": errRefused, "too many requests": errTooMany,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *fixture) {
				f.startReady()
				for _, s := range []*fakeSource{f.dataVolumes, f.claims, f.pools} {
					s.fail(err)
				}
				f.pass(DefaultGracePeriod/2 - tick)
				for _, s := range []*fakeSource{f.dataVolumes, f.claims, f.pools} {
					s.recover()
				}
				f.pass(time.Minute)
				f.expect("an outage")
				if h := f.source("datavolumes"); h.LastError == nil {
					t.Error("no error was noticed")
				}
			})
		})
	}
}

func TestALongOutageIsSeenWhateverTheReflectorDoesAboutIt(t *testing.T) {
	for name, err := range map[string]error{
		"unavailable": errUnavailable, "connection refused": errRefused, "too many requests": errTooMany,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *fixture) {
				f.startReady()
				f.pools.fail(err)
				f.pass(time.Minute)
				if f.source("kubernetesnodes").Readable {
					t.Error("it counts as readable")
				}
				f.pools.recover()
				f.pass(foundWithin)
				if !f.source("kubernetesnodes").Readable {
					t.Error("it does not count as readable again")
				}
			})
		})
	}
}

func TestAWatchThatStartsButNeverListsDoesNotMakeASourceReadable(t *testing.T) {
	breaks := map[string]func(*fakeSource){
		"it hangs":      func(*fakeSource) {},
		"it ends":       (*fakeSource).endWatches,
		"it is cut off": (*fakeSource).expireWatches,
	}
	for how, end := range breaks {
		t.Run(how, func(t *testing.T) {
			run(t, func(f *fixture) {
				f.startReady()
				f.pools.mu.Lock()
				f.pools.listErr, f.pools.noBookmarks = errUnavailable, true
				f.pools.mu.Unlock()
				f.pools.expireWatches()
				for range 30 {
					f.pass(time.Second)
					end(f.pools)
				}
				if h := f.source("kubernetesnodes"); h.Readable || h.LastError == nil {
					t.Errorf("readable %v, error %v", h.Readable, h.LastError)
				}
			})
		})
	}
}

func TestAListThatHangsDoesNotKeepASourceReadable(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.pools.blocked = make(chan struct{})
		f.pools.expireWatches()
		f.pass(time.Minute)
		if h := f.source("kubernetesnodes"); h.Readable || h.LastError == nil {
			t.Errorf("readable %v, error %v", h.Readable, h.LastError)
		}
		close(f.pools.blocked)
		f.pass(tick)
		if !f.source("kubernetesnodes").Readable {
			t.Error("it is not readable when the list has arrived")
		}
	})
}

func TestAWatchThatIsReestablishedPublishesNothing(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		before := f.Stats()
		lists := f.dataVolumes.listed()
		f.pass(time.Minute)
		f.dataVolumes.endWatches()
		f.pass(time.Minute)
		f.expect("a watch ends")
		if diff := cmp.Diff(before, f.Stats()); diff != "" {
			t.Error(diff)
		}
		if got := f.dataVolumes.listed(); got != lists {
			t.Errorf("%d lists", got-lists)
		}
		f.dataVolumes.put(goldenObject(goldA, phase("Failed")))
		f.expect("an event of the new watch", goldA+" Failed")
	})
}

func TestARelistFindsWhatTheWatchMissed(t *testing.T) {
	run(t, func(f *fixture) {
		f.dataVolumes.put(goldenObject(goldB))
		f.startReady()
		f.dataVolumes.forget(goldenObject(goldB))
		f.dataVolumes.expireWatches()
		f.pass(retryAtLeast)
		f.expect("a relist", goldB+" gone")
	})
}

func TestAnEmptyRelistIsBelieved(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.dataVolumes.forget(goldenObject(goldA))
		f.claims.forget(claimObject(goldens, goldA, "replicated"))
		f.claims.expireWatches()
		f.dataVolumes.expireWatches()
		f.pass(foundWithin)
		if got := f.published(); len(got) == 0 || got[len(got)-1] != goldA+" gone" {
			t.Errorf("published %v", got)
		}
	})
}

func TestHealthTellsHowASourceIsDoing(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		h := f.source("persistentvolumeclaims")
		if !h.Synced || !h.Readable || h.Objects != 1 || h.LastError != nil || !h.Since.Equal(start) || !h.LastEvent.Equal(start) {
			t.Errorf("at the start: %+v", h)
		}
		f.pass(time.Minute)
		f.claims.put(claimObject("tenant-a", "disk-1", "local"))
		f.settle()
		if h := f.source("persistentvolumeclaims"); h.Objects != 2 || !h.LastEvent.Equal(f.clock.Now()) {
			t.Errorf("after an event: %+v", h)
		}
		f.claims.fail(errForbidden)
		failed := f.clock.Now()
		f.pass(time.Minute)
		h = f.source("persistentvolumeclaims")
		if h.Readable || !h.Synced || h.Objects != 2 || !apierrors.IsForbidden(h.LastError) || !h.Since.Equal(failed.Add(DefaultGracePeriod)) {
			t.Errorf("while it fails: %+v", h)
		}
	})
}

func TestHealthCountsListsAndFailures(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		if h := f.source("storageclasses"); h.Lists != 1 || h.Failures != 0 {
			t.Errorf("at the start: %d lists, %d failures", h.Lists, h.Failures)
		}
		f.classes.fail(errUnavailable)
		f.pass(foundWithin)
		failed := f.source("storageclasses")
		if failed.Lists+failed.Failures < 3 || failed.Failures < 2 {
			t.Errorf("while it fails: %d lists, %d failures", failed.Lists, failed.Failures)
		}
		f.classes.recover()
		f.pass(foundWithin)
		back := f.source("storageclasses")
		f.pass(foundWithin)
		if h := f.source("storageclasses"); h.Lists != back.Lists || h.Failures != back.Failures {
			t.Errorf("when it is over, lists go from %d to %d, and failures from %d to %d", back.Lists, h.Lists, back.Failures, h.Failures)
		}
	})
}

func TestHealthListsTheSourcesInOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for _, h := range newFixture(t, true).Health() {
			names = append(names, h.Name)
		}
		want := []string{"datavolumes", "persistentvolumeclaims", "storageclasses", "storageprofiles", "cdis", "kubernetesnodes", "catalog"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunEndsWithItsContextWhateverTheSourcesDo(t *testing.T) {
	for name, err := range map[string]error{
		"they work": nil, "they are absent": errAbsent, "they are unavailable": errUnavailable,
		"they refuse connections": errRefused, "they are busy": errTooMany,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(f *fixture) {
				sources := []*fakeSource{f.dataVolumes, f.claims, f.classes, f.profiles, f.cdis, f.pools}
				ctx, cancel := context.WithCancel(f.t.Context())
				var running sync.WaitGroup
				running.Go(func() { f.Run(ctx) })
				f.settle()
				if err != nil {
					for _, s := range sources {
						s.fail(err)
					}
					f.pass(time.Minute)
				}
				cancel()
				running.Wait() // the clock stands still: what sleeps would sleep for ever
			})
		})
	}
}
