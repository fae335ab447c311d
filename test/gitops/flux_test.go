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
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/ssa"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// flux is what Flux's kustomize-controller does with the manifests of a Kustomization.
type flux struct {
	*ssa.ResourceManager
	stack *stack.Stack
}

// patient is how long Flux waits for what is to be ready.
var patient = ssa.WaitOptions{Interval: 200 * time.Millisecond, Timeout: time.Minute, FailFast: true}

func newFlux(t *testing.T, readers ...func(meta.RESTMapper) engine.StatusReader) *flux {
	t.Helper()
	running := shared.stack.Get(t)
	c, mapper := controllerClient(t, running.RESTConfig())
	options := polling.Options{}
	for _, reader := range readers {
		options.CustomStatusReaders = append(options.CustomStatusReaders, reader(mapper))
	}
	owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
	return &flux{ResourceManager: ssa.NewResourceManager(c, polling.NewStatusPoller(c, mapper, options), owner), stack: running}
}

func controllerClient(t *testing.T, config *rest.Config) (client.Client, meta.RESTMapper) {
	t.Helper()
	var httpClient *http.Client
	var mapper meta.RESTMapper
	var c client.Client
	var err error
	if httpClient, err = rest.HTTPClientFor(config); err == nil {
		if mapper, err = apiutil.NewDynamicRESTMapper(config, httpClient); err == nil {
			c, err = client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, mapper
}

// apply applies copies of manifests of a Kustomization as Flux does, and returns what became of each.
func (f *flux) apply(t *testing.T, options ssa.ApplyOptions, manifests ...*unstructured.Unstructured) (map[string]ssa.Action, error) {
	t.Helper()
	copies := copiesOf(manifests)
	f.SetOwnerLabels(copies, "worker-images", "flux-system")
	changes, err := f.ApplyAllStaged(t.Context(), copies, options)
	if err != nil {
		return nil, err
	}
	out := map[string]ssa.Action{}
	for _, entry := range changes.Entries {
		out[entry.ObjMetadata.Name] = entry.Action
	}
	return out, nil
}

// becomes applies a manifest and fails unless the action is the one that is wanted.
func (f *flux) becomes(t *testing.T, want ssa.Action, manifest *unstructured.Unstructured) {
	t.Helper()
	actions, err := f.apply(t, ssa.DefaultApplyOptions(), manifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]ssa.Action{manifest.GetName(): want}, actions); diff != "" {
		t.Errorf("unexpected actions (-want +got):\n%s", diff)
	}
}

// made applies an image and waits until it is ready.
func (f *flux) made(t *testing.T, schematic string) *unstructured.Unstructured {
	t.Helper()
	image := newImage(schematic)
	t.Cleanup(func() { f.stack.Remove(t, workerImages, "", image.GetName()) })
	f.becomes(t, ssa.CreatedAction, image)
	if err := f.Wait([]*unstructured.Unstructured{image}, patient); err != nil {
		t.Fatal(err)
	}
	return image
}

func copiesOf(manifests []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(manifests))
	for _, manifest := range manifests {
		out = append(out, manifest.DeepCopy())
	}
	return out
}

