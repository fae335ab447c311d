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

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	selectedNode      = "volume.kubernetes.io/selected-node"
	noFit             = "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
	unboundImmediate  = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	claimNotFoundText = "0/1 nodes are available: persistentvolumeclaim %q not found."
)

// schedule binds a pod to the node once its claims are bound, and says on the pod why it is not.
func (s *Simulator) schedule(ctx context.Context, p *corev1.Pod, state *pod, rule Rule) error {
	if p.Spec.NodeName != "" {
		state.enter(bound)
		return nil
	}
	obstacle, err := s.obstacle(ctx, p, rule)
	if err != nil {
		return err
	}
	switch {
	case obstacle == waiting:
		return nil
	case obstacle != "":
		return s.reportUnschedulable(ctx, p, state, obstacle)
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: nodeName},
	}
	if err := s.client.CoreV1().Pods(p.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	s.events.Eventf(p, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", p.Namespace, p.Name, nodeName)
	state.enter(bound)
	return nil
}

// waiting is an obstacle that needs no report: the storage knows where the pod will be and makes the volume.
const waiting = "waiting"

// obstacle says what keeps a pod from a node.
func (s *Simulator) obstacle(ctx context.Context, p *corev1.Pod, rule Rule) (string, error) {
	if rule.Outcome == Unschedulable {
		return noFit, nil
	}
	for _, volume := range p.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		name := volume.PersistentVolumeClaim.ClaimName
		claim, err := s.client.CoreV1().PersistentVolumeClaims(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf(claimNotFoundText, name), nil
		}
		if err != nil {
			return "", err
		}
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		waits, err := s.waitsForConsumer(ctx, claim)
		if err != nil {
			return "", err
		}
		if !waits {
			return unboundImmediate, nil
		}
		return waiting, s.selectNode(ctx, claim)
	}
	return "", nil
}

// waitsForConsumer says whether the claim's storage makes no volume before it hears where the pod will be.
func (s *Simulator) waitsForConsumer(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if claim.Spec.StorageClassName == nil {
		return false, nil
	}
	class, err := s.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer, nil
}

func (s *Simulator) selectNode(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Annotations[selectedNode] != "" {
		return nil
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNode, nodeName)
	if _, err := s.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("select the node for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// reportUnschedulable says so once for each pod.
func (s *Simulator) reportUnschedulable(ctx context.Context, p *corev1.Pod, state *pod, message string) error {
	if state.step == unschedulable {
		return nil
	}
	updated := p.DeepCopy()
	updated.Status.Conditions = []corev1.PodCondition{podCondition(corev1.PodScheduled, false, corev1.PodReasonUnschedulable, message)}
	if _, err := s.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report that the pod is unschedulable: %w", err)
	}
	s.events.Event(p, corev1.EventTypeWarning, "FailedScheduling", message)
	state.enter(unschedulable)
	return nil
}
