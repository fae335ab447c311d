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

package memory

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// backend is what a test makes of writes.
type backend struct {
	create func(key string, obj runtime.Object) (Visible, error)
	update func(key string, old, obj runtime.Object) (Visible, error)
	remove func(key string, old runtime.Object) (Visible, error)
}

func (b *backend) Create(_ context.Context, key string, obj runtime.Object) (Visible, error) {
	return b.create(key, obj)
}

func (b *backend) Update(_ context.Context, key string, old, obj runtime.Object) (Visible, error) {
	return b.update(key, old, obj)
}

func (b *backend) Delete(_ context.Context, key string, old runtime.Object) (Visible, error) {
	return b.remove(key, old)
}

func newWriteFixture(t *testing.T) (*fixture, *backend) {
	b := &backend{}
	f := newFixture(t, func(_ *LogOptions, o *Options) { o.Backend = b })
	f.set(t, "a", "1")
	return f, b
}

func (f *fixture) create(ctx context.Context, name, label string) (*example.Pod, error) {
	out := &example.Pod{}
	return out, f.Create(ctx, podKey(name), newPod(name, label), out, 0)
}

// relabel updates the label of a pod, which it creates if there is none.
func (f *fixture) relabel(ctx context.Context, name, label string, preconditions *storage.Preconditions) (*example.Pod, error) {
	out := &example.Pod{}
	return out, f.GuaranteedUpdate(ctx, podKey(name), out, true, preconditions, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		pod := obj.(*example.Pod)
		pod.Name, pod.Labels = name, map[string]string{"l": label}
		return pod, nil
	}), nil)
}

func (f *fixture) delete(ctx context.Context, name string, preconditions *storage.Preconditions) (*example.Pod, error) {
	out := &example.Pod{}
	return out, f.Delete(ctx, podKey(name), out, preconditions, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
}

func labelled(label string) Visible {
	return func(obj runtime.Object) bool {
		pod, ok := obj.(*example.Pod)
		return ok && pod.Labels["l"] == label
	}
}

func gone(obj runtime.Object) bool { return obj == nil }

func TestWithoutABackendTheResourceIsReadOnly(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	f.backend = nil
	_, createErr := f.create(t.Context(), "b", "1")
	_, updateErr := f.relabel(t.Context(), "a", "2", nil)
	_, deleteErr := f.delete(t.Context(), "a", nil)
	for verb, err := range map[string]error{"create": createErr, "update": updateErr, "delete": deleteErr} {
		if !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), verb) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestAnAnswerIsWhatTheLogShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := newWriteFixture(t)
		later := func(do func()) { go func() { <-time.After(time.Second); do() }() }
		b.create = func(string, runtime.Object) (Visible, error) {
			later(func() { f.set(t, "b", "made") })
			return labelled("made"), nil
		}
		b.update = func(string, runtime.Object, runtime.Object) (Visible, error) {
			later(func() { f.set(t, "b", "in between"); f.set(t, "b", "changed") })
			return labelled("changed"), nil
		}
		b.remove = func(string, runtime.Object) (Visible, error) {
			later(func() { f.set(t, "b", "last"); f.remove(t, "b"); f.set(t, "c", "1") })
			return gone, nil
		}
		for _, step := range []struct {
			verb string
			do   func() (*example.Pod, error)
			want string
			at   int
		}{
			{"create", func() (*example.Pod, error) { return f.create(t.Context(), "b", "asked") }, "made", 2},
			{"update", func() (*example.Pod, error) { return f.relabel(t.Context(), "b", "asked", nil) }, "changed", 4},
			{"delete", func() (*example.Pod, error) { return f.delete(t.Context(), "b", nil) }, "last", 6},
		} {
			out, err := step.do()
			want := newPod("b", step.want)
			want.ResourceVersion = f.version(step.at)
			if diff := cmp.Diff(want, out); err != nil || diff != "" {
				t.Errorf("%s: %v\n%s", step.verb, err, diff)
			}
		}
		synctest.Wait()
	})
}

