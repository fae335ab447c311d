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

package await

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Patience is how long anything may take. What takes longer hangs.
	Patience = 2 * time.Minute
	// Interval is how long nobody looks whether it has come about.
	Interval = 20 * time.Millisecond
)

// Condition returns what is missing, or why that cannot be told.
type Condition func(context.Context) error

// For waits until the condition holds, and returns how long that took.
func For(t *testing.T, what string, condition Condition) time.Duration {
	t.Helper()
	began := time.Now()
	if err := Poll(t.Context(), condition); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
	return time.Since(began)
}

// Poll waits until the condition holds, for as long as Patience says.
func Poll(ctx context.Context, condition Condition) error {
	return Within(ctx, Patience, condition)
}

// Within waits until the condition holds.
func Within(ctx context.Context, limit time.Duration, condition Condition) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, Interval, limit, true, func(ctx context.Context) (bool, error) {
		err := condition(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", err, last)
}
