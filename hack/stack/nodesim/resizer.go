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

package nodesim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resize grows the volume of a claim that asks for more than it has, then reports the new capacity on the claim. A clone
// larger than its source waits for it.
func (s *Simulator) resize(ctx context.Context, c *corev1.PersistentVolumeClaim, state *claim) error {
	if c.Status.Phase != corev1.ClaimBound || c.Spec.VolumeName == "" || c.DeletionTimestamp != nil {
		return nil
	}
	want, have := c.Spec.Resources.Requests[corev1.ResourceStorage], c.Status.Capacity[corev1.ResourceStorage]
	if have.IsZero() || want.Cmp(have) <= 0 {
		return nil
	}
	if state.resizing != want.String() {
		state.resizing, state.since = want.String(), time.Now()
		s.events.Eventf(c, corev1.EventTypeNormal, "Resizing", "External resizer is resizing volume %s", c.Spec.VolumeName)
	}
	if time.Since(state.since) < s.rules.ProvisionDelay.Duration {
		return nil
	}
	volume, err := s.client.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if capacity := volume.Spec.Capacity[corev1.ResourceStorage]; capacity.Cmp(want) < 0 {
		volume.Spec.Capacity[corev1.ResourceStorage] = want
		if _, err := s.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("grow volume %s: %w", volume.Name, err)
		}
	}
	grown := c.DeepCopy()
	grown.Status.Capacity[corev1.ResourceStorage] = want
	if _, err := s.client.CoreV1().PersistentVolumeClaims(c.Namespace).UpdateStatus(ctx, grown, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report the new capacity: %w", err)
	}
	s.events.Event(c, corev1.EventTypeNormal, "VolumeResizeSuccessful", "Resize volume succeeded")
	return nil
}
