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

package server

import (
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

func TestTheServerListensWhenItKnowsWhomToTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		all, awaited := &fakeCA{after: time.Hour}, &fakeCA{content: "CA", after: 3 * time.Second}
		c := newAwaitedCA(all, runners{all, awaited}, awaited)
		began := time.Now()
		if err := c.RunOnce(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != awaited.after {
			t.Errorf("it listens after %v, and knows after %v", took, awaited.after)
		}
		cancel()
		c.Run(ctx, 1)
	})
}

func TestTheServerListensInTheEndWhenNobodyTellsWhomToTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		never := &fakeCA{after: time.Hour}
		c := newAwaitedCA(never, never, never)
		began := time.Now()
		if err := c.RunOnce(ctx); err == nil {
			t.Error("nothing is said of it")
		}
		if took := time.Since(began); took != authoritiesTimeout {
			t.Errorf("it listens after %v", took)
		}
		cancel()
		c.Run(ctx, 1)
	})
}

func TestTheServerDoesNotWaitOnItsWayOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := &fakeCA{after: time.Hour}
	c := newAwaitedCA(never, never, never)
	if err := c.RunOnce(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	c.Run(ctx, 1)
}

// fakeCA has its content some time after it began to run.
type fakeCA struct {
	content string
	after   time.Duration

	mu        sync.Mutex
	loaded    string
	listeners []dynamiccertificates.Listener
}

func (f *fakeCA) Run(ctx context.Context, _ int) {
	timer := time.NewTimer(f.after)
	defer timer.Stop()
	select {
	case <-timer.C:
		f.load()
		<-ctx.Done()
	case <-ctx.Done():
	}
}

func (f *fakeCA) load() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = f.content
	for _, listener := range f.listeners {
		listener.Enqueue()
	}
}

func (f *fakeCA) RunOnce(context.Context) error { return nil }

func (f *fakeCA) Name() string { return "fake" }

func (f *fakeCA) CurrentCABundleContent() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []byte(f.loaded)
}

func (f *fakeCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }

func (f *fakeCA) AddListener(listener dynamiccertificates.Listener) {
	f.listeners = append(f.listeners, listener)
}

// runners run together.
type runners []*fakeCA

func (r runners) RunOnce(context.Context) error { return nil }

func (r runners) Run(ctx context.Context, workers int) {
	var all sync.WaitGroup
	for _, f := range r {
		all.Go(func() { f.Run(ctx, workers) })
	}
	all.Wait()
}
