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
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/hack/stack/network"
	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

// tokenSeconds is longer than any stack runs: nobody renews the token.
const tokenSeconds int64 = 30 * 24 * 60 * 60

// Programs are run in place of the containers of certain images. A pod of these has one container, no volumes, and probes
// by HTTP; it has the account, the arguments and the environment that it asks for, and neither limits nor a security
// context.
type Programs struct {
	// ByImage is the path of the program for each image.
	ByImage map[string]string
	// Dir is where their logs go, one for each pod.
	Dir string
	// Arguments are given to a program after those of its container. A container has an address of its own and finds the
	// token of its account in files at fixed paths; a process must be told.
	Arguments func(pod, address, token string) ([]string, error)
}

func (p Programs) run(pod *corev1.Pod) bool {
	return p.ByImage[pod.Spec.Containers[0].Image] != ""
}

// syncProgram does what is due for a pod that is run as a process.
func (s *Simulator) syncProgram(ctx context.Context, p *corev1.Pod, state *pod) error {
	c := state.container
	switch {
	case p.DeletionTimestamp != nil && (c == nil || c.isGone()):
		s.closeContainer(state)
		return s.remove(ctx, p, state)
	case p.DeletionTimestamp != nil:
		c.leave(time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second)
		return s.report(ctx, p, c)
	case p.Spec.NodeName == "":
		return s.schedule(ctx, p, state, Rule{})
	case c == nil:
		return s.openContainer(ctx, p, state)
	default:
		return s.report(ctx, p, c)
	}
}

// openContainer gives a pod an address and a token, and runs its program.
func (s *Simulator) openContainer(ctx context.Context, p *corev1.Pod, state *pod) error {
	token, err := s.tokenOf(ctx, p)
	if err != nil {
		return err
	}
	address, err := s.addresses.take()
	if err != nil {
		return err
	}
	further, err := s.programs.Arguments(p.Name, address, token)
	if err != nil {
		s.addresses.giveBack(address)
		return err
	}
	container := p.Spec.Containers[0]
	environment, err := environmentOf(p, address)
	if err != nil {
		s.addresses.giveBack(address)
		return err
	}
	state.container = startContainer(ctx, container, address, process.Spec{
		Name: p.Name,
		Path: s.programs.ByImage[container.Image],
		Args: append(expand(container.Args, environment), further...),
		Env:  environment,
	}, filepath.Join(s.programs.Dir, p.Name+".log"))
	return nil
}

func (s *Simulator) closeContainer(state *pod) {
	if state.container == nil {
		return
	}
	state.container.kill()
	s.addresses.giveBack(state.container.address)
	state.container = nil
}

// closeContainers ends all at once, as a node does whose power fails.
func (s *Simulator) closeContainers() {
	for _, state := range s.pods {
		s.closeContainer(state)
	}
}

// tokenOf returns a token of the pod's account that is of no use any more when the pod is gone.
func (s *Simulator) tokenOf(ctx context.Context, p *corev1.Pod) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(tokenSeconds),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID},
	}}
	token, err := s.client.CoreV1().ServiceAccounts(p.Namespace).CreateToken(ctx, p.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of %s/%s: %w", p.Namespace, p.Spec.ServiceAccountName, err)
	}
	return token.Status.Token, nil
}

// report tells the API server how the container is, when that has changed.
func (s *Simulator) report(ctx context.Context, p *corev1.Pod, c *container) error {
	now := c.current()
	if now == c.reported {
		return nil
	}
	updated := p.DeepCopy()
	status := &updated.Status
	status.Phase = corev1.PodRunning
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.Now())
	}
	status.HostIP = hostAddress
	status.HostIPs = []corev1.HostIP{{IP: hostAddress}}
	status.PodIP = network.PodAddress(c.address)
	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	status.ContainerStatuses = []corev1.ContainerStatus{now.status(p)}
	status.Conditions = podConditions(corev1.PodRunning, now.ready, p.Spec.Containers[0].Name)
	if _, err := s.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report the container: %w", err)
	}
	klog.FromContext(ctx).Info("A container has changed", "pod", klog.KObj(p), "ready", now.ready, "restarts", now.restarts)
	c.reported = now
	return nil
}

// environmentOf is what the container asks for, with what it asks of its pod.
func environmentOf(p *corev1.Pod, address string) ([]string, error) {
	fields := map[string]string{
		"metadata.name":           p.Name,
		"metadata.namespace":      p.Namespace,
		"spec.nodeName":           p.Spec.NodeName,
		"spec.serviceAccountName": p.Spec.ServiceAccountName,
		// Where the process listens, since others that are processes are to reach it there.
		"status.podIP": address,
	}
	var environment []string
	for _, variable := range p.Spec.Containers[0].Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			if from.FieldRef == nil {
				return nil, fmt.Errorf("variable %s: %w", variable.Name, errors.ErrUnsupported)
			}
			field, known := fields[from.FieldRef.FieldPath]
			if !known {
				return nil, fmt.Errorf("variable %s, field %s: %w", variable.Name, from.FieldRef.FieldPath, errors.ErrUnsupported)
			}
			value = field
		}
		environment = append(environment, variable.Name+"="+value)
	}
	return environment, nil
}

// expand puts values in the place of $(NAME).
func expand(args, environment []string) []string {
	var replacements []string
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		replacements = append(replacements, "$("+name+")", value)
	}
	replacer := strings.NewReplacer(replacements...)
	expanded := make([]string, len(args))
	for i, arg := range args {
		expanded[i] = replacer.Replace(arg)
	}
	return expanded
}
