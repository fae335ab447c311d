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

package option

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// resultBuffer holds the three Options that a watch begins with: the handler of a watch flushes whenever it
// finds the channel empty.
const resultBuffer = 3

// stampedWatch is a watch of the log whose Options are made those of another namespace.
type stampedWatch struct {
	watch.Interface
	translation translation
	result      chan watch.Event
	stop        sync.Once
	stopped     chan struct{}
	running     sync.WaitGroup
}

func newStampedWatch(w watch.Interface, t translation) *stampedWatch {
	s := &stampedWatch{Interface: w, translation: t, result: make(chan watch.Event, resultBuffer), stopped: make(chan struct{})}
	s.running.Go(s.run)
	return s
}

// ResultChan implements watch.Interface. The channel is closed when the goroutine is done.
func (s *stampedWatch) ResultChan() <-chan watch.Event { return s.result }

// Stop implements watch.Interface. It returns when the goroutine has ended.
func (s *stampedWatch) Stop() {
	s.stop.Do(func() { close(s.stopped) })
	s.Interface.Stop()
	s.running.Wait()
}

func (s *stampedWatch) run() {
	defer close(s.result)
	for event := range s.Interface.ResultChan() {
		select {
		case s.result <- s.stamped(event):
		case <-s.stopped:
			return
		}
	}
}

// shared is how an event holds what all watchers are sent.
type shared interface {
	// ShallowCopy returns the object after the event. Its outermost struct is the caller's.
	ShallowCopy() runtime.Object
}

// stamped leaves bookmarks and errors as they are, which belong to no namespace.
func (s *stampedWatch) stamped(event watch.Event) watch.Event {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark, watch.Error:
		return event
	}
	if o, ok := event.Object.(shared); ok {
		event.Object = o.ShallowCopy()
	}
	if option, ok := event.Object.(*images.Option); ok {
		s.translation.stamp(option)
	}
	return event
}
