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
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// watchesPerConnection is below what a server lets a client open on one.
	watchesPerConnection = 80
	// manyWatches take so much memory that the rest of the server makes no difference.
	manyWatches = 100
	// betweenChanges is the least time between two changes of an image.
	betweenChanges = 2 * time.Second
	// frameBuffer holds an event.
	frameBuffer = 16 << 10
	// firstRestart tells the restarts that are written here from others.
	firstRestart = 100_000
)

// EventCell compares what it takes from a write to its event.
type EventCell struct {
	Watchers int                  `json:"watchers"`
	Changes  int                  `json:"changes"`
	Variants map[string]EventCost `json:"variants"`
	// P50ToStored and P99ToStored are ratios over all changes; ToStored is the ratio of medians change by change.
	P50ToStored float64 `json:"p50ToStored"`
	P99ToStored float64 `json:"p99ToStored"`
	ToStored    Spread  `json:"toStored"`
	// MemoryPerWatcher is what an open watch takes of the server, in bytes; absent for few watches, which cannot tell.
	MemoryPerWatcher float64 `json:"memoryPerWatcherBytes,omitempty"`
}

// EventCost is the time from a write to its event, over all watchers, and the CPU time of a change.
type EventCost struct {
	P50      float64            `json:"p50Milliseconds"`
	P99      float64            `json:"p99Milliseconds"`
	CPU      map[string]float64 `json:"cpuMilliseconds"`
	TotalCPU float64            `json:"totalCPUMilliseconds"`
}

