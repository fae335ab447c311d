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
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	operator = "operator"

	// leastTurns is how often every variant has its turn at least.
	leastTurns = 5

	served = "served"
	stored = "stored"
	atBest = "limit"
)

// form is a representation that clients ask for.
type form struct {
	Name, accept string
}

var forms = []form{
	{"JSON", "application/json"},
	{"Table", "application/json;as=Table;g=meta.k8s.io;v=v1"},
	{"metadata", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
}

// ListCell is a list in all variants.
type ListCell struct {
	Images   int                 `json:"images"`
	Form     string              `json:"form"`
	Caller   string              `json:"caller"`
	Clients  int                 `json:"clients"`
	Encoding string              `json:"encoding"`
	Turns    int                 `json:"turns"`
	Variants map[string]ListCost `json:"variants"`
	// ToStored and ToLimit are ratios of medians within a turn, and CPUToStored and CPUToLimit of CPU time.
	ToStored    Spread `json:"toStored"`
	ToLimit     Spread `json:"toLimit"`
	CPUToStored Spread `json:"cpuToStored"`
	CPUToLimit  Spread `json:"cpuToLimit"`
}

// ListCost is what one list costs.
type ListCost struct {
	P50 float64 `json:"p50Milliseconds"`
	P99 float64 `json:"p99Milliseconds"`
	// CPU by process, and in all.
	CPU      map[string]float64 `json:"cpuMilliseconds"`
	TotalCPU float64            `json:"totalCPUMilliseconds"`
	Bytes    int                `json:"bytes"`
	Lists    int                `json:"lists"`
}

// measureLists measures every combination with that many images. Clients of Kubernetes accept gzip; without it,
// one combination is measured.
func (b *bench) measureLists(ctx context.Context, images int) ([]ListCell, error) {
	var cells []ListCell
	for _, caller := range []string{operator, tenant} {
		for _, f := range forms {
			for _, clients := range b.options.clients {
				cells = append(cells, ListCell{Images: images, Form: f.Name, Caller: caller, Clients: clients, Encoding: "gzip"})
			}
		}
	}
	cells = append(cells, ListCell{Images: images, Form: forms[0].Name, Caller: operator, Clients: b.options.clients[0], Encoding: "identity"})
	for i := range cells {
		if err := b.measureList(ctx, &cells[i]); err != nil {
			return nil, fmt.Errorf("list %d images as %s for %s: %w", images, cells[i].Form, cells[i].Caller, err)
		}
	}
	return cells, nil
}

func (b *bench) measureList(ctx context.Context, cell *ListCell) error {
	clients, err := b.connections(cell.Caller, cell.Clients)
	if err != nil {
		return err
	}
	defer closeAll(clients)
	lists, err := b.variants(ctx, cell, clients)
	if err != nil {
		return err
	}
	each, err := b.calibrate(ctx, lists, clients)
	if err != nil {
		return err
	}
	stopProfile, err := b.profile(ctx, fmt.Sprintf("list-%d-%s-%s-%d-%s", cell.Images, cell.Form, cell.Caller, cell.Clients, cell.Encoding))
	if err != nil {
		return err
	}
	turns, err := b.takeTurns(ctx, lists, clients, each)
	if err := errors.Join(err, stopProfile()); err != nil {
		return err
	}
	cell.summarize(lists, turns)
	return nil
}

func closeAll(clients []*http.Client) {
	for _, c := range clients {
		c.CloseIdleConnections()
	}
}

// list is a variant.
type list struct {
	name   string
	url    string
	header http.Header
	bytes  int
}

// variants returns the same list three times. The third has the bytes of the first.
func (b *bench) variants(ctx context.Context, cell *ListCell, clients []*http.Client) ([]list, error) {
	header := http.Header{"Accept": {formOf(cell.Form).accept}, "Accept-Encoding": {cell.Encoding}}
	all := []list{
		{name: served, url: b.url(listPath(servedGroup)), header: header},
		{name: stored, url: b.url(listPath(storedGroup)), header: header},
		{name: atBest, url: b.url(listPath(limitGroup)), header: header},
	}
	for i := range all[:2] {
		a, err := all[i].ask(ctx, clients[0])
		if err != nil {
			return nil, err
		}
		all[i].bytes = len(a.body)
		if i > 0 {
			continue
		}
		query, err := b.limit.keep(a)
		if err != nil {
			return nil, err
		}
		all[2].url, all[2].bytes = all[2].url+query, len(a.body)
	}
	return all, nil
}

func formOf(name string) form {
	return forms[slices.IndexFunc(forms, func(f form) bool { return f.Name == name })]
}

// answer is a response.
type answer struct {
	header http.Header
	body   []byte
}

func (l list) ask(ctx context.Context, client *http.Client) (answer, error) {
	var body bytes.Buffer
	header, err := l.read(ctx, client, &body)
	if err != nil {
		return answer{}, err
	}
	kept := http.Header{}
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		if value := header.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	return answer{header: kept, body: body.Bytes()}, nil
}

// read reads the answer as it comes over the wire.
func (l list) read(ctx context.Context, client *http.Client, into io.Writer) (http.Header, error) {
	response, err := l.open(ctx, client)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = io.Copy(into, response.Body)
	return response.Header, err
}

// open returns an answer whose body is still to be read.
func (l list) open(ctx context.Context, client *http.Client) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header = l.header.Clone()
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		message, _ := io.ReadAll(response.Body)
		return nil, errors.Join(fmt.Errorf("%s: %s: %s", l.url, response.Status, message), response.Body.Close())
	}
	return response, nil
}

