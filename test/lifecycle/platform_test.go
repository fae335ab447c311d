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

package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	imagesclient "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

const (
	release    = cluster.ServerName
	namespace  = cluster.ServerNamespace
	selector   = "app.kubernetes.io/name=" + release
	apiService = "v1alpha1.images.cozystack.io"
	replicas   = 2
	// servingSecret holds the certificate that servers share.
	servingSecret = release + "-serving"
	servingPort   = 6443
)

// platform is the stack, seen by its administrator.
type platform struct {
	*stack.Stack
	images imagesclient.WorkerImageInterface
	kube   kubernetes.Interface
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	s, err := shared.start()
	if err != nil {
		t.Fatal(err)
	}
	config := s.RESTConfig()
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &platform{Stack: s, images: imagesOf(t, config), kube: kube}
}

func imagesOf(t *testing.T, config *rest.Config) imagesclient.WorkerImageInterface {
	t.Helper()
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.ImagesV1alpha1().WorkerImages()
}

// values are those of a release.
type values map[string]any

// valuesOf are those that all installations here have, and a catalog.
func valuesOf(v version, schematics ...string) values {
	var declared []any
	for _, schematic := range schematics {
		declared = append(declared, map[string]any{"schematicID": schematic, "version": objects.Release})
	}
	return values{
		"image": v.image(),
		"catalog": map[string]any{"document": map[string]any{
			"imageFactoryURL": "https://factory.talos.dev",
			"storageClass":    "replicated",
			"storage":         "6Gi",
			"images":          declared,
		}},
	}
}

// installed installs a version with helm, or brings an installation to it, and waits until its servers are the only ones.
func installed(t *testing.T, v version, values values, flags ...string) *platform {
	t.Helper()
	p := newPlatform(t)
	p.upgrade(t, v, values, flags...)
	p.awaitOnly(t, v.image())
	return p
}

// upgrade returns when helm does.
func (p *platform) upgrade(t *testing.T, v version, values values, flags ...string) {
	t.Helper()
	content, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"upgrade", "--install", release, v.chart(), "--namespace", namespace, "--values", path, "--wait", "--timeout", await.Patience.String()}
	p.helm(t, append(args, flags...)...)
}

// helm runs helm and fails the test if helm fails.
func (p *platform) helm(t *testing.T, args ...string) {
	t.Helper()
	began := time.Now()
	if out, err := p.run(t.Context(), helmProgram(), args...); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("helm %s took %v", args[0], time.Since(began).Round(time.Millisecond))
}

func helmProgram() string { return cmp.Or(os.Getenv("HELM"), "helm") }

// kubectl runs kubectl, returns what it prints, and fails the test if kubectl fails.
func (p *platform) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.run(t.Context(), p.Kubectl(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (p *platform) run(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, await.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	// What helm and kubectl remember of a cluster is of this one only.
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(p.Dir, "kubectl-cache"), "HOME="+p.Dir)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
}

// pods are those of the release.
func (p *platform) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := p.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// awaitOnly waits until the servers of an image are there and ready, and no others.
func (p *platform) awaitOnly(t *testing.T, image string) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	await.For(t, fmt.Sprintf("%d servers of %s alone", replicas, image), func(ctx context.Context) (err error) {
		if pods, err = p.pods(ctx); err != nil {
			return err
		}
		if len(pods) != replicas {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		for i := range pods {
			if got := pods[i].Spec.Containers[0].Image; got != image || !serves(&pods[i]) {
				return fmt.Errorf("pod %s of %s, ready %v", pods[i].Name, got, serves(&pods[i]))
			}
		}
		return nil
	})
	return pods
}

// serves is true for a pod that is ready and stays.
func serves(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && isReady(pod)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// awaitAvailable waits until kube-apiserver passes requests on.
func (p *platform) awaitAvailable(t *testing.T) {
	t.Helper()
	p.kubectl(t, "wait", "--for=condition=Available", "apiservice/"+apiService, "--timeout="+await.Patience.String())
}

// goldenUIDs returns the uid of each golden by its name.
func (p *platform) goldenUIDs(t *testing.T) map[string]types.UID {
	t.Helper()
	list, err := p.Resource(objects.DataVolumes, objects.Goldens).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, golden := range list.Items {
		if golden.GetDeletionTimestamp() == nil && strings.HasPrefix(golden.GetName(), "talos-worker-") {
			uids[golden.GetName()] = golden.GetUID()
		}
	}
	return uids
}

// imageUIDs returns the uid of each image by its name.
func (p *platform) imageUIDs(t *testing.T) map[string]types.UID {
	t.Helper()
	list, err := p.images.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for i := range list.Items {
		uids[list.Items[i].Name] = list.Items[i].UID
	}
	return uids
}

// state is what a server says of all images.
func state(ctx context.Context, images imagesclient.WorkerImageInterface) (map[string]v1alpha1.WorkerImage, error) {
	list, err := images.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	state := map[string]v1alpha1.WorkerImage{}
	for _, image := range list.Items {
		state[image.Name] = image
	}
	return state, nil
}

// checkLogs makes sure that no server has been refused anything.
func (p *platform) checkLogs(t *testing.T) {
	t.Helper()
	logs, err := readLogs(p.Stack)
	if err := errors.Join(err, faults(logs, refused)); err != nil {
		t.Error(err)
	}
}

// forgetLogs looks a last time at the logs of servers that are gone, whose rights were taken away before they were.
func (p *platform) forgetLogs(t *testing.T) {
	t.Helper()
	logs, err := readLogs(p.Stack)
	if err := errors.Join(err, faults(logs, broken)); err != nil {
		t.Error(err)
	}
	paths, err := p.PodLogs()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
