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
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// serverUser is whom the server is to kube-apiserver.
	serverUser = "system:serviceaccount:cozy-system:workerimage-apiserver"
	// listers make the lists that are counted.
	listers = 16
	// watched is how long the watches that are counted stay open: several rounds of questions what their callers may see.
	watched = 10 * time.Second
)

// RequestCount is what the server has asked kube-apiserver for meanwhile, by verb and resource.
type RequestCount struct {
	Cause    string         `json:"cause"`
	Count    int            `json:"count,omitempty"`
	Requests map[string]int `json:"requests"`
}

// authorization is the kind of request that every server behind the aggregator makes.
var authorization = map[string]bool{"create subjectaccessreviews": true, "create tokenreviews": true}

func (c RequestCount) String() string {
	if c.Count == 0 {
		return c.Cause
	}
	return fmt.Sprintf("%d %s", c.Count, c.Cause)
}

// beyond returns how many requests are neither for authorization nor of a kind that is made when there is nothing to do.
func (c RequestCount) beyond(idle RequestCount) (n int) {
	for request, count := range c.Requests {
		if !authorization[request] && idle.Requests[request] == 0 {
			n += count
		}
	}
	return n
}

// measureRequests counts first while there is nothing to do, then for two callers, half and half: an operator and a tenant.
func (b *bench) measureRequests(ctx context.Context) ([]RequestCount, error) {
	idle, err := b.countRequests(func() error { return pause(ctx, watched) })
	if err != nil {
		return nil, err
	}
	lists, err := b.countRequests(func() error { return b.makeLists(ctx) })
	if err != nil {
		return nil, err
	}
	watches, err := b.countRequests(func() error { return b.keepWatches(ctx) })
	if err != nil {
		return nil, err
	}
	return []RequestCount{
		{Cause: "nothing, for " + watched.String(), Requests: idle},
		{Cause: "lists", Count: b.options.requests, Requests: lists},
		{Cause: "watches, open for " + watched.String(), Count: b.options.requests, Requests: watches},
	}, nil
}

func (b *bench) makeLists(ctx context.Context) error {
	for _, caller := range []string{operator, tenant} {
		clients, err := b.connections(caller, listers)
		if err != nil {
			return err
		}
		l := list{url: b.url(listPath(servedGroup)), header: http.Header{"Accept": {forms[0].accept}}}
		failures := make([]error, listers)
		var all sync.WaitGroup
		for i, client := range clients {
			all.Go(func() {
				for range b.options.requests / 2 / listers {
					if _, err := l.read(ctx, client, io.Discard); err != nil {
						failures[i] = err
						return
					}
				}
			})
		}
		all.Wait()
		closeAll(clients)
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) keepWatches(ctx context.Context) error {
	for _, caller := range []string{operator, tenant} {
		a, err := b.gather(ctx, servedGroup, caller, b.options.requests/2)
		if err != nil {
			return err
		}
		defer a.dismiss()
	}
	return pause(ctx, watched)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// countRequests returns what the server asked for while f ran, as the audit log of kube-apiserver tells.
func (b *bench) countRequests(f func() error) (map[string]int, error) {
	before, err := os.ReadFile(b.stack.State().AuditLog)
	if err != nil {
		return nil, err
	}
	if err := f(); err != nil {
		return nil, err
	}
	after, err := os.ReadFile(b.stack.State().AuditLog)
	if err != nil {
		return nil, err
	}
	return requestsOf(after[len(before):])
}

// requestsOf counts the server's requests in a part of an audit log. The last line may be on its way.
func requestsOf(log []byte) (map[string]int, error) {
	counts, seen := map[string]int{}, map[string]bool{}
	for line := range bytes.Lines(log[:bytes.LastIndexByte(log, '\n')+1]) {
		var event struct {
			ID   string `json:"auditID"`
			Verb string `json:"verb"`
			URI  string `json:"requestURI"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			Object struct {
				Resource string `json:"resource"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		if event.User.Username == serverUser && !seen[event.ID] {
			seen[event.ID] = true
			counts[event.Verb+" "+cmp.Or(event.Object.Resource, event.URI)]++
		}
	}
	return counts, nil
}
