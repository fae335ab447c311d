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
	"testing"
)

// awaiting runs a wait in the background, and tells whether it is over.
func (f *fixture) awaiting(ctx context.Context, wait func(context.Context, string, string) error, version string) (over func() bool, result chan error) {
	result = make(chan error, 1)
	done := make(chan struct{})
	go func() {
		result <- wait(ctx, goldA, version)
		close(done)
	}()
	return func() bool {
		f.settle()
		select {
		case <-done:
			return true
		default:
			return false
		}
	}, result
}

func TestAwaitReturnsWhenTheWriteIsPublished(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		changed := goldenObject(goldA, set("Failed", "status", "phase"))
		over, result := f.awaiting(f.t.Context(), f.AwaitDataVolumes, "1000")
		if over() {
			f.t.Fatal("a version that has not been seen is said to be published")
		}
		f.dataVolumes.mu.Lock()
		f.dataVolumes.version = 999
		f.dataVolumes.mu.Unlock()
		f.dataVolumes.put(changed)
		if !over() {
			f.t.Fatal("the version has been seen and published")
		}
		if err := <-result; err != nil {
			f.t.Fatal(err)
		}
		f.expect("the wait is over after the publication", goldA+" Failed")
	})
}

func TestAwaitOfWhatIsPublishedReturnsAtOnce(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		if err := f.AwaitDataVolumes(f.t.Context(), goldA, "1"); err != nil {
			f.t.Error(err)
		}
		if err := f.AwaitClaims(f.t.Context(), goldA, "1"); err != nil {
			f.t.Error(err)
		}
	})
}

func TestAwaitHoldsWhileTheChangeIsDeferred(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.dataVolumes.put(goldenObject(goldA, progress("10.0%")))
		f.expect("the first change is published at once", goldA+" Ready")
		f.dataVolumes.put(goldenObject(goldA, progress("20.0%")))
		over, result := f.awaiting(f.t.Context(), f.AwaitDataVolumes, f.dataVolumesVersion())
		if over() {
			f.t.Fatal("a change that waits for the end of the second is said to be published")
		}
		f.pass(publishInterval)
		if !over() {
			f.t.Fatal("the change was published at the end of the second")
		}
		if err := <-result; err != nil {
			f.t.Error(err)
		}
	})
}

func TestAwaitHoldsWhileThePublisherRefuses(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.out.refuse(errors.New("not now"))
		f.dataVolumes.put(goldenObject(goldA, set("Failed", "status", "phase")))
		over, result := f.awaiting(f.t.Context(), f.AwaitDataVolumes, f.dataVolumesVersion())
		if over() {
			f.t.Fatal("a change that was refused is said to be published")
		}
		f.out.refuse(nil)
		f.pass(2 * publishInterval)
		if !over() {
			f.t.Fatal("the change was published at the next try")
		}
		if err := <-result; err != nil {
			f.t.Error(err)
		}
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		ctx, cancel := context.WithCancel(f.t.Context())
		defer cancel()
		over, result := f.awaiting(ctx, f.AwaitClaims, "1000")
		if over() {
			f.t.Fatal("a version that has not been seen is said to be published")
		}
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			f.t.Errorf("got %v", err)
		}
	})
}

func TestAwaitOfSomethingThatIsNoVersionFails(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		if err := f.AwaitDataVolumes(f.t.Context(), goldA, "latest"); err == nil {
			f.t.Error("a word was taken for a version")
		}
	})
}

func (f *fixture) dataVolumesVersion() string {
	f.dataVolumes.mu.Lock()
	defer f.dataVolumes.mu.Unlock()
	return f.dataVolumes.objects[nameOf(goldenObject(goldA))].GetResourceVersion()
}
