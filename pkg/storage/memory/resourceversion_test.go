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
	"math"
	"testing"
	"time"
)

func TestFirstResourceVersionIsAPositiveInt64(t *testing.T) {
	for name, start := range map[string]time.Time{
		"in the first second of the era":          time.Unix(eraStart, 0),
		"today":                                   started,
		"in the last second of the era":           time.Unix(eraStart+1<<secondBits-1, 0),
		"after the era":                           time.Unix(eraStart+1<<secondBits, 0),
		"before the era, by a clock that is lost": time.Unix(0, 0),
	} {
		for _, identity := range []string{"", "a", "b", "worker-image-apiserver-6f7b8-x2x4z"} {
			if rv := FirstResourceVersion(start, identity); rv == 0 || rv > math.MaxInt64 {
				t.Errorf("started %s, identity %q: %d", name, identity, rv)
			}
		}
	}
}

func TestLaterProcessesHaveHigherVersions(t *testing.T) {
	const events = 1<<counterBits - 2
	last := FirstResourceVersion(started, "a") + events
	for _, identity := range []string{"a", "b", "c"} {
		if next := FirstResourceVersion(started.Add(time.Second), identity); next <= last {
			t.Errorf("%d of a process that started a second later, with identity %s, is not above %d", next, identity, last)
		}
	}
}

func TestProcessesOfTheSameSecondDifferByIdentity(t *testing.T) {
	const processes = 64
	epochs := map[uint64]bool{}
	for i := range processes {
		epochs[FirstResourceVersion(started, string(rune('a'+i)))>>counterBits] = true
	}
	if len(epochs) < processes-3 { // 64 of 2048 collide once or twice
		t.Errorf("%d processes share %d epochs", processes, len(epochs))
	}
}

func TestNextEpochIsAboveAllVersionsOfThisOne(t *testing.T) {
	first := FirstResourceVersion(started, "a")
	last := first | (1<<counterBits - 1)
	next := nextEpoch(last, counterBits)
	if next <= last || next>>counterBits == last>>counterBits {
		t.Errorf("%d follows %d", next, last)
	}
	if next != FirstResourceVersion(started.Add(time.Second), "a") {
		t.Errorf("%d is not of the same process, a second later", next)
	}
	if wrapped := nextEpoch(math.MaxInt64, counterBits); wrapped == 0 || wrapped > math.MaxInt64 {
		t.Errorf("after the last epoch of all: %d", wrapped)
	}
}
