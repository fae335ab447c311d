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

package chaos

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/hack/stack/pki"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// manner is how a stand-in answers.
type manner int

const (
	// serving pools, as it should.
	serving manner = iota
	// absent: connections are refused.
	absent
	// slow: no answer ever comes.
	slow
	// unavailable: 503 to everything.
	unavailable
	// garbage: 200, and what no client can read.
	garbage
)

const (
	standInName = "pools"
	poolsGroup  = "apps.cozystack.io"
)

// standIn is the aggregated API server that serves the pools on the platform, where a development stack has a custom
// resource. It answers as well or as badly as it is told to.
type standIn struct {
	pools    []unstructured.Unstructured
	address  string
	security *tls.Config
	running  sync.WaitGroup

	mu     sync.Mutex
	manner manner
	server *http.Server
}

// replacePools has a stand-in serve pools in place of the custom resource until the test ends.
func (p *platform) replacePools(t *testing.T, served ...*unstructured.Unstructured) *standIn {
	t.Helper()
	authority, err := pki.NewAuthority(standInName)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(standInName, nil, fmt.Sprintf("%s.%s.svc", standInName, cluster.ServerNamespace))
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{address: "127.0.0.1:0", security: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	for i, pool := range served {
		pool.SetUID("stand-in-" + pool.GetUID())
		pool.SetResourceVersion(fmt.Sprint(i + 1))
		s.pools = append(s.pools, *pool)
	}
	s.start(t)
	t.Cleanup(func() { s.behave(t, absent) })

	p.takeAwayKind(t, objects.Pools.GroupResource().String())
	_, portText, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	service := objects.New("v1", "Service", cluster.ServerNamespace, standInName)
	service.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
	p.Create(t, objects.Services, service)
	apiService := objects.New("apiregistration.k8s.io/v1", "APIService", "", objects.Pools.Version+"."+poolsGroup)
	apiService.Object["spec"] = map[string]any{
		"group": poolsGroup, "version": objects.Pools.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
		"service":  map[string]any{"namespace": cluster.ServerNamespace, "name": standInName, "port": port},
		"caBundle": base64.StdEncoding.EncodeToString(authority.Cert),
	}
	await.For(t, "the name of the group to be free", func(ctx context.Context) error {
		_, err := p.Resource(objects.APIServices, "").Create(ctx, apiService, metav1.CreateOptions{})
		return err
	})
	t.Cleanup(func() { p.Remove(t, objects.APIServices, "", apiService.GetName()) })
	return s
}

// behave has the stand-in answer in another manner from now on, and ends what is under way.
func (s *standIn) behave(t *testing.T, m manner) {
	t.Helper()
	s.mu.Lock()
	s.manner = m
	server := s.server
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	s.running.Wait()
	if m != absent {
		s.start(t)
	}
}

func (s *standIn) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	server := &http.Server{Handler: s, TLSConfig: s.security.Clone(), ErrorLog: nil}
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
	s.running.Go(func() {
		_ = server.ServeTLS(listener, "", "") // ends when it is closed
	})
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	m := s.manner
	s.mu.Unlock()
	switch m {
	case slow:
		<-r.Context().Done()
	case unavailable:
		http.Error(w, "try later", http.StatusServiceUnavailable)
	case garbage:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "KubernetesNodesList", "items": [{"metadata": 7}, "<html>`) // to whoever is still there
	case serving, absent:
		s.serve(w, r)
	}
}

func (s *standIn) serve(w http.ResponseWriter, r *http.Request) {
	groupVersion := poolsGroup + "/" + objects.Pools.Version
	switch base := "/apis/" + groupVersion; {
	case r.URL.Path == base:
		write(w, metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: groupVersion,
			APIResources: []metav1.APIResource{{
				Name: objects.Pools.Resource, SingularName: "kubernetesnodes", Kind: "KubernetesNodes", Namespaced: true,
				Verbs: metav1.Verbs{"get", "list", "watch"},
			}},
		})
	case r.URL.Path == base+"/"+objects.Pools.Resource && r.URL.Query().Has("watch"):
		w.Header().Set("Content-Type", "application/json")
		if err := http.NewResponseController(w).Flush(); err == nil {
			<-r.Context().Done()
		}
	case r.URL.Path == base+"/"+objects.Pools.Resource:
		list := unstructured.UnstructuredList{Items: s.pools, Object: map[string]any{
			"apiVersion": groupVersion, "kind": "KubernetesNodesList", "metadata": map[string]any{"resourceVersion": "100"},
		}}
		write(w, &list)
	default:
		http.NotFound(w, r)
	}
}

func write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // to whoever is still there
}
