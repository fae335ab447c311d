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

package model

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// stream is an answer on its way. It holds the server back as a connection does that nobody reads.
type stream struct {
	// cut is closed when the connection is gone.
	cut    <-chan struct{}
	cancel context.CancelFunc
	limit  int
	room   chan struct{}
	done   chan struct{}
	header http.Header

	mu     sync.Mutex
	status int
	chunks []chunk
}

// chunk is what was written at once, and when the server did so.
type chunk struct {
	bytes []byte
	at    time.Time
}

var _ http.Flusher = &stream{}

func newStream(cut <-chan struct{}, cancel context.CancelFunc, limit int) *stream {
	return &stream{cut: cut, cancel: cancel, limit: limit, room: make(chan struct{}, 1), done: make(chan struct{}), header: http.Header{}}
}

// Header implements http.ResponseWriter.
func (s *stream) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *stream) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == 0 {
		s.status = status
	}
}

// Write implements http.ResponseWriter.
func (s *stream) Write(b []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	c := chunk{slices.Clone(b), time.Now()}
	for !s.push(c) {
		select {
		case <-s.room:
		case <-s.cut:
			return 0, net.ErrClosed
		}
	}
	return len(b), nil
}

func (s *stream) push(c chunk) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && len(s.chunks) >= s.limit {
		return false
	}
	s.chunks = append(s.chunks, c)
	return true
}

// Flush implements http.Flusher. What is written can be read.
func (s *stream) Flush() {}

// CloseNotify implements http.CloseNotifier, which wrappers of a response look for.
func (s *stream) CloseNotify() <-chan bool { return nil }

func (s *stream) finish() {
	s.cancel()
	close(s.done)
}

// take returns up to n chunks that have arrived, and whether the answer is over and nothing is left of it.
func (s *stream) take(n int) (chunks []chunk, over bool) {
	select {
	case <-s.done:
		over = true
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.chunks))
	chunks, s.chunks = s.chunks[:n:n], s.chunks[n:]
	select {
	case s.room <- struct{}{}:
	default:
	}
	return chunks, over && len(s.chunks) == 0
}

// arrived is how many chunks there are to take.
func (s *stream) arrived() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.chunks)
}

// answer waits for the end, and returns all of it.
func (s *stream) answer() (status int, body []byte) {
	<-s.done
	var out bytes.Buffer
	for _, c := range s.chunks {
		out.Write(c.bytes)
	}
	return s.status, out.Bytes()
}

// statusCode is that of the answer, zero while there is none.
func (s *stream) statusCode() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}
