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

package await_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cozystack/workerimage-apiserver/test/await"
)

func TestWhatComesAboutIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		took := await.For(t, "a second to pass", func(context.Context) error {
			if time.Since(began) < time.Second {
				return errors.New("it has not")
			}
			return nil
		})
		if took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWhatIsMissingInTheEndIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := errors.New("it is not there")
		began := time.Now()
		err := await.Poll(t.Context(), func(ctx context.Context) error {
			if time.Since(began) > await.Patience/2 {
				return missing
			}
			return errors.New("nobody answers")
		})
		if !errors.Is(err, missing) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != await.Patience {
			t.Errorf("it was given up after %v", waited)
		}
	})
}

// What a condition says when its time is over is that its time is over.
func TestWhatIsSaidLastIsFromBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := errors.New("it is not there")
		err := await.Within(t.Context(), time.Second, func(ctx context.Context) error {
			if deadline, _ := ctx.Deadline(); time.Until(deadline) < 2*await.Interval {
				<-ctx.Done()
				return errors.New("the request ended")
			}
			return missing
		})
		if !errors.Is(err, missing) {
			t.Errorf("got %v", err)
		}
	})
}
