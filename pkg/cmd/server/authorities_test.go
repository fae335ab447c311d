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
	const early, late = time.Second, 3 * time.Second
	for _, test := range []struct {
		name                   string
		cluster, requestHeader time.Duration
	}{
		{"the authority of passed on requests is the last", early, late},
		{"that of the cluster is the last", late, early},
		{"both come at once", late, late},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster, requestHeader := &fakeCA{content: "CA", after: test.cluster}, &fakeCA{content: "CA", after: test.requestHeader}
				all := fakeUnion{cluster, requestHeader}
				took, err := runOnce(t, newAwaitedCA(all, all, requestHeader))
				if err != nil || took != late {
					t.Errorf("it listens after %v with error %v", took, err)
				}
			})
		})
	}
}

func TestOneAuthorityIsEnoughWhereThereIsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := &fakeCA{content: "CA", after: time.Second}
		if took, err := runOnce(t, newAwaitedCA(only, only, only)); err != nil || took != only.after {
			t.Errorf("it listens after %v with error %v", took, err)
		}
	})
}

func TestTheServerListensInTheEndWhenNobodyTellsWhomToTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := &fakeCA{after: time.Hour}
		if took, err := runOnce(t, newAwaitedCA(never, never, never)); err == nil || took != authoritiesTimeout {
			t.Errorf("it listens after %v with error %v", took, err)
		}
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

// runOnce returns how long the first run took, and ends what it started.
func runOnce(t *testing.T, c *awaitedCA) (took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	began := time.Now()
	err = c.RunOnce(ctx)
	took = time.Since(began)
	cancel()
	c.Run(ctx, 1)
	return took, err
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

// fakeUnion provides what its parts do.
type fakeUnion []*fakeCA

func (u fakeUnion) RunOnce(context.Context) error { return nil }

func (u fakeUnion) Run(ctx context.Context, workers int) {
	var all sync.WaitGroup
	for _, part := range u {
		all.Go(func() { part.Run(ctx, workers) })
	}
	all.Wait()
}

func (u fakeUnion) Name() string { return "fakes" }

func (u fakeUnion) CurrentCABundleContent() []byte {
	var content []byte
	for _, part := range u {
		content = append(content, part.CurrentCABundleContent()...)
	}
	return content
}

func (u fakeUnion) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }

func (u fakeUnion) AddListener(listener dynamiccertificates.Listener) {
	for _, part := range u {
		part.AddListener(listener)
	}
}