func TestADeletedObjectThatIsStillThereIsTheAnswer(t *testing.T) {
	f, b := newWriteFixture(t)
	b.remove = func(string, runtime.Object) (Visible, error) {
		f.set(t, "a", "terminating")
		return labelled("terminating"), nil
	}
	out, err := f.delete(t.Context(), "a", nil)
	if err != nil || out.Labels["l"] != "terminating" || out.ResourceVersion != f.version(2) {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestADeletedObjectThatIsThereAnewIsAnsweredAsItWas(t *testing.T) {
	f, b := newWriteFixture(t)
	f.remove(t, "a")
	f.set(t, "a", "2")
	b.remove = func(string, runtime.Object) (Visible, error) {
		f.remove(t, "a")
		for _, uid := range []types.UID{"2", "3"} {
			anew := newPod("a", "anew")
			anew.UID = uid
			apply(t, f.log, podKey("a"), anew)
		}
		return func(obj runtime.Object) bool { return obj.(*example.Pod).UID != "" }, nil
	}
	out, err := f.delete(t.Context(), "a", nil)
	want := newPod("a", "2")
	want.ResourceVersion = f.version(4)
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if out.Labels["l"] = "modified"; f.log.removal(podKey("a"), f.log.first+3).shared.obj.(*example.Pod).Labels["l"] == "modified" {
		t.Error("the answer is the log's")
	}
}

func TestADeletionThatTheRingForgotIsAnsweredAsOfNow(t *testing.T) {
	f, b := newWriteFixture(t)
	b.remove = func(string, runtime.Object) (Visible, error) {
		f.remove(t, "a")
		f.set(t, "b", "1")
		f.log.compactTo(f.log.ResourceVersion())
		return gone, nil
	}
	before, _ := f.log.Get(podKey("a"))
	out, err := f.delete(t.Context(), "a", nil)
	want := newPod("a", "1")
	want.ResourceVersion = f.version(3)
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if out.Labels["l"] = "modified"; before.(*example.Pod).Labels["l"] != "1" {
		t.Error("the answer is the log's")
	}
}

func TestAWriteThatDoesNotShowIsSaidToBeAccepted(t *testing.T) {
	never := func(runtime.Object) bool { return false }
	for name, row := range map[string]struct {
		limit time.Duration // of the request
		want  time.Duration
	}{
		"until the timeout of writes":  {limit: time.Hour, want: DefaultWriteTimeout},
		"until the end of the request": {limit: time.Second, want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, b := newWriteFixture(t)
				calls := 0
				b.create = func(string, runtime.Object) (Visible, error) { calls++; return never, nil }
				b.update = func(string, runtime.Object, runtime.Object) (Visible, error) { calls++; return never, nil }
				b.remove = func(string, runtime.Object) (Visible, error) { calls++; return never, nil }
				for verb, do := range map[string]func(context.Context) error{
					"create": func(ctx context.Context) error { _, err := f.create(ctx, "b", "1"); return err },
					"update": func(ctx context.Context) error { _, err := f.relabel(ctx, "a", "2", nil); return err },
					"delete": func(ctx context.Context) error { _, err := f.delete(ctx, "a", nil); return err },
				} {
					begin := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), row.limit)
					err := do(ctx)
					cancel()
					if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "was accepted") {
						t.Errorf("%s: %v", verb, err)
					}
					if _, retry := apierrors.SuggestsClientDelay(err); retry {
						t.Errorf("%s: clients are told to repeat a write that was accepted", verb)
					}
					if waited := time.Since(begin); waited != row.want {
						t.Errorf("%s: waited %s", verb, waited)
					}
				}
				if calls != 3 {
					t.Errorf("%d writes", calls)
				}
			})
		})
	}
}

