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
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// Object makes an object as it follows what is published at its key, nil if nothing is. What it returns becomes
// the log's.
type Object func(published runtime.Object) runtime.Object

// Journal decides what the logs of a replica publish: what the replica finds out by itself while it leads,
// what another has published while it follows.
type Journal struct {
	// first is the version of the empty logs of this replica.
	first uint64
	logs  []*memory.Log

	mu       sync.Mutex
	leads    bool
	complete bool          // all that there is was found
	open     bool          // the logs have a history, of this replica or another
	changed  chan struct{} // closed and replaced when what was found, or who leads, has changed
	// found makes the objects of each log as they are by what this replica knows, by key.
	found []map[string]Object
}

// NewJournal returns a Journal of a replica that does not lead. The logs are empty, and first is their version.
func NewJournal(first uint64, logs ...*memory.Log) *Journal {
	j := &Journal{first: first, logs: logs, changed: make(chan struct{})}
	for range logs {
		j.found = append(j.found, map[string]Object{})
	}
	return j
}

// Found tells what the object at key of the i-th log is now, or that it is gone where object is nil.
func (j *Journal) Found(i int, key string, object Object) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tell()
	if object == nil {
		delete(j.found[i], key)
	} else {
		j.found[i][key] = object
	}
	if !j.leads || !j.complete {
		return nil
	}
	return publish(j.logs[i], key, object)
}

// Complete tells that all that there is was found.
func (j *Journal) Complete() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.complete = true
	return j.settle()
}

// Lead publishes what was found, once that is all there is, and from then on what is found. What an error is
// about is published when it is found again.
func (j *Journal) Lead() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.leads {
		return nil
	}
	j.leads, j.open = true, true
	j.tell()
	return j.settle()
}

// Follow leaves it to another to publish.
func (j *Journal) Follow() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.leads = false
}

// Await returns when the i-th log shows at key what was found there.
func (j *Journal) Await(ctx context.Context, i int, key string) error {
	for {
		object, leads, found := j.at(i, key)
		if leads {
			return nil
		}
		shown, published, err := j.logs[i].Shows(key, object)
		if shown || err != nil {
			return err
		}
		select {
		case <-found:
		case <-published:
		case <-ctx.Done():
			return fmt.Errorf("wait until another replica has published %s: %w", key, ctx.Err())
		}
	}
}

func (j *Journal) at(i int, key string) (object Object, leads bool, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.found[i][key], j.leads, j.changed
}

// tell tells those who wait. The caller holds the lock.
func (j *Journal) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// Open opens the logs to requests, if this replica could lead. They are in the history of another then.
func (j *Journal) Open() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open = true
	j.setReady()
}

// HasHistory returns whether the logs have a history, of this replica or another.
func (j *Journal) HasHistory() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open
}

// settle publishes the difference between what the logs hold and what was found, where that is this replica's to do,
// and opens the logs.
func (j *Journal) settle() error {
	var errs []error
	if j.leads && j.complete {
		for i, log := range j.logs {
			errs = append(errs, j.catchUp(log, j.found[i])...)
		}
	}
	j.setReady()
	return errors.Join(errs...)
}

func (j *Journal) catchUp(log *memory.Log, found map[string]Object) (errs []error) {
	log.Continue(j.first)
	for _, key := range log.Keys() {
		if _, isThere := found[key]; !isThere {
			errs = append(errs, publish(log, key, nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		errs = append(errs, publish(log, key, found[key]))
	}
	return errs
}

// setReady opens the logs to requests once they have a history and this replica could lead.
func (j *Journal) setReady() {
	for _, log := range j.logs {
		log.SetReady(j.open && j.complete)
	}
}

func publish(log *memory.Log, key string, object Object) error {
	if object == nil {
		_, err := log.Remove(key)
		return err
	}
	published, _ := log.Get(key)
	_, err := log.Apply(key, object(published))
	return err
}
