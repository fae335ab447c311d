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
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
)

// Backend carries out writes where the objects come from. It returns when a write is accepted; the
// log learns of the outcome from its own source. A conflict (apierrors.IsConflict) says that an
// update or a deletion was meant for a state that is no longer the present one, and has it tried
// again on what the log shows by then: what is refused for good has another reason.
//
// Old objects are the log's and must not be modified; new ones are the backend's to keep.
type Backend interface {
	Create(ctx context.Context, key string, obj runtime.Object) (Visible, error)
	Update(ctx context.Context, key string, old, obj runtime.Object) (Visible, error)
	Delete(ctx context.Context, key string, old runtime.Object) (Visible, error)
}

// Visible tells whether the object that the log has, nil if none, reflects a write. It is called
// until it returns true.
type Visible func(obj runtime.Object) bool

// Create implements storage.Interface.
func (s *Storage) Create(ctx context.Context, key string, obj, out runtime.Object, _ uint64) error {
	key, err := s.prepareWrite(key, "create")
	if err != nil {
		return err
	}
	if rv, err := s.versioner.ObjectResourceVersion(obj); err == nil && rv != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	if err := s.versioner.PrepareObjectForStorage(obj); err != nil {
		return fmt.Errorf("preparing %s for storage: %w", key, err)
	}
	if e, now, _ := s.log.get(key); e != nil {
		return storage.NewKeyExistsError(key, int64(now))
	}
	visible, err := s.backend.Create(ctx, key, obj.DeepCopyObject())
	if err != nil {
		return err
	}
	e, err := s.awaitWrite(ctx, key, visible)
	if err != nil {
		return err
	}
	return setWritten(out, key, e)
}

// GuaranteedUpdate implements storage.Interface. It needs no suggestion of what is stored.
func (s *Storage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, _ runtime.Object) error {
	key, err := s.prepareWrite(key, "update")
	if err != nil {
		return err
	}
	return s.retryOnConflict(ctx, key, func(current *entry) error {
		if current == nil && !ignoreNotFound {
			return storage.NewKeyNotFoundError(key, 0)
		}
		obj, err := s.applyUpdate(key, current, preconditions, tryUpdate)
		if err != nil {
			return err
		}
		if current == nil {
			err := s.Create(ctx, key, obj, out, 0)
			if storage.IsExist(err) || apierrors.IsAlreadyExists(err) {
				return outdated{err}
			}
			return err
		}
		if same, err := sameContent(current, obj); err != nil {
			return err
		} else if same {
			return setInto(out, current.obj.DeepCopyObject())
		}
		visible, err := s.backend.Update(ctx, key, current.obj, obj.DeepCopyObject())
		if err != nil {
			return markOutdated(err)
		}
		e, err := s.awaitWrite(ctx, key, visible)
		if err != nil {
			return err
		}
		return setWritten(out, key, e)
	})
}

// Delete implements storage.Interface. It needs no suggestion of what is stored.
func (s *Storage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	key, err := s.prepareWrite(key, "delete")
	if err != nil {
		return err
	}
	return s.retryOnConflict(ctx, key, func(current *entry) error {
		if current == nil {
			return storage.NewKeyNotFoundError(key, 0)
		}
		if err := preconditions.Check(key, current.obj); err != nil {
			return err
		}
		if err := validate(ctx, current.obj.DeepCopyObject()); err != nil {
			return err
		}
		visible, err := s.backend.Delete(ctx, key, current.obj)
		if err != nil {
			return markOutdated(err)
		}
		e, err := s.awaitWrite(ctx, key, visible)
		if err != nil {
			return err
		}
		if e == nil || uidOf(e.obj) != uidOf(current.obj) {
			return s.setRemoved(out, key, current)
		}
		return setWritten(out, key, e)
	})
}

func (s *Storage) prepareWrite(key, verb string) (string, error) {
	if s.backend == nil {
		return "", apierrors.NewMethodNotSupported(s.resource, verb)
	}
	return s.prepare(key, false)
}

// applyUpdate returns what update makes of the current object, or of an empty one.
func (s *Storage) applyUpdate(key string, current *entry, preconditions *storage.Preconditions, update storage.UpdateFunc) (runtime.Object, error) {
	existing, response := s.newFunc(), storage.ResponseMeta{}
	if current != nil {
		existing, response.ResourceVersion = current.obj.DeepCopyObject(), current.rv
	}
	if err := preconditions.Check(key, existing); err != nil {
		return nil, err
	}
	obj, _, err := update(existing, response)
	if err != nil {
		return nil, err
	}
	if err := s.versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, fmt.Errorf("preparing %s for storage: %w", key, err)
	}
	return obj, nil
}

// retryOnConflict attempts a write on what the log shows, and again when that turns out to be
// outdated: once the log has moved on, or after a while, since what the write collided with need
// not show in the log. It gives up with the answer of the last attempt.
func (s *Storage) retryOnConflict(ctx context.Context, key string, attempt func(current *entry) error) error {
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 9}
	for {
		current, _, _ := s.log.get(key)
		err := attempt(current)
		var conflict outdated
		if !errors.As(err, &conflict) {
			return err
		}
		if backoff.Steps == 0 || ctx.Err() != nil {
			return conflict.error
		}
		moved := func(now *entry) bool { return now != current }
		// In vain or not, the next attempt finds out.
		_, _ = s.await(ctx, key, backoff.Step(), moved)
	}
}

// outdated is a backend's refusal to write because what the log shows is not the present state.
type outdated struct{ error }

func markOutdated(err error) error {
	if apierrors.IsConflict(err) {
		return outdated{err}
	}
	return err
}

// awaitWrite returns what a write that was accepted has led to: nil if the object is gone.
func (s *Storage) awaitWrite(ctx context.Context, key string, visible Visible) (*entry, error) {
	e, err := s.await(ctx, key, s.writeTimeout, func(now *entry) bool {
		if now == nil {
			return visible(nil)
		}
		return visible(now.obj)
	})
	if err != nil {
		// Nothing to retry after: a client that repeats the write by itself would be told that it conflicts.
		return nil, apierrors.NewTimeoutError(fmt.Sprintf("the write to %s %q was accepted, but it is not visible here yet", s.resource, strings.TrimPrefix(key, s.prefix)), 0)
	}
	return e, nil
}

// await returns the entry at key once done accepts it.
func (s *Storage) await(ctx context.Context, key string, limit time.Duration, done func(*entry) bool) (*entry, error) {
	timer := s.clock.NewTimer(limit)
	defer timer.Stop()
	for {
		e, _, changed := s.log.get(key)
		if done(e) {
			return e, nil
		}
		select {
		case <-changed:
		case <-timer.C():
			return nil, context.DeadlineExceeded
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// setWritten sets out to what a write has led to.
func setWritten(out runtime.Object, key string, e *entry) error {
	if e == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	if out == nil {
		return nil
	}
	return setInto(out, e.obj.DeepCopyObject())
}

// setRemoved sets out to the last state of the object at key, which last was current.
func (s *Storage) setRemoved(out runtime.Object, key string, current *entry) error {
	if e := s.log.removal(key, current.rv); e != nil {
		return setInto(out, e.shared.obj.DeepCopyObject())
	}
	if err := setInto(out, current.obj.DeepCopyObject()); err != nil {
		return err
	}
	return s.versioner.UpdateObject(out, s.log.ResourceVersion())
}
