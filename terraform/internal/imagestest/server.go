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

package imagestest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

const prefix = "/apis/images.cozystack.io/v1alpha1/"

// Server serves images and catalog entries.
type Server struct {
	http *httptest.Server

	mu      sync.Mutex
	version int
	oldest  int
	images  map[string]*v1alpha1.WorkerImage
	entries map[string]*v1alpha1.CatalogEntry
	history []event
	// changed is closed and replaced with every change.
	changed chan struct{}
	// ended is closed and replaced when all watches are to end.
	ended   chan struct{}
	intrude func(http.ResponseWriter, *http.Request) bool
	counts  map[string]int
}

type event struct {
	version int
	kind    watch.EventType
	image   *v1alpha1.WorkerImage
}

// NewServer starts a server that ends with the test.
func NewServer(t *testing.T, images ...*v1alpha1.WorkerImage) *Server {
	s := &Server{
		version: 1,
		images:  map[string]*v1alpha1.WorkerImage{},
		entries: map[string]*v1alpha1.CatalogEntry{},
		changed: make(chan struct{}),
		ended:   make(chan struct{}),
		counts:  map[string]int{},
	}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.EndWatches()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	for _, image := range images {
		s.Put(image)
	}
	return s
}

// Host is the server's address.
func (s *Server) Host() string { return s.http.URL }

// Config is access to the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Put makes or changes an image.
func (s *Server) Put(image *v1alpha1.WorkerImage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(image)
}

// PutEntry makes or changes a catalog entry.
func (s *Server) PutEntry(entry *v1alpha1.CatalogEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[entry.Name] = entry.DeepCopy()
}

// Image returns an image, nil if there is none.
func (s *Server) Image(name string) *v1alpha1.WorkerImage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.images[name].DeepCopy()
}

// Remove deletes an image, whoever uses it.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(name)
}

// EndWatches ends the watches that are open, as a server does after some minutes.
func (s *Server) EndWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.ended)
	s.ended = make(chan struct{})
}

// Forget makes all resourceVersions so far too old, as a restart does, and ends the watches.
func (s *Server) Forget() {
	s.mu.Lock()
	s.version++
	s.oldest = s.version
	s.mu.Unlock()
	s.EndWatches()
}

// Intrude lets a function answer requests in the server's place, those for which it returns true.
func (s *Server) Intrude(answer func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.intrude = answer
}

// Requests is how many requests of a kind came in: a method, or WATCH.
func (s *Server) Requests(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[kind]
}

// Refuse answers with a Status.
func Refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	send(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

func (s *Server) put(image *v1alpha1.WorkerImage) {
	kind := watch.Modified
	if s.images[image.Name] == nil {
		kind = watch.Added
	}
	image = image.DeepCopy()
	s.images[image.Name] = image
	s.record(kind, image)
}

func (s *Server) remove(name string) {
	image := s.images[name].DeepCopy()
	delete(s.images, name)
	s.record(watch.Deleted, image)
}

func (s *Server) record(kind watch.EventType, image *v1alpha1.WorkerImage) {
	s.version++
	image.ResourceVersion = strconv.Itoa(s.version)
	s.history = append(s.history, event{s.version, kind, image.DeepCopy()})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	kind := r.Method
	if r.URL.Query().Get("watch") != "" {
		kind = "WATCH"
	}
	s.counts[kind]++
	intrude := s.intrude
	s.mu.Unlock()
	if intrude != nil && intrude(w, r) {
		return
	}
	resource, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, prefix), "/")
	switch {
	case resource == "catalogentries":
		s.listEntries(w)
	case resource != "workerimages":
		http.NotFound(w, r)
	case kind == "WATCH":
		s.watch(w, r)
	case name == "" && r.Method == http.MethodGet:
		s.list(w, r)
	case r.Method == http.MethodPost:
		s.create(w, r)
	default:
		s.serveOne(w, r, name)
	}
}

func send(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client has gone where this fails.
	_ = json.NewEncoder(w).Encode(body)
}
