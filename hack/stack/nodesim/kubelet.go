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
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// step is how far a pod has come.
type step int

const (
	created step = iota
	unschedulable
	bound
	creating
	pullBackOff
	running
	crashed
	backingOff
	finished
	deleted
)

// crashDelay is how long a container stays terminated before the kubelet turns to it again.
const crashDelay = time.Second

// pod is what the simulator remembers of a pod.
type pod struct {
	step     step
	since    time.Time
	restarts int32
	endpoint *endpoint
	// container is that of a pod that runs as a process, when it has begun.
	container *container
	// crash is the last failed run, and crashRule the rule it failed by.
	crash     *corev1.ContainerStateTerminated
	crashRule Rule
}

func (p *pod) enter(next step) {
	p.step, p.since = next, time.Now()
}

// syncPod takes a pod one step further when its time has come. A step is entered once the API server has accepted what
// it changes, so a conflict is repeated and not lost.
func (s *Simulator) syncPod(ctx context.Context, p *corev1.Pod, state *pod, all []corev1.Pod) error {
	if s.programs.run(p) {
		return s.syncProgram(ctx, p, state)
	}
	if p.DeletionTimestamp != nil {
		return s.remove(ctx, p, state)
	}
	rule := s.rules.forPod(p.Namespace+"/"+p.Name, envOf(p, "IMPORTER_ENDPOINT"))
	age := time.Since(state.since)
	switch state.step {
	case created, unschedulable:
		return s.schedule(ctx, p, state, rule)
	case bound:
		if p.Spec.NodeName == "" {
			return nil
		}
		return s.advance(ctx, p, state, creating, corev1.PodPending, waitingContainer("ContainerCreating", ""))
	case creating:
		return s.startContainer(ctx, p, state, rule, age)
	case pullBackOff:
		if rule.Outcome != ImagePullBackOff {
			state.enter(creating)
		}
		return nil
	case running:
		return s.runContainer(ctx, p, state, rule, age, all)
	case crashed:
		if age < crashDelay {
			return nil
		}
		wait := state.crashRule.backoff(state.restarts)
		if wait == 0 {
			return s.restart(ctx, p, state)
		}
		return s.advance(ctx, p, state, backingOff, corev1.PodRunning, waitingContainer("CrashLoopBackOff",
			fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", wait, p.Spec.Containers[0].Name, p.Name, p.Namespace, p.UID)))
	case backingOff:
		if age < state.crashRule.backoff(state.restarts) {
			return nil
		}
		return s.restart(ctx, p, state)
	case finished, deleted:
		return nil
	default:
		return fmt.Errorf("unknown step %d", state.step)
	}
}

func (s *Simulator) startContainer(ctx context.Context, p *corev1.Pod, state *pod, rule Rule, age time.Duration) error {
	if rule.Outcome == ImagePullBackOff {
		image := p.Spec.Containers[0].Image
		return s.advance(ctx, p, state, pullBackOff, corev1.PodPending, waitingContainer("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", image)))
	}
	if age < s.rules.StartDelay.Duration {
		return nil
	}
	if err := s.openEndpoint(ctx, p, state); err != nil {
		return err
	}
	return s.advance(ctx, p, state, running, corev1.PodRunning, runningContainer(time.Now()))
}

func (s *Simulator) runContainer(ctx context.Context, p *corev1.Pod, state *pod, rule Rule, age time.Duration, all []corev1.Pod) error {
	if !isCDI(p) {
		return nil
	}
	if isUploadTarget(p) {
		if !uploaded(p, all) {
			return nil
		}
		return s.finish(ctx, p, state, uploadedMessage)
	}
	state.endpoint.setProgress(rule.progress(age, state.restarts))
	switch {
	case rule.Outcome == Hold || age < rule.Duration.Duration:
		return nil
	case rule.fails(state.restarts):
		return s.fail(ctx, p, state, rule)
	case rule.Outcome == ChecksumMismatch:
		return s.finish(ctx, p, state, checksumMessage)
	default:
		return s.finish(ctx, p, state, successMessage(p))
	}
}

func (s *Simulator) fail(ctx context.Context, p *corev1.Pod, state *pod, rule Rule) error {
	status := terminatedContainer(state.since, rule.ExitCode, "Error", rule.Message)
	if err := s.setStatus(ctx, p, state, corev1.PodRunning, status); err != nil {
		return err
	}
	state.crash, state.crashRule = status.Terminated, rule
	state.enter(crashed)
	return nil
}

func (s *Simulator) restart(ctx context.Context, p *corev1.Pod, state *pod) error {
	state.restarts++
	if err := s.advance(ctx, p, state, running, corev1.PodRunning, runningContainer(time.Now())); err != nil {
		state.restarts--
		return err
	}
	return nil
}

func (s *Simulator) finish(ctx context.Context, p *corev1.Pod, state *pod, message string) error {
	if err := s.advance(ctx, p, state, finished, corev1.PodSucceeded, terminatedContainer(state.since, 0, "Completed", message)); err != nil {
		return err
	}
	s.closeEndpoint(ctx, state)
	return nil
}

// remove confirms to the API server that a pod has ended.
func (s *Simulator) remove(ctx context.Context, p *corev1.Pod, state *pod) error {
	s.closeEndpoint(ctx, state)
	if state.step == deleted {
		return nil
	}
	err := s.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0),
		Preconditions:      metav1.NewUIDPreconditions(string(p.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove: %w", err)
	}
	state.enter(deleted)
	return nil
}

// advance reports a status and enters the step that goes with it.
func (s *Simulator) advance(ctx context.Context, p *corev1.Pod, state *pod, next step, phase corev1.PodPhase, container corev1.ContainerState) error {
	if err := s.setStatus(ctx, p, state, phase, container); err != nil {
		return err
	}
	state.enter(next)
	return nil
}

func (s *Simulator) setStatus(ctx context.Context, p *corev1.Pod, state *pod, phase corev1.PodPhase, container corev1.ContainerState) error {
	updated := p.DeepCopy()
	status := &updated.Status
	status.Phase = phase
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.Now())
	}
	status.HostIP = hostAddress
	status.HostIPs = []corev1.HostIP{{IP: hostAddress}}
	if state.endpoint != nil {
		status.PodIP = state.endpoint.address
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	status.ContainerStatuses = []corev1.ContainerStatus{containerStatus(p, state, container)}
	status.Conditions = podConditions(phase, container.Running != nil, p.Spec.Containers[0].Name)
	if _, err := s.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report phase %s: %w", phase, err)
	}
	return nil
}

