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

package nodesim

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// The termination messages CDI reads from its own containers.
const (
	importedMessage = `{"scratchSpaceRequired":false,"preallocationApplied":false,"message":"Import Complete"}`
	uploadedMessage = `{"preallocationApplied":false,"message":"Clone Complete"}`
	clonedMessage   = "Clone Complete"
	checksumMessage = `{"message":"Unable to process data: checksum mismatch: expected sha256:aaaa, got sha256:bbbb"}`
)

// MetricsPort is the port CDI scrapes on each of its pods.
const MetricsPort = 8443

func isCDI(p *corev1.Pod) bool {
	return p.Labels["app"] == "containerized-data-importer" || p.Labels["cdi.kubevirt.io"] != ""
}

// isUploadTarget says whether a pod is the receiving end of a host-assisted clone.
func isUploadTarget(p *corev1.Pod) bool {
	return strings.HasPrefix(p.Name, "cdi-upload")
}

func isCloneSource(p *corev1.Pod) bool {
	return strings.HasSuffix(p.Name, "source-pod")
}

func successMessage(p *corev1.Pod) string {
	switch {
	case isCloneSource(p):
		return clonedMessage
	case strings.Contains(p.Name, "importer"):
		return importedMessage
	default:
		return ""
	}
}

// uploaded says whether the sending end of a host-assisted clone is done with this receiving end.
func uploaded(target *corev1.Pod, all []corev1.Pod) bool {
	// A service name is cut where a pod name is not.
	service := target.Name[:min(len(target.Name), 40)]
	for i := range all {
		source := &all[i]
		if isCloneSource(source) && source.Status.Phase == corev1.PodSucceeded && strings.Contains(envOf(source, "UPLOAD_URL"), service) {
			return true
		}
	}
	return false
}

// endpoint is the metrics endpoint of a pod.
type endpoint struct {
	address string
	server  *http.Server
	serving sync.WaitGroup

	mu       sync.Mutex
	progress float64
}

// openEndpoint gives a pod an address and serves CDI's progress metric there.
func (s *Simulator) openEndpoint(ctx context.Context, p *corev1.Pod, state *pod) error {
	if state.endpoint != nil {
		return nil
	}
	address, err := s.addresses.take()
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", fmt.Sprintf("%s:%d", address, MetricsPort))
	if err != nil {
		s.addresses.giveBack(address)
		return fmt.Errorf("metrics endpoint: %w", err)
	}
	e := &endpoint{address: address}
	e.server = &http.Server{
		Handler:           e.handler(p),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{s.serving}},
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ReadHeaderTimeout: 10 * time.Second,
	}
	e.serving.Go(func() {
		if err := e.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Serving metrics", "pod", klog.KObj(p))
		}
	})
	state.endpoint = e
	return nil
}

func (s *Simulator) closeEndpoint(ctx context.Context, state *pod) {
	if state.endpoint == nil {
		return
	}
	if err := state.endpoint.server.Close(); err != nil {
		klog.FromContext(ctx).Error(err, "Closing the metrics endpoint", "address", state.endpoint.address)
	}
	state.endpoint.serving.Wait()
	s.addresses.giveBack(state.endpoint.address)
	state.endpoint = nil
}

func (s *Simulator) closeEndpoints(ctx context.Context) {
	for _, state := range s.pods {
		s.closeEndpoint(ctx, state)
	}
}

func (e *endpoint) setProgress(percent float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress = percent
}

func (e *endpoint) handler(p *corev1.Pod) http.Handler {
	metric := "kubevirt_cdi_import_progress_total"
	if isCloneSource(p) {
		metric = "kubevirt_cdi_clone_progress_total"
	}
	owner := envOf(p, "OWNER_UID")
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		fmt.Fprintf(w, "# HELP %[1]s progress\n# TYPE %[1]s counter\n%[1]s{ownerUID=%[2]q} %[3]v\n", metric, owner, e.progress)
	})
}

// servingCertificate is signed by nobody: CDI does not verify its pods.
func servingCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "importer"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
