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
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// group puts the clauses about all resources together to the test.
func (r *runner) group(t *testing.T, subjects []*subject) {
	t.Run("discovery and reads are answered while many watches are open", func(t *testing.T) {
		r.count()
		r.manyWatches(t, subjects)
	})
	t.Run("a large answer is compressed for who takes gzip", func(t *testing.T) {
		for _, s := range subjects {
			if plain := s.ask(t, ""); len(plain.Body) > compressedFrom {
				r.count()
				s.largeIsCompressed(t, plain)
				return
			}
		}
		r.inapplicable(t, lack{reason: fmt.Sprintf("no list is larger than %d bytes", compressedFrom)})
	})
}

// compressedFrom is the size from which kube-apiserver compresses an answer.
const compressedFrom = 128 << 10

func (s *subject) largeIsCompressed(t *testing.T, plain wire.Answer) {
	t.Helper()
	packed := s.client.Send(t, http.MethodGet, s.path, http.Header{"Accept": {wire.JSON}, "Accept-Encoding": {"gzip"}}, "")
	if got := packed.Header.Get("Content-Encoding"); got != "gzip" || len(packed.Body) >= len(plain.Body)/2 {
		t.Errorf("%d bytes are %d of encoding %q", len(plain.Body), len(packed.Body), got)
	}
	if got := len(unpacked(t, packed).List(t).Items); got != len(plain.List(t).Items) {
		t.Errorf("compressed there are %d items", got)
	}
}

// openers is how many watches are opened at a time.
const openers = 16

// manyWatches opens watches over all resources in turn, reads while they are open, and finds every watch alive.
func (r *runner) manyWatches(t *testing.T, subjects []*subject) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	versions := map[*subject]string{}
	for _, s := range subjects {
		if s.Driver != nil {
			s.settle(t)
		}
		versions[s] = s.list(t, "").GetResourceVersion()
	}
	watches := make([]*http.Response, r.config.Watches)
	defer func() {
		for _, w := range watches {
			if w != nil {
				_ = w.Body.Close()
			}
		}
	}()
	if err := forEach(len(watches), func(i int) (err error) {
		s := subjects[i%len(subjects)]
		watches[i], err = s.open(ctx, versions[s])
		return err
	}); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	for _, s := range subjects {
		for _, path := range []string{"/apis", s.group(), s.path} {
			if a := s.client.Get(t, path, wire.JSON); a.Status != http.StatusOK {
				t.Errorf("%s: the answer is %d: %.300s", path, a.Status, a.Body)
			}
		}
	}
	t.Logf("with %d watches open, %d reads took %v", len(watches), 3*len(subjects), time.Since(began))

	for i, s := range subjects {
		if s.Driver == nil {
			continue
		}
		s.set(t, true)
		rv := s.versionNow(t)
		if err := forEach(len(watches), func(j int) error {
			if j%len(subjects) != i {
				return nil
			}
			return awaitVersion(watches[j], rv)
		}); err != nil {
			t.Errorf("%s: %v", s.GroupVersionResource.Resource, err)
		}
	}
}

// open opens a watch of all objects that lasts until ctx is done.
func (s *subject) open(ctx context.Context, rv string) (*http.Response, error) {
	response, err := s.client.Open(ctx, http.MethodGet, s.path+"?watch=1&resourceVersion="+rv, wire.Accepting(wire.JSON), "")
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("a watch is answered with %s", response.Status)
	}
	return response, nil
}

// awaitVersion reads a watch up to the event of a version. A watch that is stuck is closed, so that this returns.
func awaitVersion(w *http.Response, rv string) error {
	defer time.AfterFunc(await.Patience, func() { _ = w.Body.Close() }).Stop()
	decoder := json.NewDecoder(w.Body)
	for {
		var e struct {
			Type   watch.EventType
			Object struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := decoder.Decode(&e); err != nil {
			return fmt.Errorf("a watch ends before version %s: %w", rv, err)
		}
		if e.Object.Metadata.ResourceVersion == rv {
			return nil
		}
	}
}

// forEach calls do with 0 to count-1, some at a time, and returns the first error.
func forEach(count int, do func(i int) error) error {
	next := make(chan int)
	failed := make(chan error, openers)
	var workers sync.WaitGroup
	for range openers {
		workers.Go(func() {
			var first error
			for i := range next {
				if first == nil {
					first = do(i)
				}
			}
			failed <- first
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	workers.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