func TestFluxOwnsAnImage(t *testing.T) {
	f := newFlux(t)
	image := f.made(t, "flux-life")
	before := live(t, f.stack, workerImages, image.GetName())
	if status := conditionOf(before, "Ready")["status"]; status != "True" {
		t.Errorf("Flux goes on while Ready is %v", status)
	}

	f.becomes(t, ssa.UnchangedAction, image)
	labelled := copiesOf([]*unstructured.Unstructured{image})
	f.SetOwnerLabels(labelled, "worker-images", "flux-system")
	drift, _, _, err := f.Diff(t.Context(), labelled[0], ssa.DefaultDiffOptions())
	if err != nil || drift.Action != ssa.UnchangedAction {
		t.Errorf("drift: %v, %v", drift, err)
	}
	if diff := cmp.Diff(before, live(t, f.stack, workerImages, image.GetName())); diff != "" {
		t.Errorf("it changes (-want +got):\n%s", diff)
	}

	image.SetLabels(map[string]string{"team": "a"})
	f.becomes(t, ssa.ConfiguredAction, image)
	f.stack.Patch(t, workerImages, "", image.GetName(), `{"metadata":{"labels":{"team":"b","other":"x"}}}`)
	f.becomes(t, ssa.ConfiguredAction, image)
	want := maps.Clone(image.GetLabels())
	want["other"] = "x" // belongs to somebody else
	maps.Copy(want, f.GetOwnerLabels("worker-images", "flux-system"))
	if diff := cmp.Diff(want, live(t, f.stack, workerImages, image.GetName()).GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	golden, err := f.stack.Resource(objects.DataVolumes, objects.Goldens).Get(t.Context(), image.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"app.kubernetes.io/managed-by": "cozystack"}, golden.GetLabels()); diff != "" {
		t.Errorf("labels of the golden (-want +got):\n%s", diff)
	}
}

func TestFluxPrunesNoImageInUse(t *testing.T) {
	f := newFlux(t)
	image := f.made(t, "flux-used")
	release := use(t, f.stack, "flux-used")
	stale := []*unstructured.Unstructured{image}

	changes, err := f.DeleteAll(t.Context(), stale, ssa.DefaultDeleteOptions())
	refused(t, err, "Used by tenant-a/gitops-flux-used. Move the pools to another image first.")
	if changes == nil || len(changes.Entries) != 1 || changes.Entries[0].Action == ssa.DeletedAction {
		t.Errorf("Flux takes it for gone: %v", changes)
	}
	live(t, f.stack, workerImages, image.GetName())

	release()
	left := ssa.DefaultDeleteOptions()
	left.Exclusions = map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"}
	f.stack.Patch(t, workerImages, "", image.GetName(), `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/prune":"disabled"}}}`)
	if changes, err = f.DeleteAll(t.Context(), stale, left); err != nil || changes.Entries[0].Action != ssa.SkippedAction {
		t.Errorf("an image that is to be left: %v, %v", changes, err)
	}
	changes, err = f.DeleteAll(t.Context(), stale, ssa.DefaultDeleteOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WaitForSetTermination(changes, patient); err != nil {
		t.Error(err)
	}
}

func TestFluxIsToldWhatItCannotApply(t *testing.T) {
	f := newFlux(t)
	image := f.made(t, "flux-forced")
	other := image.DeepCopy()
	objects.Set(other, "v1.13.7", "spec", "version")
	undeclared := newImage("flux-undeclared")
	catalog := objects.New("v1", "ConfigMap", objects.Goldens, "flux-catalog")

	_, err := f.apply(t, ssa.DefaultApplyOptions(), other)
	refused(t, err, "dry-run failed (Invalid)", "the identity of an image does not change")
	// A catalog in the same stage would come too late: all of a stage is tried before any of it is applied.
	_, err = f.apply(t, ssa.DefaultApplyOptions(), undeclared, catalog)
	refused(t, err, "dry-run failed (Invalid)", "the catalog does not declare it")
	if _, err := f.stack.Resource(objects.ConfigMaps, objects.Goldens).Get(t.Context(), catalog.GetName(), metav1.GetOptions{}); err == nil {
		t.Error("the catalog was applied before the image was tried")
	}

	force := ssa.DefaultApplyOptions()
	force.Force, force.WaitInterval = true, 100*time.Millisecond
	release := use(t, f.stack, "flux-forced")
	forced := other.DeepCopy()
	forced.SetAnnotations(map[string]string{"kustomize.toolkit.fluxcd.io/force": "enabled"})
	selected := ssa.DefaultApplyOptions()
	selected.ForceSelector = forced.GetAnnotations()
	_, err = f.apply(t, selected, forced)
	refused(t, err, "immutable field detected, failed to delete object", "Move the pools to another image first.")
	_, err = f.apply(t, force, other)
	refused(t, err, "immutable field detected, failed to delete object", "Move the pools to another image first.")
	live(t, f.stack, workerImages, image.GetName())
	release()
	_, err = f.apply(t, force, other)
	refused(t, err, "dry-run failed (Invalid)", "the name of this image is talos-worker-flux-forced-v1.13.7")
	if _, err := f.stack.Resource(workerImages, "").Get(t.Context(), image.GetName(), metav1.GetOptions{}); err == nil {
		t.Error("force leaves the image, and the page says that it does not")
	}
}

func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it succeeds")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func TestFluxWaitsForAnImportAndNotForWhatDoesNotCome(t *testing.T) {
	f := newFlux(t)
	for name, test := range map[string]struct {
		image string
		limit time.Duration
		want  string
	}{
		"a class that does not exist": {"talos-worker-gpu-amd-v1.13.6", time.Minute, "failed early due to stalled resources: [WorkerImage/talos-worker-gpu-amd-v1.13.6 status: 'Failed']"},
		"an import that keeps failing": {"talos-worker-unpublished-zfs-v1.13.6", 2 * time.Second,
			"timeout waiting for: [WorkerImage/talos-worker-unpublished-zfs-v1.13.6 status: 'InProgress']"},
	} {
		t.Run(name, func(t *testing.T) {
			options := patient
			options.Timeout = test.limit
			refused(t, f.Wait([]*unstructured.Unstructured{objects.New("images.cozystack.io/v1alpha1", "WorkerImage", "", test.image)}, options), test.want)
		})
	}
}

