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

package imagereport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

// cluster keeps Events by name.
type cluster struct {
	mu     sync.Mutex
	events map[string]*corev1.Event
	tried  int
	// failures are the answers to the next tries.
	failures []error
}

func (c *cluster) Create(_ context.Context, event *corev1.Event, _ metav1.CreateOptions) (*corev1.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried++
	if len(c.failures) > 0 {
		err := c.failures[0]
		c.failures = c.failures[1:]
		return nil, err
	}
	if c.events[event.Name] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, event.Name)
	}
	if c.events == nil {
		c.events = map[string]*corev1.Event{}
	}
	c.events[event.Name] = event
	return event, nil
}

// reasons counts the Events by their reason.
func (c *cluster) reasons() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for _, event := range c.events {
		out[event.Reason]++
	}
	return out
}

// start runs a Reporter until the test ends.
func start(t *testing.T, events Events) *Reporter {
	t.Helper()
	r := New(events, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// settle lets an obstacle stand for as long as it takes until it is told.
func settle() {
	<-time.After(patience)
	synctest.Wait()
}

func failing(reason string) inventory.ImageReport { return reportOf(metav1.ConditionFalse, reason) }

func TestAnEventIsRecordedWhenTheReasonChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		r := start(t, c)
		for _, reason := range []string{"Importing", "ImportRetrying", "ImportRetrying", "ImportRetrying", "ImportFailed", "ImportFailed"} {
			r.Report(t.Context(), failing(reason))
			settle()
		}
		if diff := cmp.Diff(map[string]int{"ImportRetrying": 1, "ImportFailed": 1}, c.reasons()); diff != "" || c.tried != 2 {
			t.Errorf("after %d tries (-want +got):\n%s", c.tried, diff)
		}
	})
}

func TestWhatPassesInAMomentIsNotSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		r := start(t, c)
		r.Report(t.Context(), failing("ImporterUnschedulable"))
		<-time.After(patience / 2)
		r.Report(t.Context(), failing("ImportRetrying"))
		<-time.After(patience - time.Second)
		r.Report(t.Context(), failing("Importing"))
		settle()
		if c.tried != 0 {
			t.Errorf("%v after %d tries", c.reasons(), c.tried)
		}
	})
}

func TestTheLogHasOneLineForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		lines := func() []string {
			var out []string
			for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
				out = append(out, fmt.Sprint(append([]any{entry.Message}, entry.ParameterKVList...)...))
			}
			return out
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		r := New(nil, clock.RealClock{})
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx) })
		for _, report := range []inventory.ImageReport{
			failing("ImportRetrying"), failing("ImportRetrying"), reportOf(metav1.ConditionTrue, "Ready"), reportOf(metav1.ConditionTrue, "Ready"),
			failing("ClaimLost"), reportOf(metav1.ConditionFalse, "Terminating"), {Name: image},
		} {
			if report.Image != nil && report.Image.Status.Conditions[0].Reason == "Terminating" {
				report.Image.Status.Phase = images.WorkerImageTerminating
			}
			r.Report(ctx, report)
			settle()
		}
		cancel()
		running.Wait()
		want := []string{
			"Something stands in the way of an image" + "image" + image + "reasonImportRetrying",
			"Nothing stands in the way of an image any more" + "image" + image + "wasImportRetrying",
			"Something stands in the way of an image" + "image" + image + "reasonClaimLost",
		}
		if diff := cmp.Diff(want, lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestASourceThatIsAwayForAWhileChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		r := start(t, c)
		for _, report := range []inventory.ImageReport{failing("ImportFailed"), reportOf(metav1.ConditionUnknown, "SourceNotReadable"), failing("ImportFailed")} {
			r.Report(t.Context(), report)
			settle()
		}
		if c.tried != 1 {
			t.Errorf("%d tries", c.tried)
		}
	})
}

func TestReplicasRecordOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		for range 3 {
			start(t, c).Report(t.Context(), failing("ImportFailed"))
		}
		settle()
		if diff := cmp.Diff(map[string]int{"ImportFailed": 1}, c.reasons()); diff != "" || c.tried != 3 {
			t.Errorf("after %d tries (-want +got):\n%s", c.tried, diff)
		}
	})
}

func TestAGoldenThatIsMadeAgainFailsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		r := start(t, c)
		r.Report(t.Context(), failing("ImportFailed"))
		settle()
		r.Report(t.Context(), inventory.ImageReport{Name: image})
		again := failing("ImportFailed")
		again.UID = "uid-of-the-next"
		r.Report(t.Context(), again)
		settle()
		if got := c.reasons()["ImportFailed"]; got != 2 {
			t.Errorf("%d events", got)
		}
	})
}

func TestAClusterThatIsAwayIsTriedAgainAndNotForEver(t *testing.T) {
	away := errors.New("connection refused")
	for _, test := range []struct {
		name     string
		failures int
		events   int
		tries    int
	}{
		{"for a moment", 2, 1, 3},
		{"for long", 100, 0, attempts},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{}
				for range test.failures {
					c.failures = append(c.failures, away)
				}
				r := start(t, c)
				r.Report(t.Context(), failing("ImportFailed"))
				<-time.After(time.Hour)
				settle()
				if got := c.reasons()["ImportFailed"]; got != test.events || c.tried != test.tries {
					t.Errorf("%d events after %d tries", got, c.tried)
				}
			})
		})
	}
}

func TestWhatIsOverBeforeItIsRecordedIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{failures: []error{errors.New("connection refused")}}
		r := start(t, c)
		r.Report(t.Context(), failing("StorageClassNotFound"))
		settle()
		r.Report(t.Context(), failing("Importing"))
		<-time.After(time.Hour)
		settle()
		if len(c.reasons()) > 0 || c.tried != 1 {
			t.Errorf("%v after %d tries", c.reasons(), c.tried)
		}
	})
}

func TestWithoutEventsTheLogHasToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.Report(t.Context(), failing("ImportFailed"))
		settle()
		if r.queue.Len() != 0 {
			t.Error("an Event is waiting for nobody")
		}
	})
}
