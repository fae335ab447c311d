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

package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

var errGone = errors.New("connection refused")

// cluster is several replicas and what they would find.
type cluster struct {
	*testing.T
	logger   klog.Logger
	lease    lease
	mu       sync.Mutex // is held to change replicas, and to read them elsewhere than in the test
	replicas map[string]*replica
	started  int
	skew     map[string]time.Duration // how far the clock of an address is ahead
}

func newCluster(t *testing.T, addresses ...string) *cluster {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(1)))
	c := &cluster{T: t, logger: logger, replicas: map[string]*replica{}}
	for _, address := range addresses {
		c.start(address)
	}
	t.Cleanup(func() {
		for address := range c.replicas {
			c.kill(address)
		}
	})
	return c
}

// replica is one process.
type replica struct {
	storage *memory.Storage
	log     *memory.Log
	journal *Journal
	stop    context.CancelFunc
	ended   sync.WaitGroup
	down    <-chan struct{}
}

// start starts a replica that has found nothing yet, and returns when nothing moves any more.
func (c *cluster) start(address string) *replica {
	c.started++
	first := memory.FirstResourceVersion(time.Now().Add(c.skew[address]), fmt.Sprint(address, c.started))
	log := memory.NewLog(memory.LogOptions{First: first, Attrs: storage.DefaultClusterScopedAttr, Patience: time.Second})
	r := &replica{log: log, journal: NewJournal(first, log)}
	r.storage = memory.New(memory.Options{
		Log: log, Resource: schema.GroupResource{Resource: "pods"}, Prefix: "/pods",
		NewFunc: func() runtime.Object { return &example.Pod{} },
	})
	alive, stop := context.WithCancel(klog.NewContext(context.Background(), c.logger))
	r.down, r.stop = alive.Done(), stop
	c.mu.Lock()
	c.replicas[address] = r
	c.mu.Unlock()
	replicator := New(Config{Journal: r.journal, Lock: c.lease.lock(Identity(address), r.down), Peer: c.peer(alive), Clock: clock.RealClock{}})
	r.ended.Go(func() { replicator.Run(alive) })
	synctest.Wait()
	return r
}

// kill ends a replica without a word.
func (c *cluster) kill(address string) {
	r, ok := c.replicas[address]
	if !ok {
		return
	}
	c.mu.Lock()
	delete(c.replicas, address)
	c.mu.Unlock()
	r.stop()
	r.ended.Wait()
}

// logged is how many lines say so.
func (c *cluster) logged(message string) int {
	count := 0
	for _, entry := range c.logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		if entry.Message == message {
			count++
		}
	}
	return count
}

// found tells all replicas what is there at name; nothing where label is empty.
func (c *cluster) found(name, label string) {
	for _, r := range c.replicas {
		r.found(c, name, label)
	}
	synctest.Wait()
}

func (r *replica) found(t testing.TB, name, label string) {
	var object Object
	if label != "" {
		object = func(runtime.Object) runtime.Object {
			return &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": label}}}
		}
	}
	if err := r.journal.Found(0, "/pods/"+name, object); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) complete() {
	for _, r := range c.replicas {
		if err := r.journal.Complete(); err != nil {
			c.Fatal(err)
		}
	}
	synctest.Wait()
}

