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
	"errors"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

const first = 1 << 32

func newJournal() (*Journal, *memory.Log) {
	log := memory.NewLog(memory.LogOptions{First: first, Attrs: storage.DefaultClusterScopedAttr})
	return NewJournal(first, log), log
}

func pod(label string) Object {
	return func(runtime.Object) runtime.Object {
		return &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": label}}}
	}
}

func TestWhatWasFoundIsShownWhoeverPublishesIt(t *testing.T) {
	for name, publish := range map[string]func(*Journal, *memory.Log) error{
		"another publishes it": func(_ *Journal, log *memory.Log) error { return log.Adopt("/pods/a", pod("2")(nil), first+2) },
		"this replica leads":   func(j *Journal, _ *memory.Log) error { return j.Lead() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, log := newJournal()
				if err := errors.Join(j.Complete(), log.Adopt("/pods/a", pod("1")(nil), first+1), j.Found(0, "/pods/a", pod("2"))); err != nil {
					t.Fatal(err)
				}
				shown := make(chan error, 1)
				go func() { shown <- j.Await(t.Context(), 0, "/pods/a") }()
				synctest.Wait()
				select {
				case err := <-shown:
					t.Fatalf("answered before anybody has published it: %v", err)
				default:
				}
				if err := publish(j, log); err != nil {
					t.Fatal(err)
				}
				if err := <-shown; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWhatIsGoneIsShownWhenAnotherHasPublishedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, log := newJournal()
		if err := errors.Join(j.Complete(), log.Adopt("/pods/a", pod("1")(nil), first+1)); err != nil {
			t.Fatal(err)
		}
		shown := make(chan error, 1)
		go func() { shown <- j.Await(t.Context(), 0, "/pods/a") }()
		synctest.Wait()
		if err := log.Adopt("/pods/a", nil, first+2); err != nil {
			t.Fatal(err)
		}
		if err := <-shown; err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsPublishedBeforeAllIsFound(t *testing.T) {
	j, log := newJournal()
	if err := errors.Join(log.Adopt("/pods/a", pod("1")(nil), first+1), j.Lead(), j.Found(0, "/pods/b", pod("1"))); err != nil {
		t.Fatal(err)
	}
	if rv := log.ResourceVersion(); rv != first+1 {
		t.Errorf("published up to %d", rv-first)
	}
	if log.Ready() {
		t.Error("the log is open")
	}
	if err := j.Complete(); err != nil {
		t.Fatal(err)
	}
	if keys := log.Keys(); len(keys) != 1 || keys[0] != "/pods/b" || !log.Ready() {
		t.Errorf("there are %q, open: %t", keys, log.Ready())
	}
}

func TestAFollowerPublishesNothing(t *testing.T) {
	j, log := newJournal()
	if err := errors.Join(j.Lead(), j.Complete()); err != nil {
		t.Fatal(err)
	}
	j.Follow()
	if err := j.Found(0, "/pods/a", pod("1")); err != nil {
		t.Fatal(err)
	}
	if keys := log.Keys(); len(keys) != 0 {
		t.Errorf("published %q", keys)
	}
}
