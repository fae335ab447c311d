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
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/imagestest"
)

// unavailable refuses the first requests of a method.
func unavailable(method string, times int32) func(http.ResponseWriter, *http.Request) bool {
	var refused atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || refused.Add(1) > times {
			return false
		}
		imagestest.Refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request")
		return true
	}
}

func TestAServerThatComesBackIsAskedAgain(t *testing.T) {
	server := imagestest.NewServer(t, image())
	server.Intrude(unavailable(http.MethodGet, 2))
	if _, err := newClient(t, server).Get(t.Context(), gpu); err != nil {
		t.Error(err)
	}
}

func TestAServerThatStaysAwayIsGivenUp(t *testing.T) {
	server := imagestest.NewServer(t, image())
	away := newClient(t, server)
	away.patience = 300 * time.Millisecond
	server.Intrude(unavailable(http.MethodGet, 1000))
	closed, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	closed.patience = 300 * time.Millisecond
	for name, client := range map[string]*Client{"the API behind it": away, "the whole server": closed} {
		t.Run(name, func(t *testing.T) {
			_, err := client.List(t.Context())
			var unreachable *UnreachableError
			if !errors.As(err, &unreachable) {
				t.Fatalf("got %v", err)
			}
			summary, detail := client.Explain("list the worker images", err)
			if summary != "The WorkerImage API does not answer" || !strings.Contains(detail, client.Host) {
				t.Errorf("got %s: %s", summary, detail)
			}
		})
	}
}

func TestARefusalIsNotAskedForTwice(t *testing.T) {
	server := imagestest.NewServer(t)
	if _, err := newClient(t, server).Get(t.Context(), gpu); !NotFound(err) {
		t.Errorf("got %v", err)
	}
	if requests := server.Requests(http.MethodGet); requests != 1 {
		t.Errorf("asked %d times", requests)
	}
}

func TestACreationWaitsForADeletion(t *testing.T) {
	server := imagestest.NewServer(t)
	var refused atomic.Bool
	server.Intrude(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || refused.Swap(true) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, err := w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"details":{"retryAfterSeconds":1}}`))
		return err == nil
	})
	if _, err := newClient(t, server).Create(t.Context(), image()); err != nil {
		t.Error(err)
	}
	if requests := server.Requests(http.MethodPost); requests != 2 {
		t.Errorf("asked %d times", requests)
	}
}

func TestAnErrorSaysWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		answer  func(http.ResponseWriter, *http.Request) bool
		summary string
		detail  string
	}{
		"the API is not installed": {
			answer:  func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true },
			summary: "The WorkerImage API is not installed", detail: "Install workerimage-apiserver",
		},
		"it is forbidden": {
			answer: func(w http.ResponseWriter, _ *http.Request) bool {
				imagestest.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, `User "jane" cannot list resource "workerimages"`)
				return true
			},
			summary: "Access to worker images was refused", detail: "workerimages-reader",
		},
		"the credentials are no good": {
			answer: func(w http.ResponseWriter, _ *http.Request) bool {
				imagestest.Refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
				return true
			},
			summary: "The credentials were refused", detail: "expired",
		},
		"anything else comes as it was said": {
			answer: func(w http.ResponseWriter, _ *http.Request) bool {
				imagestest.Refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "spec.version: not in the catalog")
				return true
			},
			summary: "The WorkerImage API refused", detail: "spec.version: not in the catalog",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := imagestest.NewServer(t)
			server.Intrude(test.answer)
			client := newClient(t, server)
			_, err := client.List(t.Context())
			summary, detail := client.Explain("list the worker images", err)
			if summary != test.summary || !strings.Contains(detail, test.detail) {
				t.Errorf("got %s: %s", summary, detail)
			}
		})
	}
}

func TestAnAPIThatIsNotInstalledIsNoMissingImage(t *testing.T) {
	server := imagestest.NewServer(t)
	server.Intrude(func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true })
	if _, err := newClient(t, server).Get(t.Context(), gpu); err == nil || NotFound(err) {
		t.Errorf("got %v", err)
	}
}
