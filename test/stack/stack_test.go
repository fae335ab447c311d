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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// schematic is that of the golden that is cloned.
const schematic = "zfs"

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

	t.Run("CDI imports a golden", func(t *testing.T) {
		create(t, running, objects.NewGolden(schematic))
		awaitStatus(t, running, objects.NewGolden(schematic), "phase", "Succeeded")
	})
	t.Run("CDI clones it on the storage layer", func(t *testing.T) {
		disk := objects.NewDisk("tenant-a", "prod", "md0", "x7k2p", schematic)
		create(t, running, disk)
		clone := awaitStatus(t, running, disk, "phase", "Succeeded")
		if kind := clone.GetAnnotations()["cdi.kubevirt.io/cloneType"]; kind != "csi-clone" {
			t.Errorf("cloned by %q", kind)
		}
	})
	t.Run("an import fails as ordered and comes right when the order is withdrawn", func(t *testing.T) {
		flaky := objects.NewGolden("iscsi")
		order := stack.Rule{Match: "/image/iscsi/", Outcome: "Fail", Duration: metav1.Duration{Duration: time.Second}, Message: "no route to host"}
		if err := running.SetSimRules(stack.Rules{Rules: []stack.Rule{order}}); err != nil {
			t.Fatal(err)
		}
		create(t, running, flaky)
		awaitStatus(t, running, flaky, "restartCount", int64(1))
		if err := running.SetSimRules(stack.Rules{}); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, running, flaky, "phase", "Succeeded")
	})
	t.Run("CDI's webhook guards the spec of a golden", func(t *testing.T) {
		patch := []byte(`{"spec":{"source":{"http":{"url":"https://example.org/other"}}}}`)
		_, err := running.Resource(objects.DataVolumes, objects.Goldens).Patch(t.Context(), objects.NameOf(schematic), types.MergePatchType, patch, metav1.PatchOptions{})
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
		pools := tenant.Resource(objects.Pools)
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

func create(t *testing.T, s *stack.Stack, dataVolume *unstructured.Unstructured) {
	t.Helper()
	if _, err := s.Resource(objects.DataVolumes, dataVolume.GetNamespace()).Create(t.Context(), dataVolume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitStatus waits until a field of a DataVolume's status has a value.
func awaitStatus(t *testing.T, s *stack.Stack, dataVolume *unstructured.Unstructured, field string, want any) (now *unstructured.Unstructured) {
	t.Helper()
	await.For(t, fmt.Sprintf("%s of %s/%s to be %v", field, dataVolume.GetNamespace(), dataVolume.GetName(), want), func(ctx context.Context) (err error) {
		if now, err = s.Resource(objects.DataVolumes, dataVolume.GetNamespace()).Get(ctx, dataVolume.GetName(), metav1.GetOptions{}); err != nil {
			return err
		}
		got, _, err := unstructured.NestedFieldNoCopy(now.Object, "status", field)
		if err == nil && got != want {
			err = fmt.Errorf("its status is %v", now.Object["status"])
		}
		return err
	})
	return now
}