// turn is what one variant did in its turn.
type turn struct {
	latencies []time.Duration
	cpu       usage
}

// calibrate returns how many lists of each variant a client makes in a turn.
func (b *bench) calibrate(ctx context.Context, lists []list, clients []*http.Client) ([]int, error) {
	each := make([]int, len(lists))
	for i, l := range lists {
		for range 2 { // the first opens the connections
			start := time.Now()
			if _, err := b.take(ctx, l, clients, 1); err != nil {
				return nil, err
			}
			each[i] = max(1, int(b.options.turn/max(time.Since(start), time.Microsecond)))
		}
	}
	return each, nil
}

// takeTurns returns the turns of each variant. Which one begins changes.
func (b *bench) takeTurns(ctx context.Context, lists []list, clients []*http.Client, each []int) ([][]turn, error) {
	turns := make([][]turn, len(lists))
	end := time.Now().Add(b.options.cell)
	for n := 0; n < leastTurns || time.Now().Before(end); n++ {
		for i := range lists {
			i = (i + n) % len(lists)
			t, err := b.take(ctx, lists[i], clients, each[i])
			if err != nil {
				return nil, err
			}
			turns[i] = append(turns[i], t)
		}
	}
	return turns, nil
}

// take has every client make a number of lists, all at once.
func (b *bench) take(ctx context.Context, l list, clients []*http.Client, each int) (turn, error) {
	before, err := b.usage()
	if err != nil {
		return turn{}, err
	}
	latencies := make([]time.Duration, each*len(clients))
	failures := make([]error, len(clients))
	var all sync.WaitGroup
	for c, client := range clients {
		all.Go(func() {
			for i := range each {
				start := time.Now()
				if _, err := l.read(ctx, client, io.Discard); err != nil {
					failures[c] = err
					return
				}
				latencies[c*each+i] = time.Since(start)
			}
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return turn{}, err
	}
	after, err := b.usage()
	if err != nil {
		return turn{}, err
	}
	return turn{latencies: latencies, cpu: after.minus(before)}, nil
}

func (cell *ListCell) summarize(lists []list, turns [][]turn) {
	cell.Turns = len(turns[0])
	cell.Variants = map[string]ListCost{}
	for i, l := range lists {
		cell.Variants[l.name] = costOf(turns[i], l.bytes)
	}
	cell.ToStored = compare(turns[0], turns[1], turn.median)
	cell.ToLimit = compare(turns[0], turns[2], turn.median)
	cell.CPUToStored = compare(turns[0], turns[1], turn.work)
	cell.CPUToLimit = compare(turns[0], turns[2], turn.work)
}

func costOf(turns []turn, size int) ListCost {
	cost := ListCost{CPU: map[string]float64{}, Bytes: size}
	var latencies []time.Duration
	cpu := usage{}
	for _, t := range turns {
		latencies = append(latencies, t.latencies...)
		for name, used := range t.cpu {
			cpu[name] += used
		}
	}
	cost.Lists = len(latencies)
	cost.P50, cost.P99 = milliseconds(quantile(latencies, 0.5)), milliseconds(quantile(latencies, 0.99))
	for name, used := range cpu {
		cost.CPU[name] = milliseconds(used) / float64(len(latencies))
	}
	cost.TotalCPU = milliseconds(cpu.total()) / float64(len(latencies))
	return cost
}

func (t turn) median() float64 { return milliseconds(quantile(t.latencies, 0.5)) }

// work is CPU time for one list.
func (t turn) work() float64 { return milliseconds(t.cpu.total()) / float64(len(t.latencies)) }

// compare returns the ratios of two variants, turn by turn.
func compare(a, b []turn, of func(turn) float64) Spread {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = ratio(of(a[i]), of(b[i]))
	}
	return spreadOf(ratios)
}