// peer reaches the replicas that are alive, from one that is alive.
func (c *cluster) peer(caller context.Context) func(context.Context, string) ([]Feed, error) {
	return func(_ context.Context, address string) ([]Feed, error) {
		reach := func(ctx context.Context) (*replica, context.Context, error) {
			c.mu.Lock()
			r, ok := c.replicas[address]
			c.mu.Unlock()
			if !ok || !r.log.Ready() || caller.Err() != nil {
				return nil, nil, errGone
			}
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				defer cancel()
				select {
				case <-r.down:
				case <-ctx.Done():
				}
			}()
			return r, ctx, nil
		}
		return []Feed{{
			List: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
				r, ctx, err := reach(ctx)
				if err != nil {
					return nil, err
				}
				list := &example.PodList{}
				return list, r.storage.GetList(ctx, "/pods", storage.ListOptions{
					ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: opts.ResourceVersionMatch, Recursive: true,
					Predicate: storage.SelectionPredicate{Label: storage.Everything.Label, Field: storage.Everything.Field, Limit: opts.Limit},
				}, list)
			},
			Watch: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
				r, ctx, err := reach(ctx)
				if err != nil {
					return nil, err
				}
				predicate := storage.Everything
				predicate.AllowWatchBookmarks = opts.AllowWatchBookmarks
				return r.storage.Watch(ctx, "/pods", storage.ListOptions{ResourceVersion: opts.ResourceVersion, Recursive: true, Predicate: predicate})
			},
			Own: func(obj runtime.Object) (string, runtime.Object, error) {
				if shared, ok := obj.(runtime.CacheableObject); ok {
					obj = shared.GetObject()
				}
				pod := obj.(*example.Pod).DeepCopy()
				return "/pods/" + pod.Name, pod, nil
			},
		}}, nil
	}
}

// lease is a Lease that no API server keeps.
type lease struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
}

// give has the Lease say that somebody else has just renewed it.
func (l *lease) give(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	given := *l.record
	given.HolderIdentity, given.RenewTime = identity, metav1.Now()
	l.record, l.version = &given, l.version+1
}

// leader is the address of who holds it.
func (l *lease) leader() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return addressOf(l.record.HolderIdentity)
}

func (l *lease) lock(identity string, down <-chan struct{}) resourcelock.Interface {
	return &lock{lease: l, identity: identity, down: down}
}

type lock struct {
	lease    *lease
	identity string
	down     <-chan struct{}
	version  int // that was read last
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.lease.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "history")
	}
	record := *l.lease.record
	l.version = l.lease.version
	return &record, fmt.Append(nil, record), nil
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// Update lets nobody release the Lease: whoever is killed does not.
func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	select {
	case <-l.down:
		return errGone
	default:
	}
	if l.lease.version != l.version {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "history", nil)
	}
	l.lease.record, l.lease.version = &record, l.lease.version+1
	l.version = l.lease.version
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return "history" }

// client is a reflector: it lists, and watches from what it has seen.
type client struct {
	t       testing.TB
	state   map[string]string
	version string
	relists int
}

// read follows a replica until nothing moves.
func (c *client) read(r *replica) {
	c.t.Helper()
	if c.version == "" {
		c.list(r)
	}
	w, err := r.storage.Watch(c.t.Context(), "/pods", storage.ListOptions{ResourceVersion: c.version, Recursive: true, Predicate: storage.Everything})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		w.Stop()
		synctest.Wait()
	}()
	for {
		synctest.Wait()
		select {
		case e := <-w.ResultChan():
			if e.Type == watch.Error {
				if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) {
					c.t.Fatal(err)
				}
				c.version = ""
				c.read(r)
				return
			}
			c.receive(e)
		default:
			return
		}
	}
}

func (c *client) list(r *replica) {
	list := &example.PodList{}
	if err := r.storage.GetList(c.t.Context(), "/pods", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
		c.t.Fatal(err)
	}
	c.relists++
	c.state, c.version = map[string]string{}, list.ResourceVersion
	for _, pod := range list.Items {
		c.state[pod.Name] = pod.Labels["l"]
	}
}

func (c *client) receive(e watch.Event) {
	pod := e.Object.(runtime.CacheableObject).GetObject().(*example.Pod)
	before, _ := strconv.ParseUint(c.version, 10, 64)
	now, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil || now <= before {
		c.t.Fatalf("from %s to %s", c.version, pod.ResourceVersion)
	}
	c.version = pod.ResourceVersion
	_, had := c.state[pod.Name]
	switch {
	case e.Type == watch.Added && !had, e.Type == watch.Modified && had:
		c.state[pod.Name] = pod.Labels["l"]
	case e.Type == watch.Deleted && had:
		delete(c.state, pod.Name)
	default:
		c.t.Fatalf("%s of %s, had it: %t", e.Type, pod.Name, had)
	}
}