func TestAConflictIsTriedAgain(t *testing.T) {
	for name, row := range map[string]struct {
		resolve func(*testing.T, *fixture)
		waits   bool
	}{
		"as soon as the log has moved on": {
			resolve: func(t *testing.T, f *fixture) { f.set(t, "a", "theirs") },
		},
		"after a while, if the log never shows what the write collided with": {
			resolve: func(*testing.T, *fixture) {}, waits: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, b := newWriteFixture(t)
				attempts := 0
				b.update = func(key string, old, obj runtime.Object) (Visible, error) {
					if attempts++; attempts == 1 {
						row.resolve(t, f)
						return nil, conflict(key)
					}
					if now, _ := f.log.Get(key); old != now {
						t.Error("tried again on an outdated object")
					}
					return visibleAtOnce, atOnce{f.log}.apply(key, obj)
				}
				b.remove = func(key string, old runtime.Object) (Visible, error) {
					if attempts++; attempts == 1 {
						row.resolve(t, f)
						return nil, conflict(key)
					}
					return atOnce{f.log}.Delete(t.Context(), key, old)
				}
				begin := time.Now()
				if out, err := f.relabel(t.Context(), "a", "ours", nil); err != nil || out.Labels["l"] != "ours" || attempts != 2 {
					t.Errorf("update: %v, %v after %d attempts", out.Labels, err, attempts)
				}
				attempts = 0
				if _, err := f.delete(t.Context(), "a", nil); err != nil || attempts != 2 {
					t.Errorf("delete: %v after %d attempts", err, attempts)
				}
				if waited := time.Since(begin); (waited > 0) != row.waits {
					t.Errorf("waited %s", waited)
				}
			})
		})
	}
}

func TestAConflictThatStaysIsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := newWriteFixture(t)
		attempts := 0
		b.update = func(key string, _, _ runtime.Object) (Visible, error) { attempts++; return nil, conflict(key) }
		begin := time.Now()
		if _, err := f.relabel(t.Context(), "a", "2", nil); !apierrors.IsConflict(err) || attempts != 10 {
			t.Errorf("%v after %d attempts", err, attempts)
		}
		if waited := time.Since(begin); waited > DefaultWriteTimeout {
			t.Errorf("waited %s", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		attempts = 0
		if _, err := f.relabel(ctx, "a", "2", nil); !apierrors.IsConflict(err) || attempts > 3 {
			t.Errorf("after the request ended: %v after %d attempts", err, attempts)
		}
	})
}

func TestWhatIsNotTheBackendsConflictIsNotTriedAgain(t *testing.T) {
	f, b := newWriteFixture(t)
	attempts := 0
	refuse := func(runtime.Object) error { attempts++; return conflict("a") }
	err := f.GuaranteedUpdate(t.Context(), podKey("a"), &example.Pod{}, false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		return nil, refuse(obj)
	}), nil)
	if !apierrors.IsConflict(err) || attempts != 1 {
		t.Errorf("refused by the update: %v after %d attempts", err, attempts)
	}
	attempts = 0
	err = f.Delete(t.Context(), podKey("a"), &example.Pod{}, nil, func(_ context.Context, obj runtime.Object) error {
		return refuse(obj)
	}, nil, storage.DeleteOptions{})
	if !apierrors.IsConflict(err) || attempts != 1 {
		t.Errorf("refused by the validation: %v after %d attempts", err, attempts)
	}
	attempts = 0
	b.update = func(string, runtime.Object, runtime.Object) (Visible, error) {
		attempts++
		return nil, apierrors.NewBadRequest("no")
	}
	if _, err = f.relabel(t.Context(), "a", "2", nil); !apierrors.IsBadRequest(err) || attempts != 1 {
		t.Errorf("refused by the backend: %v after %d attempts", err, attempts)
	}
}

func TestPreconditionsHoldForEveryAttempt(t *testing.T) {
	f, b := newWriteFixture(t)
	attempts := 0
	b.update = func(key string, _, _ runtime.Object) (Visible, error) {
		attempts++
		f.set(t, "a", "theirs")
		return nil, conflict(key)
	}
	_, err := f.relabel(t.Context(), "a", "ours", &storage.Preconditions{ResourceVersion: new(f.version(1))})
	if !storage.IsInvalidObj(err) || attempts != 1 {
		t.Errorf("%v after %d attempts", err, attempts)
	}
}

