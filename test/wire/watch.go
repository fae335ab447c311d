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

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
)

// Event is an event of a watch.
type Event struct {
	Type watch.EventType `json:"type"`
	Raw  json.RawMessage `json:"object"`
}

// Decode reads the object of the event.
func (e Event) Decode(t *testing.T, into any) {
	t.Helper()
	decode(t, e.Raw, into)
}

// Object is the object of an event that must not be an error.
func (e Event) Object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	e.Decode(t, &o)
	if e.Type == watch.Error {
		t.Fatalf("the event is an error: %.500s", e.Raw)
	}
	return &o
}

// Metadata is the part of the object that every kind has.
func (e Event) Metadata(t *testing.T) *metav1.PartialObjectMetadata {
	t.Helper()
	o := &metav1.PartialObjectMetadata{}
	e.Decode(t, o)
	return o
}

// Image is the object of an event of WorkerImages.
func (e Event) Image(t *testing.T) *v1alpha1.WorkerImage {
	t.Helper()
	image := &v1alpha1.WorkerImage{}
	e.Decode(t, image)
	if image.Kind != "WorkerImage" {
		t.Fatalf("the event is %s %.500s", e.Type, e.Raw)
	}
	return image
}

// Watch is a watch that was accepted.
type Watch struct {
	Header http.Header
	// Events is closed when there are no more.
	Events chan Event
	// End is why there are no more. It may be read when they are closed.
	End error
	// Stop ends the watch and waits for it.
	Stop func()
}

// Watch opens a watch that lasts until the test ends. The path has a query that says so.
func (c *Client) Watch(t *testing.T, path, accept string) *Watch {
	t.Helper()
	w, refusal := c.TryWatch(t, path, accept)
	if w == nil {
		t.Fatalf("%s: the answer is %d: %.500s", path, refusal.Status, refusal.Body)
	}
	return w
}

// TryWatch opens a watch, or returns the answer by which it was refused.
func (c *Client) TryWatch(t *testing.T, path, accept string) (*Watch, Answer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	response, err := c.Open(ctx, http.MethodGet, path, Accepting(accept), "")
	if err != nil {
		cancel()
		t.Fatalf("%s: %v", path, err)
	}
	if response.StatusCode != http.StatusOK {
		defer cancel()
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatalf("%s: read the answer: %v", path, err)
		}
		return nil, Answer{Status: response.StatusCode, Header: response.Header, Body: body}
	}
	w := &Watch{Header: response.Header, Events: make(chan Event)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer response.Body.Close()
		w.read(ctx, response.Body)
	}()
	w.Stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(w.Stop)
	return w, Answer{}
}

func (w *Watch) read(ctx context.Context, body io.Reader) {
	defer close(w.Events)
	decoder := json.NewDecoder(body)
	for {
		var e Event
		if w.End = decoder.Decode(&e); w.End != nil {
			return
		}
		select {
		case w.Events <- e:
		case <-ctx.Done():
			w.End = ctx.Err()
			return
		}
	}
}

// ErrNoEvent says that a watch goes on and sends nothing.
var ErrNoEvent = errors.New("no event comes")

// Within returns the next event. It fails with End if there are no more.
func (w *Watch) Within(limit time.Duration) (Event, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case e, open := <-w.Events:
		if !open {
			return Event{}, w.End
		}
		return e, nil
	case <-timeout.C:
		return Event{}, ErrNoEvent
	}
}

// Next waits for the next event.
func (w *Watch) Next(t *testing.T) Event {
	t.Helper()
	e, err := w.Within(await.Patience)
	if err != nil {
		t.Fatalf("where an event is due: %v", err)
	}
	return e
}

// Until returns the events up to the first that the condition holds for.
func (w *Watch) Until(t *testing.T, condition func(Event) bool) []Event {
	t.Helper()
	var events []Event
	for {
		e := w.Next(t)
		events = append(events, e)
		if condition(e) {
			return events
		}
		if e.Type == watch.Error {
			t.Fatalf("the watch ends with an error: %.500s", e.Raw)
		}
	}
}

// Rest returns the events up to the end of the watch, which must be a clean one.
func (w *Watch) Rest(t *testing.T) []Event {
	t.Helper()
	var events []Event
	for {
		e, err := w.Within(await.Patience)
		switch {
		case errors.Is(err, io.EOF):
			return events
		case err != nil:
			t.Fatalf("where the watch is to end: %v", err)
		}
		events = append(events, e)
	}
}

// Initial waits for the events that a watch begins with and returns their objects.
func (w *Watch) Initial(t *testing.T, count int) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for range count {
		e := w.Next(t)
		if e.Type != watch.Added {
			t.Fatalf("event %d of %d is %s: %.500s", len(objects)+1, count, e.Type, e.Raw)
		}
		objects = append(objects, e.Object(t))
	}
	return objects
}
