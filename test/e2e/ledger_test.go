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

package e2e

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// ledger follows a watch of all images and holds each event against the ones before.
type ledger struct {
	mu     sync.Mutex
	images map[string]*v1alpha1.WorkerImage
	last   uint64
	events int
}

// record begins with a list that comes as a part of the watch, and goes on until the test ends.
func (p *platform) record(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{images: map[string]*v1alpha1.WorkerImage{}}
	events := p.watch(t, "", wire.JSON)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for f := range events.Events {
			if err := l.enter(t, f); err != nil {
				t.Errorf("%s %s: %v", f.Type, f.Raw, err)
			}
		}
	}()
	t.Cleanup(func() {
		events.Stop()
		<-done
	})
	return l
}

// enter returns what is wrong with an event.
func (l *ledger) enter(t *testing.T, f wire.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	image := f.Image(t)
	before := l.images[image.Name]
	l.events++
	switch f.Type {
	case watch.Added:
		if before != nil {
			return fmt.Errorf("it was there")
		}
		l.images[image.Name] = image
	case watch.Modified:
		if before == nil {
			return fmt.Errorf("it was not there")
		}
		if before.UID != image.UID {
			return fmt.Errorf("its uid was %s", before.UID)
		}
		if cmp.Equal(before.Status, image.Status) {
			return fmt.Errorf("nothing has changed")
		}
		l.images[image.Name] = image
	case watch.Deleted:
		if before == nil {
			return fmt.Errorf("it was not there")
		}
		delete(l.images, image.Name)
	default:
		return fmt.Errorf("an unknown type")
	}
	if v := version(t, image.ResourceVersion); v <= l.last {
		return fmt.Errorf("the version before was %d", l.last)
	} else {
		l.last = v
	}
	return nil
}

// List returns the images that are there.
func (l *ledger) List() []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []any
	for _, image := range l.images {
		all = append(all, image)
	}
	return all
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events
}