func TestAnImportNeverStallsOnItsWayToReady(t *testing.T) {
	f := newFlux(t)
	image := newImage("steady-flux")
	t.Cleanup(func() { f.stack.Remove(t, workerImages, "", image.GetName()) })
	changes, err := f.stack.Resource(workerImages, "").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + image.GetName()})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	f.becomes(t, ssa.CreatedAction, image)
	var seen []status.Status
	for event := range changes.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("the watch sends %v", event)
		}
		computed, err := status.Compute(object)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, computed.Status)
		if computed.Status == status.CurrentStatus {
			break
		}
		if computed.Status != status.InProgressStatus {
			t.Errorf("Flux takes it for %s: %s", computed.Status, computed.Message)
		}
	}
	if len(seen) < 3 {
		t.Errorf("it goes through %v only", seen)
	}
}

// The samples have an entry that is declared as it should be, and one that is declared twice.
func TestTheHealthExpressionsOfThePageTellGoodEntriesFromBad(t *testing.T) {
	var checks []kustomize.CustomHealthCheck
	for _, kustomization := range manifests(t, "flux.md", "Kustomization") {
		checks = append(checks, healthExpressions(t, kustomization)...)
	}
	reader, err := cel.NewStatusReader(checks)
	if err != nil {
		t.Fatal(err)
	}
	f := newFlux(t, reader)
	for name, want := range map[string]string{
		"talos-worker-gpu-nvidia-open-v1.13.7": "",
		"talos-worker-gpu-nvidia-v1.13.6":      "",
		"talos-worker-zfs-v1.13.6":             "failed early due to stalled resources: [CatalogEntry/talos-worker-zfs-v1.13.6 status: 'Failed']",
		"talos-worker-retired-v1.12.4":         "timeout waiting for: [CatalogEntry/talos-worker-retired-v1.12.4 status: 'InProgress']",
	} {
		t.Run(name, func(t *testing.T) {
			options := patient
			options.Timeout = 2 * time.Second
			err := f.Wait([]*unstructured.Unstructured{objects.New("images.cozystack.io/v1alpha1", "CatalogEntry", "", name)}, options)
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func healthExpressions(t *testing.T, kustomization *unstructured.Unstructured) []kustomize.CustomHealthCheck {
	t.Helper()
	var spec struct {
		Checks []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(kustomization.Object["spec"].(map[string]any), &spec); err != nil {
		t.Fatal(err)
	}
	return spec.Checks
}
