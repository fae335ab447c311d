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

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
)

const (
	group        = "/apis/images.cozystack.io/v1alpha1"
	workerImages = group + "/workerimages"
)

// The representations that clients ask for.
const (
	asJSON         = "application/json"
	asYAML         = "application/yaml"
	asTable        = "application/json;as=Table;g=meta.k8s.io;v=v1"
	asMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	asProtobuf     = "application/vnd.kubernetes.protobuf"
)

// answer is a response as it comes over the wire.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends one request through the aggregator, and does not try again.
func (p *platform) ask(t *testing.T, path, accept string) answer {
	t.Helper()
	a, err := p.tryToAsk(t.Context(), path, http.Header{"Accept": {accept}})
	if err != nil {
		t.Fatalf("get %s: %v", path, err)
	}
	return a
}

func (p *platform) tryToAsk(ctx context.Context, path string, header http.Header) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Patience)
	defer cancel()
	response, err := p.get(ctx, path, header)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: body}, err
}

func (p *platform) get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.RESTConfig().Host+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header = header
	return p.http.Do(request)
}

// decode reads an answer that must be a good one.
func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("the answer is %d: %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		t.Fatalf("decode %s: %v", a.body, err)
	}
}

// frame is an event of a watch.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (f frame) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(f.Object, into); err != nil {
		t.Fatalf("decode %s: %v", f.Object, err)
	}
}

// image is the object of an event of WorkerImages.
func (f frame) image(t *testing.T) *v1alpha1.WorkerImage {
	t.Helper()
	image := &v1alpha1.WorkerImage{}
	f.decode(t, image)
	if image.Kind != "WorkerImage" {
		t.Fatalf("the event is %s %s", f.Type, f.Object)
	}
	return image
}

// metadata is the part of an event's object that every kind has.
func (f frame) metadata(t *testing.T) *metav1.PartialObjectMetadata {
	t.Helper()
	object := &metav1.PartialObjectMetadata{}
	f.decode(t, object)
	return object
}

// stream is a watch as it comes over the wire.
type stream struct {
	frames chan frame
	// stop ends the watch and waits for it.
	stop func()
	// end is why there are no more frames. It may be read when they are closed.
	end error
}

// watch opens a watch of WorkerImages that lasts until the test ends. The query is what follows watch=1.
func (p *platform) watch(t *testing.T, query, accept string) *stream {
	t.Helper()
	return p.watchOf(t, workerImages, query, accept)
}

func (p *platform) watchOf(t *testing.T, resource, query, accept string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	response, err := p.get(ctx, resource+"?watch=1"+query, http.Header{"Accept": {accept}})
	if err != nil {
		cancel()
		t.Fatalf("watch%s: %v", query, err)
	}
	s := &stream{frames: make(chan frame)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer response.Body.Close()
		s.read(ctx, response.Body)
	}()
	s.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(s.stop)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("watch%s: %s", query, response.Status)
	}
	return s
}

func (s *stream) read(ctx context.Context, body io.Reader) {
	defer close(s.frames)
	decoder := json.NewDecoder(body)
	for {
		var f frame
		if s.end = decoder.Decode(&f); s.end != nil {
			return
		}
		select {
		case s.frames <- f:
		case <-ctx.Done():
			s.end = ctx.Err()
			return
		}
	}
}

// next waits for the next event.
func (s *stream) next(t *testing.T) frame {
	t.Helper()
	f, err := s.within(await.Patience)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var errNoFrame = errors.New("no event comes")

func (s *stream) within(limit time.Duration) (frame, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case f, open := <-s.frames:
		if !open {
			return frame{}, s.end
		}
		return f, nil
	case <-timeout.C:
		return frame{}, errNoFrame
	}
}
