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
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// expectOptions is expect for options.
func (f *fixture) expectOptions(why string, want ...string) {
	f.t.Helper()
	f.settle()
	if diff := cmp.Diff(want, f.out.takeOptions(), cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("%s: %s", why, diff)
	}
}

// offering is the publication of an offer of one image.
func offering(schematic, version, remark string) []string {
	return []string{
		fmt.Sprintf("%s/workerimage: %s · %s%s", goldens, version, schematic, remark),
		fmt.Sprintf("%s/workerimage-schematic: %s%s", goldens, schematic, remark),
		fmt.Sprintf("%s/workerimage-version: %s%s", goldens, version, remark),
	}
}

// nothing is the publication of an empty offer.
func nothing() []string {
	return []string{goldens + "/workerimage: ", goldens + "/workerimage-schematic: ", goldens + "/workerimage-version: "}
}

// Guards: that an empty offer is published once, before all is ready.
func TestAnEmptyClusterOffersNothing(t *testing.T) {
	run(t, func(f *fixture) {
		f.start()
		f.expectOptions("at the start", append(nothing(), "ready")...)
		f.pass(time.Minute)
		f.expectOptions("later")
	})
}

// Guards: the order of the first offer and of being ready.
func TestOptionsArePublishedBeforeTheyAreReady(t *testing.T) {
	run(t, func(f *fixture) {
		f.dataVolumes.put(goldenObject(goldA))
		f.claims.put(claimObject(goldens, goldA, "replicated"))
		f.start()
		f.expectOptions("at the start", append(offering("aaa", "v1.13.6", ""), "ready")...)
	})
}

// Guards: that changes within a second are one offer.
func TestManyImagesAreOneOffer(t *testing.T) {
	run(t, func(f *fixture) {
		f.start()
		f.out.takeOptions()
		f.pass(publishInterval)
		for i := range 20 {
			f.dataVolumes.put(goldenObject(fmt.Sprintf("talos-worker-aaa-v1.13.%d", i), phase("ImportInProgress")))
		}
		f.settle()
		f.pass(5 * publishInterval)
		// The first image may be published alone, and all others within a second at once.
		if got := len(f.out.takeOptions()) / 3; got < 1 || got > 2 {
			t.Errorf("twenty images made %d offers", got)
		}
	})
}

// Guards: when an offer is published.
func TestTheFirstChangeOfAnOfferIsPublishedAtOnceAndFurtherOnesWaitForTheEndOfTheSecond(t *testing.T) {
	run(t, func(f *fixture) {
		f.importing("1%")
		f.claims.put(claimObject(goldens, goldA, "replicated"))
		f.start()
		f.pass(publishInterval)
		f.out.takeOptions()

		f.dataVolumes.put(goldenObject(goldA))
		f.expectOptions("the import is done", offering("aaa", "v1.13.6", "")...)
		f.dataVolumes.put(goldenObject(goldA, phase("Failed")))
		f.settle()
		f.pass(publishInterval - tick)
		f.expectOptions("it fails within the second")
		f.pass(tick)
		f.expectOptions("the second is over", nothing()...)
		f.pass(10 * publishInterval)
		f.expectOptions("nothing more changes")
	})
}

// Guards: that only another Choice makes another offer.
func TestAnImportThatGoesOnMakesNoOffer(t *testing.T) {
	run(t, func(f *fixture) {
		f.importing("1%")
		f.start()
		f.expectOptions("at the start", append(offering("aaa", "v1.13.6", " (importing)"), "ready")...)
		for _, percent := range []string{"2%", "50%", "99%"} {
			f.importing(percent)
			f.pass(2 * publishInterval)
		}
		f.pools.put(poolObject("tenant-a", poolA, imageID(goldA)))
		f.pass(2 * publishInterval)
		f.expectOptions("while it goes on, and a pool asks for it")
	})
}

// Guards: that a choice goes with its image.
func TestAnImageThatIsGoneIsNotOffered(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.dataVolumes.remove(goldenObject(goldA))
		f.expectOptions("it is gone", nothing()...)
	})
}

// Guards: that choices follow the health of the sources.
func TestNothingIsOfferedThatCannotBeRead(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.dataVolumes.fail(errors.New("forbidden"))
		f.pass(3 * DefaultGracePeriod)
		f.expectOptions("DataVolumes cannot be read", nothing()...)
	})
}

// Guards: that a refused offer is not taken for published.
func TestAnOfferThatThePublisherRefusesIsPublishedLater(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.out.refuse(errors.New("no room"))
		f.dataVolumes.put(goldenObject(goldA, phase("Failed")))
		f.pass(5 * publishInterval)
		f.expectOptions("while it refuses")
		f.out.refuse(nil)
		f.pass(2 * publishInterval)
		f.expectOptions("when it does not", nothing()...)
	})
}

// Guards: the same where images are published meanwhile, and the count of failures.
func TestAnOfferThatThePublisherRefusesAloneIsPublishedLater(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.out.refuseOptions(errors.New("no room"))
		f.dataVolumes.put(goldenObject(goldA, phase("Failed")))
		f.pass(5 * publishInterval)
		f.expect("the image", goldA+" Failed")
		f.expectOptions("while it refuses")
		if f.Stats().Failed == 0 {
			t.Error("no failure was counted")
		}
		f.out.refuseOptions(nil)
		f.pass(publishInterval)
		f.expectOptions("when it does not", nothing()...)
	})
}
