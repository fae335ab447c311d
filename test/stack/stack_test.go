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

package stack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/cozystack/workerimage-apiserver/test/stack"
)

const (
	patience = time.Minute
	interval = 50 * time.Millisecond

	goldens = "cozy-public"
	golden  = "talos-worker-zfs-v1.13.6"
	disk    = "disk-system-kubernetes-prod-md0-x7k2p"
)

var dataVolumes = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}

// TestStack goes through the life of a stack, in order: what CDI does in it depends on what was done before.
func TestStack(t *testing.T) {
	running, err := stack.Start(t.Context(), stack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dynamic.NewForConfig(running.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	t.Run("CDI imports a golden", func(t *testing.T) {
		create(t, client, goldenDataVolume(golden))
		awaitStatus(t, client, goldens, golden, "phase", "Succeeded")
	})
	t.Run("CDI clones it on the storage layer", func(t *testing.T) {
		create(t, client, cloneDataVolume("tenant-a", disk, golden))
		clone := awaitStatus(t, client, "tenant-a", disk, "phase", "Succeeded")
		if kind := clone.GetAnnotations()["cdi.kubevirt.io/cloneType"]; kind != "csi-clone" {
			t.Errorf("cloned by %q", kind)
		}
	})
	t.Run("an import fails as ordered and comes right when the order is withdrawn", func(t *testing.T) {
		const flaky = "talos-worker-iscsi-v1.13.6"
		order := stack.Rule{Match: "/image/iscsi/", Outcome: "Fail", Duration: metav1.Duration{Duration: time.Second}, Message: "no route to host"}
		if err := running.SetSimRules(stack.Rules{Rules: []stack.Rule{order}}); err != nil {
			t.Fatal(err)
		}
		create(t, client, goldenDataVolume(flaky))
		awaitStatus(t, client, goldens, flaky, "restartCount", int64(1))
		if err := running.SetSimRules(stack.Rules{}); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, client, goldens, flaky, "phase", "Succeeded")
	})
	t.Run("CDI's webhook guards the spec of a golden", func(t *testing.T) {
		patch := []byte(`{"spec":{"source":{"http":{"url":"https://example.org/other"}}}}`)
		_, err := client.Resource(dataVolumes).Namespace(goldens).Patch(t.Context(), golden, "application/merge-patch+json", patch, metav1.PatchOptions{})
		if err == nil || !strings.Contains(err.Error(), "Cannot update DataVolume Spec") {
			t.Errorf("got %v, want CDI's refusal", err)
		}
	})
	t.Run("a tenant sees its own pools and no other's", func(t *testing.T) {
		config, err := running.UserConfig("tenant-a")
		if err != nil {
			t.Fatal(err)
		}
		tenant, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		pools := tenant.Resource(schema.GroupVersionResource{Group: "apps.cozystack.io", Version: "v1alpha1", Resource: "kubernetesnodeses"})
		if _, err := pools.Namespace("tenant-a").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("its own: %v", err)
		}
		if _, err := pools.Namespace("tenant-b").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("another's: got %v, want a refusal", err)
		}
	})
	t.Run("a program that is killed is started again", func(t *testing.T) {
		if err := running.Processes().Kill("cdi-controller"); err != nil {
			t.Fatal(err)
		}
		if _, ok := running.Process("cdi-controller"); ok {
			t.Error("it is listed as running")
		}
		if err := running.Processes().Restart("cdi-controller"); err != nil {
			t.Fatal(err)
		}
		if _, ok := running.Process("cdi-controller"); !ok {
			t.Error("it is not listed as running")
		}
	})
	t.Run("nothing is left when it stops", func(t *testing.T) {
		processes := running.Processes().Running()
		if len(processes) != 5 {
			t.Errorf("%d processes are running: %v", len(processes), processes)
		}
		if err := running.Stop(); err != nil {
			t.Fatal(err)
		}
		for name, process := range processes {
			if err := syscall.Kill(process.PID, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%s, process %d, runs on", name, process.PID)
			}
		}
		if _, err := os.Stat(running.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory %s: %v", running.Dir, err)
		}
	})
}

func create(t *testing.T, client dynamic.Interface, dataVolume *unstructured.Unstructured) {
	t.Helper()
	if _, err := client.Resource(dataVolumes).Namespace(dataVolume.GetNamespace()).Create(t.Context(), dataVolume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitStatus waits until a field of a DataVolume's status has a value.
func awaitStatus(t *testing.T, client dynamic.Interface, namespace, name, field string, want any) *unstructured.Unstructured {
	t.Helper()
	var dataVolume *unstructured.Unstructured
	err := wait.PollUntilContextTimeout(t.Context(), interval, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		if dataVolume, err = client.Resource(dataVolumes).Namespace(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		got, _, err := unstructured.NestedFieldNoCopy(dataVolume.Object, "status", field)
		return got == want, err
	})
	if err != nil {
		t.Fatalf("wait for %s of %s/%s to be %v: %v; status is %v", field, namespace, name, want, err, dataVolume.Object["status"])
	}
	return dataVolume
}

func goldenDataVolume(name string) *unstructured.Unstructured {
	id := name[len("talos-worker-") : len(name)-len("-v1.13.6")]
	return dataVolume(goldens, name, "6Gi", map[string]any{
		"http": map[string]any{"url": fmt.Sprintf("https://factory.talos.dev/image/%s/v1.13.6/openstack-amd64.raw.xz", id)},
	})
}

func cloneDataVolume(namespace, name, source string) *unstructured.Unstructured {
	return dataVolume(namespace, name, "20Gi", map[string]any{"pvc": map[string]any{"namespace": goldens, "name": source}})
}

func dataVolume(namespace, name, size string, source map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cdi.kubevirt.io/v1beta1",
		"kind":       "DataVolume",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"contentType": "kubevirt",
			"source":      source,
			"storage": map[string]any{
				"storageClassName": "replicated",
				"resources":        map[string]any{"requests": map[string]any{"storage": size}},
			},
		},
	}}
}
