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

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
)

// Whoever enforces the standard for pods on the namespace must not find that no pod is made.
func TestThePodOfTheDeploymentIsOneOfTheRestrictedKind(t *testing.T) {
	p := quietPlatform(t)
	enforced := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := p.kube.CoreV1().Namespaces().Patch(t.Context(), cluster.ServerNamespace, types.MergePatchType, enforced, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	deployment, err := p.kube.AppsV1().Deployments(cluster.ServerNamespace).Get(t.Context(), cluster.ServerName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Name = "trial"
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	if _, err := p.kube.CoreV1().Pods(cluster.ServerNamespace).Create(t.Context(), pod, dryRun); err != nil {
		t.Errorf("it is refused: %v", err)
	}
	pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = ptr.To(true)
	if _, err := p.kube.CoreV1().Pods(cluster.ServerNamespace).Create(t.Context(), pod, dryRun); !apierrors.IsForbidden(err) {
		t.Errorf("the standard is not enforced: %v", err)
	}
}
