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
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := v1alpha1.WorkerImageList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkerImageList"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)},
	}
	for _, name := range slices.Sorted(maps.Keys(s.images)) {
		if selects(r, name) {
			list.Items = append(list.Items, *s.images[name])
		}
	}
	send(w, http.StatusOK, list)
}

func (s *Server) listEntries(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := v1alpha1.CatalogEntryList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "CatalogEntryList"},
	}
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		list.Items = append(list.Items, *s.entries[name])
	}
	send(w, http.StatusOK, list)
}

// watch sends what comes after a version, or 410 where that is too old.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	cursor, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "a watch begins at a version here")
		return
	}
	s.mu.Lock()
	expired := cursor < s.oldest
	ended := s.ended
	s.mu.Unlock()
	if expired {
		Refuse(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w)
	for {
		events, changed := s.since(cursor)
		for _, e := range events {
			cursor = e.version
			if selects(r, e.image.Name) {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": e.image})
			}
		}
		if err := flush.Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) since(version int) ([]event, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []event
	for _, e := range s.history {
		if e.version > version {
			events = append(events, e)
		}
	}
	return events, s.changed
}

// selects knows the one selector that the client uses.
func selects(r *http.Request, name string) bool {
	wanted, found := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	return !found || wanted == name
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var asked v1alpha1.WorkerImage
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if s.images[asked.Name] != nil {
		Refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("workerimages %q already exists", asked.Name))
		return
	}
	image := Image(asked.Spec.SchematicID, asked.Spec.Version, In(v1alpha1.WorkerImagePending, "Pending", "The import has not begun."))
	image.UID = types.UID(fmt.Sprintf("uid-%d", s.version))
	image.Labels, image.Annotations = asked.Labels, asked.Annotations
	s.put(image)
	send(w, http.StatusCreated, s.images[image.Name])
}

func (s *Server) serveOne(w http.ResponseWriter, r *http.Request, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := s.images[name]
	switch {
	case image == nil:
		Refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("workerimages %q not found", name))
	case r.Method == http.MethodGet:
		send(w, http.StatusOK, image)
	case r.Method == http.MethodPatch:
		s.patch(w, r, image)
	case r.Method == http.MethodDelete:
		s.delete(w, r, image)
	}
}

func (s *Server) patch(w http.ResponseWriter, r *http.Request, image *v1alpha1.WorkerImage) {
	var patch struct {
		Metadata struct{ Labels, Annotations map[string]*string }
	}
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	image = image.DeepCopy()
	image.Labels = merged(image.Labels, patch.Metadata.Labels)
	image.Annotations = merged(image.Annotations, patch.Metadata.Annotations)
	s.images[image.Name] = image
	s.record(watch.Modified, image)
	send(w, http.StatusOK, image)
}

func merged(values map[string]string, patch map[string]*string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, values)
	for key, value := range patch {
		if value == nil {
			delete(result, key)
			continue
		}
		result[key] = *value
	}
	return result
}

// delete refuses what the condition Deletable forbids.
func (s *Server) delete(w http.ResponseWriter, r *http.Request, image *v1alpha1.WorkerImage) {
	var options metav1.DeleteOptions
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
		Refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if options.Preconditions == nil || options.Preconditions.UID == nil || *options.Preconditions.UID != image.UID {
		Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the uid is another's")
		return
	}
	if condition := apimeta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionDeletable); condition != nil && condition.Status == metav1.ConditionFalse {
		Refuse(w, http.StatusConflict, metav1.StatusReasonConflict, condition.Message)
		return
	}
	s.remove(image.Name)
	send(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}
