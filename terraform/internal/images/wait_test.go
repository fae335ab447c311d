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

package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/imagestest"
)

const (
	gpu      = "talos-worker-gpu-v1.13.6"
	patience = time.Minute
)

func image(options ...imagestest.Option) *v1alpha1.WorkerImage {
	return imagestest.Image("gpu", "v1.13.6", options...)
}

func newClient(t *testing.T, server *imagestest.Server) *Client {
	t.Helper()
	client, err := NewClient(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// script does one thing after another, each when the state before it has been seen.
type script struct {
	seen  []string
	steps []func()
}

func (s *script) onChange(image *v1alpha1.WorkerImage) {
	seen := string(image.Status.Phase)
	if image.Status.Progress != nil {
		seen += fmt.Sprintf(" %d%%", *image.Status.Progress)
	}
	s.seen = append(s.seen, seen)
	if len(s.steps) > 0 {
		step := s.steps[0]
		s.steps = s.steps[1:]
		step()
	}
}

func TestAnImageIsWaitedForUntilItIsReady(t *testing.T) {
	for name, interrupt := range map[string]func(*imagestest.Server){
		"over a watch that lasts":                  func(*imagestest.Server) {},
		"over watches that end":                    (*imagestest.Server).EndWatches,
		"over a restart that forgets all versions": (*imagestest.Server).Forget,
		"over a server that is away for two requests": func(server *imagestest.Server) {
			var refused atomic.Int32
			server.Intrude(func(w http.ResponseWriter, _ *http.Request) bool {
				if refused.Add(1) > 2 {
					return false
				}
				imagestest.Refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "it is away")
				return true
			})
			server.EndWatches()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := imagestest.NewServer(t, image(imagestest.In(v1alpha1.WorkerImagePending, "Pending", "")))
			steps := &script{steps: []func(){
				func() { server.Put(image(imagestest.Importing(40))); interrupt(server) },
				func() { interrupt(server); server.Put(image(imagestest.Importing(80))) },
				func() { server.Put(image()) },
			}}
			got, err := newClient(t, server).WaitReady(t.Context(), gpu, patience, steps.onChange)
			if err != nil || !Ready(got) {
				t.Fatalf("got %v, %v", got, err)
			}
			if diff := cmp.Diff([]string{"Pending", "Importing 40%", "Importing 80%", "Ready"}, steps.seen); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAWatchIsTakenUpWhereItEnded(t *testing.T) {
	server := imagestest.NewServer(t, image(imagestest.Importing(10)))
	steps := &script{steps: []func(){
		func() { server.Put(image(imagestest.Importing(20))) },
		server.EndWatches,
	}}
	done := make(chan error, 1)
	go func() {
		_, err := newClient(t, server).WaitReady(t.Context(), gpu, patience, steps.onChange)
		done <- err
	}()
	for server.Requests("WATCH") < 2 {
		pause(t.Context(), time.Millisecond)
	}
	server.Put(image())
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if lists := server.Requests(http.MethodGet); lists != 1 {
		t.Errorf("listed %d times", lists)
	}
}

func TestWhatDoesNotPassByItselfIsNotWaitedFor(t *testing.T) {
	for reason, phase := range map[string]v1alpha1.WorkerImagePhase{
		"ImportFailed":         v1alpha1.WorkerImageFailed,
		"ClaimLost":            v1alpha1.WorkerImageImporting,
		"NoStorageClass":       v1alpha1.WorkerImagePending,
		"StorageClassNotFound": v1alpha1.WorkerImagePending,
		"QuotaExceeded":        v1alpha1.WorkerImagePending,
		"Paused":               v1alpha1.WorkerImagePending,
		"WaitForFirstConsumer": v1alpha1.WorkerImagePending,
		"Terminating":          v1alpha1.WorkerImageTerminating,
		"AWordOfTomorrow":      v1alpha1.WorkerImageFailed,
	} {
		t.Run(reason, func(t *testing.T) {
			server := imagestest.NewServer(t, image(imagestest.In(phase, reason, "CDI: no route to host")))
			_, err := newClient(t, server).WaitReady(t.Context(), gpu, patience, func(*v1alpha1.WorkerImage) {})
			var hopeless *NotReadyError
			if !errors.As(err, &hopeless) {
				t.Fatalf("got %v", err)
			}
			for _, part := range []string{gpu, string(phase), reason, "no route to host"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no %q in: %v", part, err)
				}
			}
		})
	}
}

func TestWhatMayPassIsWaitedForAsLongAsThereIsTime(t *testing.T) {
	for reason, phase := range map[string]v1alpha1.WorkerImagePhase{
		"ImportRetrying":        v1alpha1.WorkerImageImporting,
		"ImporterUnschedulable": v1alpha1.WorkerImageImporting,
		"ImagePullFailed":       v1alpha1.WorkerImageImporting,
		"ClaimPending":          v1alpha1.WorkerImageImporting,
		"ClaimMissing":          v1alpha1.WorkerImagePending,
		"PhaseUnknown":          v1alpha1.WorkerImageUnknown,
		"AWordOfTomorrow":       "Verifying",
	} {
		t.Run(reason, func(t *testing.T) {
			server := imagestest.NewServer(t, image(imagestest.In(phase, reason, "CDI: connection refused")))
			_, err := newClient(t, server).WaitReady(t.Context(), gpu, 200*time.Millisecond, func(*v1alpha1.WorkerImage) {})
			var late *TimeoutError
			if !errors.As(err, &late) || !strings.Contains(err.Error(), "CDI: connection refused") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnImageThatIsNotThereIsNotWaitedFor(t *testing.T) {
	server := imagestest.NewServer(t)
	_, err := newClient(t, server).WaitReady(t.Context(), gpu, patience, func(*v1alpha1.WorkerImage) {})
	if !NotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestAnImageThatGoesAwayIsNotWaitedFor(t *testing.T) {
	server := imagestest.NewServer(t, image(imagestest.Importing(10)))
	steps := &script{steps: []func(){func() { server.Remove(gpu) }}}
	_, err := newClient(t, server).WaitReady(t.Context(), gpu, patience, steps.onChange)
	var hopeless *NotReadyError
	if !errors.As(err, &hopeless) || !hopeless.Gone || !strings.Contains(err.Error(), "deleted while it was Importing (10%)") {
		t.Errorf("got %v", err)
	}
}

func TestARefusalEndsTheWait(t *testing.T) {
	server := imagestest.NewServer(t, image(imagestest.Importing(10)))
	server.Intrude(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		imagestest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "cannot watch")
		return true
	})
	_, err := newClient(t, server).WaitReady(t.Context(), gpu, patience, func(*v1alpha1.WorkerImage) {})
	if err == nil || !strings.Contains(err.Error(), "cannot watch") {
		t.Errorf("got %v", err)
	}
}

func TestAWaitEndsWhenItIsInterrupted(t *testing.T) {
	server := imagestest.NewServer(t, image(imagestest.Importing(10)))
	ctx, cancel := context.WithCancel(t.Context())
	steps := &script{steps: []func(){cancel}}
	_, err := newClient(t, server).WaitReady(ctx, gpu, patience, steps.onChange)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestADeletionIsWaitedForUntilTheImageIsGone(t *testing.T) {
	for name, vanish := range map[string]func(*imagestest.Server){
		"gone": func(server *imagestest.Server) { server.Remove(gpu) },
		"made again by another": func(server *imagestest.Server) {
			again := image()
			again.UID = "another"
			server.Put(again)
		},
	} {
		t.Run(name, func(t *testing.T) {
			terminating := image(imagestest.In(v1alpha1.WorkerImageTerminating, "Terminating", ""))
			server := imagestest.NewServer(t, terminating)
			done := make(chan error, 1)
			go func() { done <- newClient(t, server).WaitGone(t.Context(), gpu, terminating.UID) }()
			for server.Requests("WATCH") < 1 {
				pause(t.Context(), time.Millisecond)
			}
			vanish(server)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