func (b *bench) measureEvents(ctx context.Context, images int) ([]EventCell, error) {
	var cells []EventCell
	changes := min(b.options.changes, images)
	for i, watchers := range b.options.watchers {
		// The second change of an image waits until the first is a second old.
		if err := pause(ctx, betweenChanges); err != nil {
			return nil, err
		}
		cell, err := b.measureWatchers(ctx, watchers, i*changes, changes)
		if err != nil {
			return nil, fmt.Errorf("send changes to %d watchers: %w", watchers, err)
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// change is what a variant writes, and who is told.
type change struct {
	variant   string
	resource  schema.GroupVersionResource
	namespace string
	patch     string
	audience  *audience
}

func (b *bench) measureWatchers(ctx context.Context, watchers, made, changes int) (cell EventCell, err error) {
	before, err := b.serverMemory(ctx)
	if err != nil {
		return cell, err
	}
	variants := []*change{
		{
			variant: served, namespace: goldensNamespace, patch: `{"status":{"restartCount":%d}}`,
			resource: schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"},
		},
		{variant: stored, patch: `{"status":{"dataVolume":{"restartCount":%d}}}`, resource: imagesOf(storedGroup)},
	}
	for i, group := range []string{servedGroup, storedGroup} {
		a, err := b.gather(ctx, group, operator, watchers)
		if err != nil {
			return cell, err
		}
		defer a.dismiss()
		variants[i].audience = a
		if i > 0 {
			continue
		}
		after, err := b.serverMemory(ctx)
		if err != nil {
			return cell, err
		}
		if watchers >= manyWatches {
			cell.MemoryPerWatcher = (after - before) / float64(watchers)
		}
	}
	stopProfile, err := b.profile(ctx, fmt.Sprintf("events-%d", watchers))
	if err != nil {
		return cell, err
	}
	turns, err := b.change(ctx, variants, made, changes)
	if err := errors.Join(err, stopProfile()); err != nil {
		return cell, err
	}
	cell.summarize(watchers, turns)
	return cell, nil
}

// change changes as many images as are wanted, the variants in turn. No two changes write the same.
func (b *bench) change(ctx context.Context, variants []*change, made, changes int) ([][]turn, error) {
	turns := make([][]turn, len(variants))
	for n := range changes {
		for i := range variants {
			i = (i + n) % len(variants)
			t, err := b.changeOne(ctx, variants[i], goldenName(n), firstRestart+made+n)
			if err != nil {
				return nil, err
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

func (b *bench) changeOne(ctx context.Context, c *change, name string, restarts int) (turn, error) {
	heard := c.audience.expect(fmt.Appendf(nil, `"restartCount":%d`, restarts))
	before, err := b.usage()
	if err != nil {
		return turn{}, err
	}
	start := time.Now()
	_, err = b.dynamic.Resource(c.resource).Namespace(c.namespace).Patch(ctx, name, types.MergePatchType,
		fmt.Appendf(nil, c.patch, restarts), metav1.PatchOptions{}, "status")
	if err != nil {
		return turn{}, err
	}
	times, err := heard.wait(ctx)
	if err != nil {
		return turn{}, fmt.Errorf("change %s of %s: %w", name, c.variant, err)
	}
	after, err := b.usage()
	if err != nil {
		return turn{}, err
	}
	t := turn{cpu: after.minus(before), latencies: make([]time.Duration, len(times))}
	for i, at := range times {
		t.latencies[i] = at.Sub(start)
	}
	return t, nil
}

func (cell *EventCell) summarize(watchers int, turns [][]turn) {
	cell.Watchers, cell.Changes = watchers, len(turns[0])
	cell.Variants = map[string]EventCost{}
	for i, name := range []string{served, stored} {
		cost := costOf(turns[i], 0)
		out := EventCost{P50: cost.P50, P99: cost.P99, CPU: map[string]float64{}}
		for process, each := range cost.CPU {
			out.CPU[process] = each * float64(watchers)
		}
		out.TotalCPU = cost.TotalCPU * float64(watchers)
		cell.Variants[name] = out
	}
	cell.P50ToStored = ratio(cell.Variants[served].P50, cell.Variants[stored].P50)
	cell.P99ToStored = ratio(cell.Variants[served].P99, cell.Variants[stored].P99)
	cell.ToStored = compare(turns[0], turns[1], turn.median)
}

// audience is a number of open watches, all of which wait for the same event.
type audience struct {
	cancel   context.CancelFunc
	clients  []*http.Client
	watching sync.WaitGroup
	size     int
	awaited  atomic.Pointer[expectation]
	failure  chan error
}

// expectation is an event that is on its way.
type expectation struct {
	mark    []byte
	times   []time.Time
	missing atomic.Int64
	all     chan struct{}
	failure <-chan error
}

// gather opens watches from now on.
func (b *bench) gather(ctx context.Context, group, caller string, size int) (*audience, error) {
	from, err := b.resourceVersion(ctx, group)
	if err != nil {
		return nil, err
	}
	clients, err := b.connections(caller, (size+watchesPerConnection-1)/watchesPerConnection)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &audience{cancel: cancel, clients: clients, size: size, failure: make(chan error, 1)}
	path := listPath(group) + "?watch=1&timeoutSeconds=3600&resourceVersion=" + from
	for i := range size {
		response, err := b.openWatch(ctx, clients[i/watchesPerConnection], path)
		if err != nil {
			a.dismiss()
			return nil, err
		}
		a.watching.Go(func() { a.listen(ctx, i, response) })
	}
	return a, nil
}

func (b *bench) openWatch(ctx context.Context, client *http.Client, path string) (*http.Response, error) {
	return list{url: b.url(path), header: http.Header{"Accept": {forms[0].accept}}}.open(ctx, client)
}

func (a *audience) listen(ctx context.Context, i int, response *http.Response) {
	defer response.Body.Close()
	frames := bufio.NewReaderSize(response.Body, frameBuffer)
	var told *expectation
	for {
		frame, err := frames.ReadSlice('\n')
		at := time.Now()
		if err != nil {
			if ctx.Err() == nil {
				a.fail(fmt.Errorf("watch %d ended: %w", i, err))
			}
			return
		}
		if e := a.awaited.Load(); e != nil && e != told && bytes.Contains(frame, e.mark) {
			told = e
			e.hear(i, at)
		}
	}
}

func (a *audience) fail(err error) {
	select {
	case a.failure <- err:
	default:
	}
}

// expect says what all watches wait for.
func (a *audience) expect(mark []byte) *expectation {
	e := &expectation{mark: mark, times: make([]time.Time, a.size), all: make(chan struct{}), failure: a.failure}
	e.missing.Store(int64(a.size))
	a.awaited.Store(e)
	return e
}

func (e *expectation) hear(i int, at time.Time) {
	e.times[i] = at
	if e.missing.Add(-1) == 0 {
		close(e.all)
	}
}

// wait returns when each watch was told.
func (e *expectation) wait(ctx context.Context) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-e.all:
		return e.times, nil
	case err := <-e.failure:
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("%d watches were not told: %w", e.missing.Load(), ctx.Err())
	}
}

// dismiss closes all watches.
func (a *audience) dismiss() {
	a.cancel()
	a.watching.Wait()
	closeAll(a.clients)
}
