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
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// watch opens a watch that lasts until the test ends. It must be accepted.
func (s *subject) watch(t *testing.T, query string) *wire.Watch {
	t.Helper()
	return s.watchAs(t, query, wire.JSON)
}

func (s *subject) watchAs(t *testing.T, query, accept string) *wire.Watch {
	t.Helper()
	return s.client.Watch(t, s.path+"?watch=1&"+query, accept)
}

// tryWatch returns a watch, or the answer by which it was refused.
func (s *subject) tryWatch(t *testing.T, query, accept string) (*wire.Watch, wire.Answer) {
	t.Helper()
	return s.client.TryWatch(t, s.path+"?watch=1&"+query, accept)
}

func isBookmark(e wire.Event) bool { return e.Type == watch.Bookmark }

// refusedWatch opens a watch that must be refused, before it begins or as its only event.
func (s *subject) refusedWatch(t *testing.T, query string, code int, reason metav1.StatusReason) {
	t.Helper()
	w, refusal := s.tryWatch(t, query, wire.JSON)
	if w == nil {
		refusal.Refused(t, code, reason)
		return
	}
	e := w.Next(t)
	if e.Type != watch.Error {
		t.Fatalf("the watch begins with %s: %.500s", e.Type, e.Raw)
	}
	var status metav1.Status
	e.Decode(t, &status)
	wire.CheckStatus(t, status, code, reason)
	if more := w.Rest(t); len(more) > 0 {
		t.Errorf("events follow the error: %s", describe(more))
	}
}

func describe(events []wire.Event) string {
	var out string
	for _, e := range events {
		out += fmt.Sprintf("\n%s %.200s", e.Type, e.Raw)
	}
	return out
}

// list is a list of any kind.
type list = unstructured.UnstructuredList

// older tells whether a version comes before another.
func older(t *testing.T, a, b string) bool {
	t.Helper()
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		t.Fatalf("compare %q with %q: %v", a, b, err)
	}
	return order < 0
}
