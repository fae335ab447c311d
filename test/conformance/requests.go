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
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cozystack/workerimage-apiserver/test/wire"
)

const (
	asDiscovery    = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	asMergePatch   = "application/merge-patch+json"
	labelledByTest = `{"metadata":{"labels":{"conformance.cozystack.io/dry-run":"true"}}}`
)

// requestClauses are about what can be asked for, and what cannot.
func requestClauses() []clause {
	some := []need{objects(1)}
	return []clause{
		{"discovery names the resource", nil, discovered},
		{"aggregated discovery names the resource", nil, discoveredAggregated},
		{"OpenAPI v2 knows the kind", nil, inOpenAPIV2},
		{"OpenAPI v3 knows the kind and the path", nil, inOpenAPIV3},
		{"kubectl explains the kind", []need{explained}, kubectlExplains},
		{"a method that is not served is 405", some, methodsNotServed},
		{"who only reads cannot write", []need{objects(1), without("patch")}, writesNotServed},
		{"a subresource that is not served is 404", some, subresourcesNotServed},
		{"a name that no object can have is refused", nil, garbageNames},
		{"a body that cannot be read is 400, and of a type that is not known 415", []need{objects(1), verb("patch")}, garbageBodies},
		{"a dry run of a patch answers and changes nothing", []need{objects(1), verb("patch")}, dryRunOfAPatch},
		{"a dry run of deletecollection deletes nothing", []need{objects(1), verb("deletecollection")}, dryRunOfDeleteCollection},
		{"a dryRun that is none is 422", []need{objects(1), verb("patch")}, garbageDryRun},
	}
}

func discovered(t *testing.T, s *subject) {
	var resources metav1.APIResourceList
	s.client.Get(t, s.group(), wire.JSON).Decode(t, &resources)
	if resources.GroupVersion != s.GroupVersion().String() {
		t.Errorf("the group is %s", resources.GroupVersion)
	}
	i := slices.IndexFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == s.GroupVersionResource.Resource })
	r := resources.APIResources[i]
	if r.Kind != s.Kind || r.SingularName == "" || r.Namespaced != (s.Namespace != "") {
		t.Errorf("it is discovered as %+v", r)
	}
	for _, verb := range []string{"get", "list", "watch"} {
		if !slices.Contains(r.Verbs, verb) {
			t.Errorf("verb %s is not among %v", verb, r.Verbs)
		}
	}
	if s.Group == "" {
		return
	}
	var groups metav1.APIGroupList
	s.client.Get(t, "/apis", wire.JSON).Decode(t, &groups)
	if !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == s.Group && slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool { return v.Version == s.Version })
	}) {
		t.Errorf("no group %s with version %s", s.Group, s.Version)
	}
}

