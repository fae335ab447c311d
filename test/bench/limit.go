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

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// bodyParameter is the parameter of a request that says with which body it is answered.
const bodyParameter = "body"

// limit is where the handler that does nothing finds what it answers with.
type limit struct {
	dir  string
	next int
}

// keep stores an answer, and returns how it is asked for.
func (l *limit) keep(a answer) (query string, err error) {
	l.next++
	id := strconv.Itoa(l.next)
	header, err := json.Marshal(a.header)
	if err != nil {
		return "", err
	}
	file := filepath.Join(l.dir, id)
	if err := os.WriteFile(file+".header", header, 0o600); err != nil {
		return "", err
	}
	return "?" + bodyParameter + "=" + id, os.WriteFile(file, a.body, 0o600)
}

// serveLimit answers every request with the bytes of a file that it has read before.
func serveLimit(ctx context.Context, address, dir string) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              address,
		Handler:           &limitHandler{dir: dir},
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type limitHandler struct {
	dir     string
	answers sync.Map
}

// discovery is what kube-apiserver is told that asks which resources there are.
const discovery = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + limitGroup + "/" + version + `","resources":[]}`

// ServeHTTP implements http.Handler.
func (h *limitHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get(bodyParameter)
	if id == "" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(discovery))
		return
	}
	a, err := h.answer(id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	_, _ = w.Write(a.body)
}

func (h *limitHandler) answer(id string) (answer, error) {
	if known, ok := h.answers.Load(id); ok {
		return known.(answer), nil
	}
	file := filepath.Join(h.dir, filepath.Base(id))
	header, err := os.ReadFile(file + ".header")
	if err != nil {
		return answer{}, err
	}
	var a answer
	if err := json.Unmarshal(header, &a.header); err != nil {
		return answer{}, err
	}
	if a.body, err = os.ReadFile(file); err != nil {
		return answer{}, err
	}
	h.answers.Store(id, a)
	return a, nil
}
