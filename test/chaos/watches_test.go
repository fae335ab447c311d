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
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/test/await"
)

const (
	watches = 10_000
	// atOnce is how many of them are open at a time.
	atOnce = 1_000
	// moreGoroutines and moreMemory are what may come and go for other reasons: 10,000 watches that leave one goroutine
	// or one kilobyte each exceed them by far.
	moreGoroutines = 100
	moreMemory     = 8 << 20
	deafClients    = 50
)

func TestTenThousandWatchesLeaveNothing(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	server := p.direct(t, 0)
	openWatches(t, server, atOnce)()
	goroutines, memory := p.consumption(t)
	for range watches / atOnce {
		openWatches(t, server, atOnce)()
	}
	var goroutinesNow, memoryNow float64
	await.For(t, "goroutines and memory to be what they were", func(context.Context) error {
		if goroutinesNow, memoryNow = p.consumption(t); goroutinesNow > goroutines+moreGoroutines || memoryNow > memory+moreMemory {
			return fmt.Errorf("%v goroutines and %v bytes, before %v and %v", goroutinesNow, memoryNow, goroutines, memory)
		}
		return nil
	})
	shared.figures.note(t, fmt.Sprintf("before and after %d watches", watches), "%v and %v goroutines, %.1f and %.1f MiB",
		goroutines, goroutinesNow, memory/(1<<20), memoryNow/(1<<20))
}

// openWatches returns when as many watches have sent their first event. They end with the function that is returned.
func openWatches(t *testing.T, a access, count int) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var opening, running sync.WaitGroup
	errs := make([]error, count)
	for i := range count {
		opening.Add(1)
		running.Go(func() {
			first := sync.OnceFunc(opening.Done)
			defer first()
			errs[i] = watchUntil(ctx, a, first)
		})
	}
	opening.Wait()
	return func() {
		cancel()
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
}

// watchUntil watches until ctx is done, and calls a function with the first event.
func watchUntil(ctx context.Context, a access, first func()) error {
	response, err := a.wire.Open(ctx, http.MethodGet, workerImages+"?watch=1", nil, "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if _, err := lines.ReadBytes('\n'); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", response.Status, err)
	}
	first()
	if _, err := io.Copy(io.Discard, lines); ctx.Err() == nil {
		return fmt.Errorf("a watch ends: %w", err)
	}
	return nil
}

func TestClientsThatNeverReadDelayNobody(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	goroutines, memory := p.consumption(t)
	var deaf []net.Conn
	for range deafClients {
		deaf = append(deaf, p.openDeafWatch(t))
	}
	informers := p.startInformers(t)
	users := p.look(t, workerImages)
	work := p.startLoad(t)
	work.awaitSteps(t, 1000)
	mark := p.mark(t)
	for _, i := range informers {
		i.awaitMark(t, mark)
	}
	work.end()
	shared.figures.note(t, fmt.Sprintf("slowest list beside %d watches that nobody reads", deafClients), "%v",
		rounded(users.check(t, "a list of images", http.StatusOK)))
	_, memoryMeanwhile := p.consumption(t)
	for _, conn := range deaf {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, i := range informers {
		i.stop()
	}
	var goroutinesNow, memoryNow float64
	await.For(t, "goroutines and memory to be what they were", func(context.Context) error {
		if goroutinesNow, memoryNow = p.consumption(t); goroutinesNow > goroutines+moreGoroutines || memoryNow > memory+moreMemory {
			return fmt.Errorf("%v goroutines and %v bytes, before %v and %v", goroutinesNow, memoryNow, goroutines, memory)
		}
		return nil
	})
	shared.figures.note(t, "memory before, meanwhile and after", "%.1f, %.1f and %.1f MiB", memory/(1<<20), memoryMeanwhile/(1<<20), memoryNow/(1<<20))
}

// openDeafWatch opens a watch over a connection of its own whose answer nobody takes.
func (p *platform) openDeafWatch(t *testing.T) net.Conn {
	t.Helper()
	config := p.ReplicaConfig(0)
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	secure.NextProtos = []string{"http/1.1"}
	address := strings.TrimPrefix(config.Host, "https://")
	plain, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { plain.Close() })
	if err := plain.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(plain, secure)
	if _, err := fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: %s\r\n\r\n", workerImages, address); err != nil {
		t.Fatal(err)
	}
	return plain
}

// consumption is how many goroutines the server has, and the memory it has in use once its garbage is collected.
func (p *platform) consumption(t *testing.T) (goroutines, memory float64) {
	t.Helper()
	server := p.direct(t, 0)
	if _, err := server.ask(t.Context(), "/debug/pprof/heap?gc=1"); err != nil {
		t.Fatal(err)
	}
	metrics, err := server.ask(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return metric(t, metrics.Body, "go_goroutines"),
		metric(t, metrics.Body, "go_memstats_heap_alloc_bytes") + metric(t, metrics.Body, "go_memstats_stack_inuse_bytes")
}

func metric(t *testing.T, metrics []byte, name string) float64 {
	t.Helper()
	for line := range bytes.Lines(metrics) {
		if value, found := strings.CutPrefix(string(line), name+" "); found {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
