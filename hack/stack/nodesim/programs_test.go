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
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAProgramIsToldWhatItsContainerAsksOfItsPod(t *testing.T) {
	pod := newPod(
		corev1.EnvVar{Name: "POD_IP", ValueFrom: fieldRef("status.podIP")},
		corev1.EnvVar{Name: "WHERE", ValueFrom: fieldRef("metadata.namespace")},
		corev1.EnvVar{Name: "LEVEL", Value: "3"},
	)
	environment, err := environmentOf(pod, "127.77.0.2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"POD_IP=127.77.0.2", "WHERE=here", "LEVEL=3"}, environment); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	args := expand([]string{"--address=$(POD_IP):6443", "--v=$(LEVEL)", "--keep=$(UNKNOWN)"}, environment)
	if diff := cmp.Diff([]string{"--address=127.77.0.2:6443", "--v=3", "--keep=$(UNKNOWN)"}, args); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAProgramIsNotRunWithLessThanItsContainerAsksFor(t *testing.T) {
	for name, from := range map[string]*corev1.EnvVarSource{
		"a field that is not known":    fieldRef("status.hostIP"),
		"something other than a field": {SecretKeyRef: &corev1.SecretKeySelector{Key: "password"}},
	} {
		if got, err := environmentOf(newPod(corev1.EnvVar{Name: "ASKED", ValueFrom: from}), "127.77.0.2"); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func newPod(env ...corev1.EnvVar) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "server-1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Env: env}}},
	}
}

func fieldRef(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}
