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

package images

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// patiently calls a server again that does not answer, until it does or the client's patience is at an end.
func patiently[T any](ctx context.Context, c *Client, call func(context.Context) (T, error)) (T, error) {
	bounded, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	var failure error
	var answer T
	backoff := retryBackoff()
	for {
		got, err := call(bounded)
		if err == nil {
			return got, nil
		}
		if !transient(err) {
			// The last attempt may have been cut short, and tells less than the one before.
			if failure != nil && bounded.Err() != nil {
				break
			}
			return answer, err
		}
		failure = err
		tflog.Warn(ctx, "the API does not answer, trying again", map[string]any{"error": err.Error()})
		if !pause(bounded, backoff.Step()) {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return answer, errors.Join(err, failure)
	}
	return answer, &UnreachableError{Host: c.Host, After: c.patience, Err: failure}
}

func retryBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 5 * time.Second}
}

// transient says whether the same request may get another answer a moment later.
func transient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500 || apierrors.IsTooManyRequests(err)
	}
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || (utilnet.IsTimeout(err) && !errors.Is(err, context.DeadlineExceeded))
}

// suggestsAnotherCreate says whether, and after what time, a creation may succeed that a deletion stands in the way of.
func suggestsAnotherCreate(err error) (time.Duration, bool) {
	if !apierrors.IsConflict(err) {
		return 0, false
	}
	seconds, suggested := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second, suggested
}

// pause returns false if the context ends first.
func pause(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