func discoveredAggregated(t *testing.T, s *subject) {
	path := "/apis"
	if s.Group == "" {
		path = "/api"
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	s.client.Get(t, path, asDiscovery).Decode(t, &groups)
	var found *apidiscoveryv2.APIResourceDiscovery
	for _, g := range groups.Items {
		for _, v := range g.Versions {
			for i := range v.Resources {
				if g.Name == s.Group && v.Version == s.Version && v.Resources[i].Resource == s.GroupVersionResource.Resource {
					found = &v.Resources[i]
				}
			}
		}
	}
	if found == nil {
		t.Fatal("it is not there")
	}
	if found.ResponseKind == nil || found.ResponseKind.Kind != s.Kind || (found.Scope == apidiscoveryv2.ScopeNamespace) != (s.Namespace != "") || !s.verbs.HasAll(found.Verbs...) {
		t.Errorf("it is discovered as %+v", found)
	}
}

// model is what a document of OpenAPI says of a type.
type model struct {
	Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

func (s *subject) kind() schema.GroupVersionKind { return s.GroupVersion().WithKind(s.Kind) }

func (s *subject) checkModels(t *testing.T, models map[string]model) {
	t.Helper()
	for name, m := range models {
		if strings.Contains(name, "/") {
			t.Errorf("the name of model %s cannot be referred to", name)
		}
		if slices.Contains(m.Kinds, s.kind()) {
			return
		}
	}
	t.Errorf("none of %d models is of %s", len(models), s.kind())
}

func inOpenAPIV2(t *testing.T, s *subject) {
	var document struct {
		Definitions map[string]model           `json:"definitions"`
		Paths       map[string]json.RawMessage `json:"paths"`
	}
	s.client.Get(t, "/openapi/v2", wire.JSON).Decode(t, &document)
	s.checkModels(t, document.Definitions)
}

func inOpenAPIV3(t *testing.T, s *subject) {
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	s.client.Get(t, "/openapi/v3", wire.JSON).Decode(t, &index)
	entry, ok := index.Paths[strings.TrimPrefix(s.group(), "/")]
	if !ok {
		t.Fatalf("no document of %s", s.group())
	}
	var document struct {
		Paths      map[string]json.RawMessage `json:"paths"`
		Components struct {
			Schemas map[string]model `json:"schemas"`
		} `json:"components"`
	}
	s.client.Get(t, entry.URL, wire.JSON).Decode(t, &document)
	s.checkModels(t, document.Components.Schemas)
	path := s.group() + "/" + s.GroupVersionResource.Resource
	if s.Namespace != "" {
		path = s.group() + "/namespaces/{namespace}/" + s.GroupVersionResource.Resource
	}
	if _, ok := document.Paths[path]; !ok {
		t.Errorf("no path %s", path)
	}
}

func kubectlExplains(t *testing.T, s *subject) {
	for _, format := range []string{"plaintext", "plaintext-openapiv2"} {
		said, err := s.kubectl(t.Context(), "explain", s.GroupVersionResource.Resource, "--api-version="+s.GroupVersion().String(), "--recursive", "--output="+format)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, s.Kind) || !strings.Contains(said, "resourceVersion") {
			t.Errorf("%s: the explanation is\n%s", format, said)
		}
	}
}

func methodsNotServed(t *testing.T, s *subject) {
	object := s.object(s.first(t))
	for path, methods := range map[string][]string{
		s.path: {http.MethodPut, http.MethodPatch, http.MethodOptions, http.MethodHead, "FROBNICATE"},
		object: {http.MethodPost, http.MethodOptions, http.MethodHead, "FROBNICATE"},
	} {
		for _, method := range methods {
			a := s.client.Send(t, method, path, http.Header{"Accept": {wire.JSON}, "Content-Type": {wire.JSON}}, "")
			if a.Status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: the answer is %d: %.300s", method, path, a.Status, a.Body)
				continue
			}
			if method != http.MethodHead {
				a.Refused(t, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
			}
		}
	}
}

func writesNotServed(t *testing.T, s *subject) {
	object := s.object(s.first(t))
	for path, methods := range map[string][]string{
		s.path: {http.MethodPost, http.MethodDelete},
		object: {http.MethodPut, http.MethodPatch, http.MethodDelete},
	} {
		for _, method := range methods {
			a := s.client.Send(t, method, path+"?dryRun=All", http.Header{"Accept": {wire.JSON}, "Content-Type": {wire.JSON}}, "{}")
			a.Refused(t, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed)
		}
	}
}

func subresourcesNotServed(t *testing.T, s *subject) {
	for _, subresource := range []string{"status", "scale", "nothing", "status/nothing"} {
		s.client.Get(t, s.object(s.first(t))+"/"+subresource, wire.JSON).Refused(t, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func garbageNames(t *testing.T, s *subject) {
	for name, code := range map[string]int{
		"A_B":                      http.StatusNotFound,
		"%20":                      http.StatusNotFound,
		"x%00":                     http.StatusNotFound,
		"%e2%98%83":                http.StatusNotFound,
		"a%2fb":                    http.StatusNotFound,
		"..%2f..%2fx":              http.StatusNotFound,
		"%2e%2e":                   http.StatusBadRequest,
		"%2e":                      http.StatusBadRequest,
		"%25":                      http.StatusBadRequest,
		strings.Repeat("x", 4<<10): http.StatusNotFound,
	} {
		if a := s.client.Get(t, s.object(name), wire.JSON); a.Status != code {
			t.Errorf("%.40s: the answer is %d, not %d: %.300s", name, a.Status, code, a.Body)
		}
	}
}

func garbageBodies(t *testing.T, s *subject) {
	object := s.object(s.first(t)) + "?dryRun=All"
	for _, request := range []struct {
		method, path, contentType, body string
		code                            int
	}{
		{http.MethodPost, s.path + "?dryRun=All", wire.JSON, "garbage", http.StatusBadRequest},
		{http.MethodPost, s.path + "?dryRun=All", "text/plain", "{}", http.StatusUnsupportedMediaType},
		{http.MethodPut, object, wire.JSON, "garbage", http.StatusBadRequest},
		{http.MethodPatch, object, asMergePatch, "garbage", http.StatusBadRequest},
		{http.MethodPatch, object, "text/plain", "{}", http.StatusUnsupportedMediaType},
	} {
		a := s.client.Send(t, request.method, request.path, http.Header{"Accept": {wire.JSON}, "Content-Type": {request.contentType}}, request.body)
		if a.Status != request.code {
			t.Errorf("%s %s as %s: the answer is %d, not %d: %.300s", request.method, request.body, request.contentType, a.Status, request.code, a.Body)
		}
	}
}

func dryRunOfAPatch(t *testing.T, s *subject) {
	before := s.list(t, "")
	o := &before.Items[0]
	a := s.client.Send(t, http.MethodPatch, s.object(o.GetName())+"?dryRun=All", http.Header{"Accept": {wire.JSON}, "Content-Type": {asMergePatch}}, labelledByTest)
	if got := a.Object(t); got.GetLabels()["conformance.cozystack.io/dry-run"] != "true" || got.GetUID() != o.GetUID() {
		t.Errorf("the answer is %.500s", a.Body)
	}
	s.checkUntouched(t, before)
}

// checkUntouched expects that all objects are there and that none bears the label of a dry run.
func (s *subject) checkUntouched(t *testing.T, before *list) {
	t.Helper()
	after := s.list(t, "")
	for i := range after.Items {
		o := &after.Items[i]
		if _, labelled := o.GetLabels()["conformance.cozystack.io/dry-run"]; labelled || o.GetDeletionTimestamp() != nil && before.Items[i].GetDeletionTimestamp() == nil {
			t.Errorf("%s was changed: %v", o.GetName(), o.Object)
		}
	}
	if diff := cmp.Diff(namesOf(before), namesOf(after)); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
}

// dryRunOfDeleteCollection takes a conflict for an answer, since an object may be in use.
func dryRunOfDeleteCollection(t *testing.T, s *subject) {
	before := s.list(t, "")
	if a := s.client.Send(t, http.MethodDelete, s.path+"?dryRun=All", wire.Accepting(wire.JSON), ""); a.Status != http.StatusOK {
		a.Refused(t, http.StatusConflict, metav1.StatusReasonConflict)
	}
	none := s.client.Send(t, http.MethodDelete, s.path+"?dryRun=All&labelSelector=conformance.cozystack.io/nothing", wire.Accepting(wire.JSON), "")
	if l := none.List(t); len(l.Items) > 0 {
		t.Errorf("a selector that matches nothing selects %v", namesOf(l))
	}
	bad := s.client.Send(t, http.MethodDelete, s.path+"?dryRun=All&fieldSelector=status.nothing=1", wire.Accepting(wire.JSON), "")
	bad.Refused(t, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	s.checkUntouched(t, before)
}

func garbageDryRun(t *testing.T, s *subject) {
	object := s.object(s.first(t))
	header := http.Header{"Accept": {wire.JSON}, "Content-Type": {asMergePatch}}
	s.client.Send(t, http.MethodPatch, object+"?dryRun=x", header, labelledByTest).Refused(t, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	s.client.Send(t, http.MethodDelete, object+"?dryRun=x", wire.Accepting(wire.JSON), "").Refused(t, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	s.client.Send(t, http.MethodDelete, s.path+"?dryRun=x", wire.Accepting(wire.JSON), "").Refused(t, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
}
