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

package wire_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// serve returns a client of a server that answers all requests in one way.
func serve(t *testing.T, answer http.HandlerFunc) *wire.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client, err := wire.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestARequestIsSentAsItIs(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("Accept"), body)
	})
	a := client.Send(t, http.MethodPost, "/apis?dryRun=All", wire.Accepting(wire.YAML), "a: b")
	if got, want := string(a.Body), "POST /apis?dryRun=All application/yaml a: b"; got != want {
		t.Errorf("it arrives as %q, not %q", got, want)
	}
}

func TestARequestIsNotTriedAgain(t *testing.T) {
	requests := 0
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Retry-After", "1")
		http.Error(w, "later", http.StatusServiceUnavailable)
	})
	if a := client.Get(t, "/", wire.JSON); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("the answer is %d with %v", a.Status, a.Header)
	}
	if requests != 1 {
		t.Errorf("it was sent %d times", requests)
	}
}

func TestAWatchIsReadToItsEnd(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"A","metadata":{"name":"a-%d"}}}`+"\n", i)
		}
	})
	w := client.Watch(t, "/?watch=1", wire.JSON)
	if first := w.Initial(t, 1); first[0].GetName() != "a-0" {
		t.Errorf("the first is %v", first)
	}
	if rest := w.Rest(t); len(rest) != 2 || rest[1].Object(t).GetName() != "a-2" {
		t.Errorf("the rest are %s", rest)
	}
	if _, err := w.Within(time.Minute); !errors.Is(err, io.EOF) {
		t.Errorf("after its end it says %v", err)
	}
}

func TestAWatchThatSendsNothingIsToldFromOneThatEnds(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	})
	w := client.Watch(t, "/?watch=1", wire.JSON)
	if _, err := w.Within(time.Millisecond); !errors.Is(err, wire.ErrNoEvent) {
		t.Errorf("it says %v", err)
	}
	w.Stop()
	if _, open := <-w.Events; open || w.End == nil || errors.Is(w.End, io.EOF) {
		t.Errorf("when it was stopped it says %v", w.End)
	}
}

func TestARefusalIsAnAnswer(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","code":410,"reason":"Expired","message":"too old"}`) // to the client of the test
	})
	w, refusal := client.TryWatch(t, "/?watch=1", wire.JSON)
	if w != nil {
		t.Fatal("there is a watch")
	}
	refusal.Refused(t, http.StatusGone, metav1.StatusReasonExpired)
}

func TestEventsAreReadUpToOneThatIsAwaited(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, kind := range []watch.EventType{watch.Added, watch.Bookmark, watch.Deleted} {
			fmt.Fprintf(w, `{"type":%q,"object":{"kind":"A"}}`+"\n", kind)
		}
	})
	events := client.Watch(t, "/?watch=1", wire.JSON).Until(t, func(e wire.Event) bool { return e.Type == watch.Bookmark })
	if len(events) != 2 {
		t.Errorf("they are %s", events)
	}
}