func containerStatus(p *corev1.Pod, state *pod, current corev1.ContainerState) corev1.ContainerStatus {
	container := p.Spec.Containers[0]
	status := corev1.ContainerStatus{
		Name:         container.Name,
		Image:        container.Image,
		ImageID:      container.Image + "@sha256:0",
		ContainerID:  "containerd://" + strings.ReplaceAll(string(p.UID), "-", ""),
		State:        current,
		Ready:        current.Running != nil,
		Started:      ptr.To(current.Running != nil),
		RestartCount: state.restarts,
	}
	if current.Terminated == nil {
		status.LastTerminationState = corev1.ContainerState{Terminated: state.crash}
	}
	return status
}

func podConditions(phase corev1.PodPhase, ready bool, name string) []corev1.PodCondition {
	reason, message := "", ""
	switch {
	case phase == corev1.PodSucceeded:
		reason = "PodCompleted"
	case !ready:
		reason, message = "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", name)
	}
	return []corev1.PodCondition{
		podCondition(corev1.PodInitialized, true, "", ""),
		podCondition(corev1.PodReady, ready, reason, message),
		podCondition(corev1.ContainersReady, ready, reason, message),
		podCondition(corev1.PodScheduled, true, "", ""),
	}
}

func podCondition(kind corev1.PodConditionType, holds bool, reason, message string) corev1.PodCondition {
	status := corev1.ConditionFalse
	if holds {
		status = corev1.ConditionTrue
	}
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
}

func waitingContainer(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func runningContainer(since time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}

func terminatedContainer(since time.Time, code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: metav1.NewTime(since), FinishedAt: metav1.Now(),
	}}
}

func envOf(p *corev1.Pod, name string) string {
	for _, variable := range p.Spec.Containers[0].Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}
