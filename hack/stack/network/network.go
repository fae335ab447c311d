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

package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

const (
	// dialTimeout is far longer than a process on this machine takes.
	dialTimeout = 5 * time.Second
	established = "HTTP/1.1 200 Connection established\r\n\r\n"
)

// Network is a proxy that connects to what a cluster knows by address, until it is closed.
type Network struct {
	server  *http.Server
	address string
	running sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]struct{}
	// services and slices are nil until the cluster can be asked.
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	// next counts the connections to each Service, and chosen is where the last one went.
	next   map[types.UID]int
	chosen map[types.UID]string
}

// Listen starts a Network that knows no Service yet. It speaks TLS, as kube-apiserver expects of it.
func Listen(ctx context.Context, address, certFile, keyFile string) (*Network, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	n := &Network{
		address: listener.Addr().String(),
		open:    map[net.Conn]struct{}{},
		next:    map[types.UID]int{},
		chosen:  map[types.UID]string{},
	}
	n.server = &http.Server{
		Handler:           http.HandlerFunc(n.connect),
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ReadHeaderTimeout: dialTimeout,
		// A connection is handed over whole.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	n.running.Go(func() {
		// It ends when it is closed.
		_ = n.server.ServeTLS(listener, certFile, keyFile)
	})
	return n, nil
}

// URL is that of the proxy.
func (n *Network) URL() *url.URL {
	return &url.URL{Scheme: "https", Host: n.address}
}

// Follow has the Network know the Services of a cluster, until ctx is done.
func (n *Network) Follow(ctx context.Context, client kubernetes.Interface) {
	factory := informers.NewSharedInformerFactory(client, 0)
	n.mu.Lock()
	n.services = factory.Core().V1().Services().Lister()
	n.slices = factory.Discovery().V1().EndpointSlices().Lister()
	n.mu.Unlock()
	factory.StartWithContext(ctx)
	<-ctx.Done()
	factory.Shutdown()
}

// Close ends all connections and waits for that.
func (n *Network) Close() error {
	err := n.server.Close()
	n.mu.Lock()
	for c := range n.open {
		_ = c.Close() // it may be closed already
	}
	n.open = nil
	n.mu.Unlock()
	n.running.Wait()
	return err
}

// connect serves one connection, for as long as both sides keep it.
func (n *Network) connect(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodConnect {
		http.Error(w, "this is a proxy for CONNECT", http.StatusMethodNotAllowed)
		return
	}
	server, err := n.dial(request.Context(), request.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	if !n.keep(client, server) {
		return
	}
	defer n.drop(client, server)
	if _, err := io.WriteString(client, established); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

func (n *Network) dial(ctx context.Context, address string) (net.Conn, error) {
	address, err := n.resolve(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", address)
}

// resolve says where a connection goes.
func (n *Network) resolve(address string) (string, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	service, found, err := n.serviceAt(host)
	if err != nil {
		return "", err
	}
	if found {
		if host, portText, err = n.choose(service, int32(port)); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(localAddress(host), portText), nil
}

func (n *Network) serviceAt(address string) (service *corev1.Service, found bool, err error) {
	if n.services == nil {
		return nil, false, nil
	}
	all, err := n.services.List(labels.Everything())
	if err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(all, func(s *corev1.Service) bool { return s.Spec.ClusterIP == address })
	if i < 0 {
		return nil, false, nil
	}
	return all[i], true, nil
}

// choose returns the endpoint of the next connection to a Service. All come from the one machine, so that affinity to
// clients keeps all of them at one endpoint for as long as it is there.
func (n *Network) choose(service *corev1.Service, port int32) (host, endpointPort string, err error) {
	ofService := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	slicesOfService, err := n.slices.EndpointSlices(service.Namespace).List(ofService)
	if err != nil {
		return "", "", err
	}
	candidates := endpoints(service, port, slicesOfService)
	if len(candidates) == 0 {
		return "", "", fmt.Errorf("service %s/%s has no endpoint for port %d", service.Namespace, service.Name, port)
	}
	chosen := n.chosen[service.UID]
	if service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || !slices.Contains(candidates, chosen) {
		slices.Sort(candidates)
		chosen = candidates[n.next[service.UID]%len(candidates)]
		n.next[service.UID]++
		n.chosen[service.UID] = chosen
	}
	return net.SplitHostPort(chosen)
}

// keep is false when the Network has been closed.
func (n *Network) keep(connections ...net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		return false
	}
	n.running.Add(1)
	for _, c := range connections {
		n.open[c] = struct{}{}
	}
	return true
}

func (n *Network) drop(connections ...net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range connections {
		delete(n.open, c)
	}
	n.running.Done()
}

// pass copies one direction of a connection, the end of it included.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if to, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = to.CloseWrite() // the other side may have gone
		return
	}
	_ = errors.Join(to.Close(), from.Close()) // they may be closed already
}
