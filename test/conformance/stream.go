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

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// event is an event of a watch as it comes over the wire.
type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (e event) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(e.Object, into); err != nil {
		t.Fatalf("decode %.500s: %v", e.Object, err)
	}
}

// object is the object of an event that must not be an error.
func (e event) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	e.decode(t, &o)
	if e.Type == watch.Error {
		t.Fatalf("the event is an error: %.500s", e.Object)
	}
	return &o
}

// stream is a watch as it comes over the wire.
type stream struct {
	header http.Header
	events chan event
	// stop ends the watch and waits for it.
	stop func()
	// end is why there are no more events. It may be read when they are closed.
	end error
}

// watch opens a watch that lasts until the test ends. It must be accepted.
func (s *subject) watch(t *testing.T, query string) *stream {
	t.Helper()
	return s.watchAs(t, query, asJSON)
}

func (s *subject) watchAs(t *testing.T, query, accept string) *stream {
	t.Helper()
	w, refusal := s.tryWatch(t, query, accept)
	if w == nil {
		t.Fatalf("watch&%s: the answer is %d: %.500s", query, refusal.status, refusal.body)
	}
	return w
}

// tryWatch returns a watch, or the answer by which it was refused.
func (s *subject) tryWatch(t *testing.T, query, accept string) (*stream, answer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	response, err := s.client.do(ctx, http.MethodGet, s.path+"?watch=1&"+query, http.Header{"Accept": {accept}}, "")
	if err != nil {
		cancel()
		t.Fatalf("watch&%s: %v", query, err)
	}
	if response.StatusCode != http.StatusOK {
		defer cancel()
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatalf("watch&%s: read the answer: %v", query, err)
		}
		return nil, answer{status: response.StatusCode, header: response.Header, body: body}
	}
	w := &stream{header: response.Header, events: make(chan event)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer response.Body.Close()
		w.read(ctx, response.Body)
	}()
	w.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(w.stop)
	return w, answer{}
}

func (w *stream) read(ctx context.Context, body io.Reader) {
	defer close(w.events)
	decoder := json.NewDecoder(body)
	for {
		var e event
		if w.end = decoder.Decode(&e); w.end != nil {
			return
		}
		select {
		case w.events <- e:
		case <-ctx.Done():
			w.end = ctx.Err()
			return
		}
	}
}

// next waits for the next event.
func (w *stream) next(t *testing.T) event {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case e, open := <-w.events:
		if !open {
			t.Fatalf("the watch ends where an event is due: %v", w.end)
		}
		return e
	case <-timeout.C:
		t.Fatalf("no event comes within %v", patience)
	}
	return event{}
}

// until returns the events up to the first that the condition holds for.
func (w *stream) until(t *testing.T, condition func(event) bool) []event {
	t.Helper()
	var events []event
	for {
		e := w.next(t)
		events = append(events, e)
		if condition(e) {
			return events
		}
		if e.Type == watch.Error {
			t.Fatalf("the watch ends with an error: %.500s", e.Object)
		}
	}
}

// rest returns the events up to the end of the watch, which must be a clean one.
func (w *stream) rest(t *testing.T) []event {
	t.Helper()
	var events []event
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case e, open := <-w.events:
			if open {
				events = append(events, e)
				continue
			}
			if !errors.Is(w.end, io.EOF) {
				t.Errorf("the watch ends with %v", w.end)
			}
			return events
		case <-timeout.C:
			t.Fatalf("the watch does not end within %v", patience)
		}
	}
}

// initial waits for the events that a watch begins with and returns their objects.
func (w *stream) initial(t *testing.T, count int) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for range count {
		e := w.next(t)
		if e.Type != watch.Added {
			t.Fatalf("event %d of %d is %s: %.500s", len(objects)+1, count, e.Type, e.Object)
		}
		objects = append(objects, e.object(t))
	}
	return objects
}

func isBookmark(e event) bool { return e.Type == watch.Bookmark }

// refusedWatch opens a watch that must be refused, before it begins or as its only event.
func (s *subject) refusedWatch(t *testing.T, query string, code int, reason metav1.StatusReason) {
	t.Helper()
	w, refusal := s.tryWatch(t, query, asJSON)
	if w == nil {
		refusal.refused(t, code, reason)
		return
	}
	e := w.next(t)
	if e.Type != watch.Error {
		t.Fatalf("the watch begins with %s: %.500s", e.Type, e.Object)
	}
	var status metav1.Status
	e.decode(t, &status)
	checkStatus(t, status, code, reason)
	if more := w.rest(t); len(more) > 0 {
		t.Errorf("events follow the error: %s", describe(more))
	}
}

func describe(events []event) string {
	var out string
	for _, e := range events {
		out += fmt.Sprintf("\n%s %.200s", e.Type, e.Object)
	}
	return out
}
