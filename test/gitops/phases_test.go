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

package gitops

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// situation is where a golden stands, and what tools that wait make of it.
type situation struct {
	name   string
	golden func(dataVolume, claim *unstructured.Unstructured)
	phase  string
	// kstatus is what Flux computes, and health what Argo CD does with the script of its page.
	kstatus status.Status
	health  health.HealthStatusCode
}

func situations() []situation {
	return []situation{
		{
			name:   "CDI has not said anything",
			golden: func(dataVolume, claim *unstructured.Unstructured) { unset(dataVolume, claim) },
			phase:  "Pending", kstatus: status.InProgressStatus, health: health.HealthStatusProgressing,
		},
		{
			name:   "the import goes on",
			golden: func(dataVolume, claim *unstructured.Unstructured) { importing(dataVolume, claim, 0) },
			phase:  "Importing", kstatus: status.InProgressStatus, health: health.HealthStatusProgressing,
		},
		{
			name:   "the import is tried again and again",
			golden: func(dataVolume, claim *unstructured.Unstructured) { importing(dataVolume, claim, 5) },
			phase:  "Importing", kstatus: status.InProgressStatus, health: health.HealthStatusProgressing,
		},
		{
			name: "there is no such class",
			golden: func(dataVolume, claim *unstructured.Unstructured) {
				unset(dataVolume, claim)
				objects.Set(dataVolume, "does-not-exist", "spec", "storage", "storageClassName")
			},
			phase: "Pending", kstatus: status.FailedStatus, health: health.HealthStatusDegraded,
		},
		{
			name:   "the image is complete",
			golden: func(_, _ *unstructured.Unstructured) {},
			phase:  "Ready", kstatus: status.CurrentStatus, health: health.HealthStatusHealthy,
		},
		{
			name: "CDI has given up",
			golden: func(dataVolume, _ *unstructured.Unstructured) {
				objects.Set(dataVolume, "Failed", "status", "phase")
			},
			phase: "Failed", kstatus: status.FailedStatus, health: health.HealthStatusDegraded,
		},
		{
			name:   "the claim has lost its volume",
			golden: func(_, claim *unstructured.Unstructured) { objects.Set(claim, "Lost", "status", "phase") },
			phase:  "Failed", kstatus: status.FailedStatus, health: health.HealthStatusDegraded,
		},
		{
			name: "the image is being deleted",
			golden: func(dataVolume, _ *unstructured.Unstructured) {
				objects.Set(dataVolume, "2026-11-30T20:40:00Z", "metadata", "deletionTimestamp")
			},
			phase: "Terminating", kstatus: status.InProgressStatus, health: health.HealthStatusProgressing,
		},
		{
			name: "CDI says a word that nobody knows",
			golden: func(dataVolume, _ *unstructured.Unstructured) {
				objects.Set(dataVolume, "Daydreaming", "status", "phase")
			},
			phase: "Unknown", kstatus: status.InProgressStatus, health: health.HealthStatusUnknown,
		},
	}
}

func unset(dataVolume, claim *unstructured.Unstructured) {
	unstructured.RemoveNestedField(dataVolume.Object, "status")
	claim.Object = nil
}

func importing(dataVolume, claim *unstructured.Unstructured, restarts int64) {
	objects.Set(dataVolume, map[string]any{"phase": "ImportInProgress", "progress": "41.56%", "restartCount": restarts}, "status")
	objects.Set(claim, map[string]any{"phase": "Pending"}, "status")
}

func TestWhatToolsThatWaitMakeOfEachPhase(t *testing.T) {
	script := healthScript(t)
	images := serveSnapshot(t)
	for i, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			image, err := images.Get(t.Context(), objects.NameOf(schematicOf(i)), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if phase, _, err := unstructured.NestedString(image.Object, "status", "phase"); phase != s.phase || err != nil {
				t.Errorf("phase %s, want %s: %v", phase, s.phase, err)
			}
			computed, err := status.Compute(image)
			if err != nil {
				t.Fatal(err)
			}
			if computed.Status != s.kstatus {
				t.Errorf("Flux takes it for %s, want %s: %s", computed.Status, s.kstatus, computed.Message)
			}
			ready := conditionOf(image, "Ready")
			if computed.Status == status.FailedStatus && computed.Message != ready["message"] {
				t.Errorf("Flux is told %q, and Ready says %q", computed.Message, ready["message"])
			}
			shown, err := health.GetResourceHealth(image, script)
			if err != nil {
				t.Fatal(err)
			}
			if shown == nil || shown.Status != s.health || shown.Message != fmt.Sprint(ready["message"]) {
				t.Errorf("Argo CD shows %v, want %s and what Ready says: %v", shown, s.health, ready["message"])
			}
		})
	}
}

func TestAnImageOfWhichNothingIsKnownYetIsProgressing(t *testing.T) {
	shown, err := health.GetResourceHealth(newImage("unseen"), healthScript(t))
	if err != nil || shown == nil || shown.Status != health.HealthStatusProgressing {
		t.Errorf("Argo CD shows %v: %v", shown, err)
	}
}

func schematicOf(i int) string { return fmt.Sprintf("situation-%d", i) }

// serveSnapshot runs the server on a snapshot with a golden in each situation.
func serveSnapshot(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	server, err := shared.server()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeSnapshot(t, filepath.Join(dir, "snapshot.yaml"))
	kubeconfig := filepath.Join(dir, "kubeconfig")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, server, "--snapshot="+filepath.Join(dir, "snapshot.yaml"), "--snapshot-kubeconfig="+kubeconfig)
	var log strings.Builder
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := command.Wait(); err != nil && t.Failed() {
			t.Logf("the server ended with %v, and said\n%s", err, log.String())
		}
	})

	var images dynamic.ResourceInterface
	await.For(t, "the server on a snapshot", func(ctx context.Context) error {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		images, err = imagesOf(config)
		if err != nil {
			return err
		}
		list, err := images.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != len(situations()) {
			err = fmt.Errorf("%d images", len(list.Items))
		}
		return err
	})
	return images
}

func imagesOf(config *rest.Config) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.Resource(workerImages), nil
}

func writeSnapshot(t *testing.T, path string) {
	t.Helper()
	manifests := []*unstructured.Unstructured{objects.NewClass(objects.ClassName)}
	for i, s := range situations() {
		dataVolume, claim := completeGolden(schematicOf(i))
		s.golden(dataVolume, claim)
		manifests = append(manifests, dataVolume)
		if claim.Object != nil {
			manifests = append(manifests, claim)
		}
	}
	var content []byte
	for _, manifest := range manifests {
		text, err := yaml.Marshal(manifest.Object)
		if err != nil {
			t.Fatal(err)
		}
		content = append(append(content, "---\n"...), text...)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func completeGolden(schematic string) (dataVolume, claim *unstructured.Unstructured) {
	uid := types.UID("dv-" + schematic)
	dataVolume, claim = objects.NewGolden(schematic), objects.NewClaim(schematic, uid)
	for _, o := range []*unstructured.Unstructured{dataVolume, claim} {
		objects.Set(o, "2026-11-30T20:00:00Z", "metadata", "creationTimestamp")
	}
	dataVolume.SetUID(uid)
	claim.SetUID(types.UID("claim-" + schematic))
	objects.Set(dataVolume, map[string]any{"phase": "Succeeded", "progress": "100.0%", "claimName": dataVolume.GetName()}, "status")
	objects.Set(claim, map[string]any{"phase": "Bound", "capacity": map[string]any{"storage": "6Gi"}}, "status")
	return dataVolume, claim
}