func TestAnUpdateThatChangesNothingIsNotWritten(t *testing.T) {
	f, _ := newWriteFixture(t) // a backend that panics
	out, err := f.relabel(t.Context(), "a", "1", nil)
	if err != nil || out.ResourceVersion != f.version(1) {
		t.Errorf("at %s, %v", out.ResourceVersion, err)
	}
}

func TestAnUpdateMayCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := newWriteFixture(t)
		var log []string
		b.create = func(key string, _ runtime.Object) (Visible, error) {
			log = append(log, "create")
			go func() { <-time.After(time.Millisecond); f.set(t, "b", "theirs") }()
			return nil, apierrors.NewAlreadyExists(f.resource, key)
		}
		b.update = func(key string, _, obj runtime.Object) (Visible, error) {
			log = append(log, "update")
			return visibleAtOnce, atOnce{f.log}.apply(key, obj)
		}
		out, err := f.relabel(t.Context(), "b", "ours", nil)
		if diff := cmp.Diff([]string{"create", "update"}, log); err != nil || diff != "" || out.Labels["l"] != "ours" {
			t.Errorf("%v, %v\n%s", out.Labels, err, diff)
		}
	})
}

func TestAWriteWhoseObjectIsGoneAgainIsNotFound(t *testing.T) {
	f, b := newWriteFixture(t)
	b.create = func(string, runtime.Object) (Visible, error) { return visibleAtOnce, nil }
	b.update = func(string, runtime.Object, runtime.Object) (Visible, error) {
		f.remove(t, "a")
		return visibleAtOnce, nil
	}
	if _, err := f.create(t.Context(), "b", "1"); !storage.IsNotFound(err) {
		t.Errorf("create: %v", err)
	}
	if _, err := f.relabel(t.Context(), "a", "2", nil); !storage.IsNotFound(err) {
		t.Errorf("update: %v", err)
	}
}

func TestNobodyIsHandedAnObjectThatIsAnothers(t *testing.T) {
	f, b := newWriteFixture(t)
	var handed []*example.Pod // to the backend, the update and the validation
	hand := func(obj runtime.Object) { handed = append(handed, obj.(*example.Pod)) }
	b.create = func(_ string, obj runtime.Object) (Visible, error) {
		hand(obj)
		f.set(t, "b", "1")
		return visibleAtOnce, nil
	}
	b.update = func(_ string, _, obj runtime.Object) (Visible, error) {
		hand(obj)
		return visibleAtOnce, nil
	}
	b.remove = func(string, runtime.Object) (Visible, error) { return visibleAtOnce, nil }

	answers := []*example.Pod{{}, {}, {}, {}}
	created, updated := newPod("b", "1"), newPod("b", "2")
	if err := f.Create(t.Context(), podKey("b"), created, answers[0], 0); err != nil {
		t.Fatal(err)
	}
	if err := f.GuaranteedUpdate(t.Context(), podKey("b"), answers[1], false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		hand(obj)
		return updated, nil
	}), nil); err != nil {
		t.Fatal(err)
	}
	if err := f.GuaranteedUpdate(t.Context(), podKey("b"), answers[2], false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		return obj, nil
	}), nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), podKey("b"), answers[3], nil, func(_ context.Context, obj runtime.Object) error {
		hand(obj)
		return nil
	}, nil, storage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(handed) != 4 {
		t.Fatalf("%d objects were handed out", len(handed))
	}
	for _, pod := range append(handed, answers...) {
		pod.Labels["l"] = "modified"
	}
	published, _ := f.log.Get(podKey("b"))
	for who, got := range map[string]*example.Pod{"the caller's": created, "the update's": updated, "the log's": published.(*example.Pod)} {
		if got.Labels["l"] == "modified" {
			t.Errorf("%s own object was modified by another", who)
		}
	}
}
