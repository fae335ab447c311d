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

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// WaitReady returns an image once it is ready. It fails at once with a NotReadyError when the image will not become so
// by itself, with ErrNotFound when there is no image, and with a TimeoutError when the time is up. Each state of the
// image that differs from the one before in what a user waits for is shown to onChange.
func (c *Client) WaitReady(ctx context.Context, name string, timeout time.Duration, onChange func(*v1alpha1.WorkerImage)) (*v1alpha1.WorkerImage, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last *v1alpha1.WorkerImage
	err := c.follow(bounded, name, func(image *v1alpha1.WorkerImage) (bool, error) {
		if image == nil {
			return true, missing(last)
		}
		if last == nil || changed(last, image) {
			onChange(image)
		}
		last = image
		if Ready(image) {
			return true, nil
		}
		if lasting(image) {
			return true, &NotReadyError{Image: image}
		}
		return false, nil
	})
	switch {
	case err == nil:
		return last, nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, &TimeoutError{Name: name, After: timeout, Last: last}
	}
	return nil, err
}

// WaitGone returns once the image with the uid is gone, whether or not another one has its name by then.
func (c *Client) WaitGone(ctx context.Context, name string, uid types.UID) error {
	var last *v1alpha1.WorkerImage
	started := time.Now()
	err := c.follow(ctx, name, func(image *v1alpha1.WorkerImage) (bool, error) {
		last = image
		return image == nil || image.UID != uid, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return &TimeoutError{Name: name, After: time.Since(started).Round(time.Second), Last: last}
	}
	return err
}

// Ready says whether an image can be cloned.
func Ready(image *v1alpha1.WorkerImage) bool {
	return apimeta.IsStatusConditionTrue(image.Status.Conditions, v1alpha1.ConditionReady)
}

// lasting says whether an image will not become ready by itself.
func lasting(image *v1alpha1.WorkerImage) bool {
	if image.Status.Phase == v1alpha1.WorkerImageFailed || image.Status.Phase == v1alpha1.WorkerImageTerminating {
		return true
	}
	condition := readyCondition(image)
	if condition.Status != metav1.ConditionFalse {
		return false
	}
	// An import that is tried again, a pod that finds no node and a claim that is not bound yet may pass.
	switch condition.Reason {
	case "ImportFailed", "ClaimLost", "NoStorageClass", "StorageClassNotFound", "QuotaExceeded", "Paused", "WaitForFirstConsumer", "Terminating":
		return true
	}
	return false
}

// changed says whether two states differ in what a user waits for.
func changed(before, after *v1alpha1.WorkerImage) bool {
	was, is := readyCondition(before), readyCondition(after)
	return before.Status.Phase != after.Status.Phase || progress(before) != progress(after) ||
		was.Reason != is.Reason || was.Message != is.Message
}

func progress(image *v1alpha1.WorkerImage) int32 {
	if image.Status.Progress == nil {
		return -1
	}
	return *image.Status.Progress
}

func readyCondition(image *v1alpha1.WorkerImage) metav1.Condition {
	condition := apimeta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionReady)
	if condition == nil {
		return metav1.Condition{}
	}
	return *condition
}

func missing(last *v1alpha1.WorkerImage) error {
	if last == nil {
		return ErrNotFound
	}
	return &NotReadyError{Image: last, Gone: true}
}
