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

package balance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout is far longer than a backend on this machine takes.
const dialTimeout = 5 * time.Second

// Balancer passes connections on to its backends, one after the other, until it is closed.
type Balancer struct {
	listener net.Listener
	backends []string
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// withdrawn backends get no new connections.
	withdrawn []bool
	// next is the backend of the next connection.
	next int
	// chosen is the backend of each client that has come so far; nil without affinity.
	chosen map[string]int
	open   map[*connection]struct{}
}

// connection is one that was passed on.
type connection struct {
	client, server net.Conn
	backend        int
}

// Listen accepts connections at an address and passes them on to the backends, all of which take part.
func Listen(ctx context.Context, address string, backends ...string) (*Balancer, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	b := &Balancer{
		listener:  listener,
		backends:  backends,
		withdrawn: make([]bool, len(backends)),
		open:      map[*connection]struct{}{},
	}
	b.running.Go(b.accept)
	return b, nil
}

// Close ends everything and waits for it.
func (b *Balancer) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	err := b.listener.Close()
	b.Cut()
	b.running.Wait()
	return err
}

// Address is where the Balancer listens.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// SetAffinity has all connections from one address go to one backend, or each to the next.
func (b *Balancer) SetAffinity(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chosen = nil
	if on {
		b.chosen = map[string]int{}
	}
}

// Withdraw keeps new connections from a backend, as a Service does with a pod that is not ready. Those that are open
// stay.
func (b *Balancer) Withdraw(backend int) { b.set(backend, true) }

// Admit lets a backend have new connections.
func (b *Balancer) Admit(backend int) { b.set(backend, false) }

func (b *Balancer) set(backend int, withdrawn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.withdrawn[backend] = withdrawn
}

// Spread admits all backends.
func (b *Balancer) Spread() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.withdrawn)
}

// FlipTo has all clients go to one backend: it gets every new connection, and those to the others are cut.
func (b *Balancer) FlipTo(backend int) {
	b.mu.Lock()
	for i := range b.withdrawn {
		b.withdrawn[i] = i != backend
	}
	b.mu.Unlock()
	b.cut(func(c *connection) bool { return c.backend != backend })
}

// Cut ends all connections without a word to either side.
func (b *Balancer) Cut() {
	b.cut(func(*connection) bool { return true })
}

// Open returns how many connections each backend has.
func (b *Balancer) Open() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := make([]int, len(b.backends))
	for c := range b.open {
		count[c.backend]++
	}
	return count
}

func (b *Balancer) cut(which func(*connection) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.open {
		if which(c) {
			reset(c.client)
			reset(c.server)
		}
	}
}

// reset has the kernel answer whatever comes on a connection with a reset, as it would after a crash.
func reset(c net.Conn) {
	if c, ok := c.(*net.TCPConn); ok {
		_ = c.SetLinger(0) // it may be closed already
	}
	_ = c.Close()
}

func (b *Balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			b.running.Go(func() { b.serve(client) })
		}
	}
}

// serve passes one connection on until either side ends it. A client for which there is no backend is turned away.
func (b *Balancer) serve(client net.Conn) {
	defer reset(client)
	server, backend, err := b.dial(client.RemoteAddr())
	if err != nil {
		return
	}
	defer reset(server)
	c := &connection{client: client, server: server, backend: backend}
	if !b.add(c) {
		return
	}
	defer b.remove(c)
	var both sync.WaitGroup
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

// pass copies one direction of a connection, the end of it included.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if to, ok := to.(*net.TCPConn); ok && err == nil {
		_ = to.CloseWrite() // the other side may have gone
		return
	}
	reset(to)
	reset(from)
}

// add is false for a connection to a backend that was withdrawn while it was made, or of a Balancer that ends.
func (b *Balancer) add(c *connection) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.withdrawn[c.backend] {
		return false
	}
	b.open[c] = struct{}{}
	return true
}

func (b *Balancer) remove(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, c)
}

// dial connects to the backend of a client's address. One that refuses is passed over: a Service soon has no endpoint for
// it.
func (b *Balancer) dial(client net.Addr) (server net.Conn, backend int, err error) {
	host, _, err := net.SplitHostPort(client.String())
	if err != nil {
		return nil, 0, err
	}
	refused := make([]bool, len(b.backends))
	for {
		backend, ok := b.choose(host, refused)
		if !ok {
			return nil, 0, fmt.Errorf("no backend for %s", host)
		}
		if server, err := net.DialTimeout("tcp", b.backends[backend], dialTimeout); err == nil {
			return server, backend, nil
		}
		refused[backend] = true
	}
}

// choose returns the backend of the next connection from an address.
func (b *Balancer) choose(host string, refused []bool) (backend int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	takesPart := func(i int) bool { return !b.withdrawn[i] && !refused[i] }
	if chosen, found := b.chosen[host]; found && takesPart(chosen) {
		return chosen, true
	}
	for range b.backends {
		candidate := b.next
		b.next = (b.next + 1) % len(b.backends)
		if !takesPart(candidate) {
			continue
		}
		if b.chosen != nil {
			b.chosen[host] = candidate
		}
		return candidate, true
	}
	return 0, false
}
