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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// The marks by which Argo CD knows what belongs to an Application, by annotation or by label.
const (
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
	trackingLabel      = "app.kubernetes.io/instance"
	manager            = "argocd-controller"

	betweenRounds = 200 * time.Millisecond
)

// argo is what Argo CD's application controller does with the manifests of an Application.
type argo struct {
	stack   *stack.Stack
	kubectl *kube.KubectlCmd
	cluster cache.ClusterCache
	app     string
	options []sync.SyncOpt
}

func newArgo(t *testing.T, app string, options ...sync.SyncOpt) *argo {
	t.Helper()
	a := &argo{
		stack:   shared.stack.Get(t),
		kubectl: &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}},
		app:     app,
		options: append(options, sync.WithHealthOverride(healthScript(t)), sync.WithLogr(logr.Discard()), sync.WithPrune(true),
			sync.WithServerSideApplyManager(manager)),
	}
	owner := func(o *unstructured.Unstructured, _ bool) (info any, cacheManifest bool) {
		owner, _, found := strings.Cut(o.GetAnnotations()[trackingAnnotation], ":")
		return owner, found
	}
	a.cluster = cache.NewClusterCache(a.stack.RESTConfig(), cache.SetLogr(logr.Discard()), cache.SetPopulateResourceInfoHandler(owner))
	if err := a.cluster.EnsureSynced(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.cluster.Invalidate() })
	return a
}

// operation is how far a sync has got.
type operation struct {
	phase   common.OperationPhase
	message string
	results []common.ResourceSyncResult
	started metav1.Time
}

// sync makes the cluster what the manifests say, and returns what became of each object.
func (a *argo) sync(t *testing.T, manifests ...*unstructured.Unstructured) map[string]common.ResourceSyncResult {
	t.Helper()
	op := operation{phase: common.OperationRunning, started: metav1.Now()}
	err := wait.PollUntilContextTimeout(t.Context(), betweenRounds, await.Patience, true, func(context.Context) (bool, error) {
		err := a.round(&op, manifests)
		return op.phase.Completed(), err
	})
	if err != nil {
		t.Fatalf("%v: %s", err, op.message)
	}
	out := map[string]common.ResourceSyncResult{}
	for _, result := range op.results {
		out[result.ResourceKey.Name] = result
	}
	return out
}

// round takes a sync further, as often as the controller is told of a change.
func (a *argo) round(op *operation, manifests []*unstructured.Unstructured) error {
	targets := copiesOf(manifests)
	managed, err := a.cluster.GetManagedLiveObjs(targets, func(r *cache.Resource) bool { return r.Info == a.app })
	if err != nil {
		return err
	}
	reconciled := sync.Reconcile(targets, managed, "tenant-a", a.cluster)
	config := a.stack.RESTConfig()
	options := append(slices.Clip(a.options), sync.WithInitialState(op.phase, op.message, op.results, op.started))
	syncing, cleanUp, err := sync.NewSyncContext("main", reconciled, config, config, a.kubectl, "tenant-a", options...)
	if err != nil {
		return err
	}
	defer cleanUp()
	syncing.Sync()
	op.phase, op.message, op.results = syncing.GetState()
	return nil
}

// tracked marks a manifest as Argo CD does.
func (a *argo) tracked(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	kind := manifest.GroupVersionKind()
	manifest.SetAnnotations(map[string]string{
		trackingAnnotation: fmt.Sprintf("%s:%s/%s:tenant-a/%s", a.app, kind.Group, kind.Kind, manifest.GetName()),
	})
	manifest.SetLabels(map[string]string{trackingLabel: a.app})
	return manifest
}

func wave(manifest *unstructured.Unstructured, number string) *unstructured.Unstructured {
	annotations := manifest.GetAnnotations()
	annotations[common.AnnotationSyncWave] = number
	manifest.SetAnnotations(annotations)
	return manifest
}

func TestArgoOwnsAnImage(t *testing.T) {
	for name, serverSide := range map[string]bool{"server-side apply": true, "client-side apply": false} {
		t.Run(name, func(t *testing.T) {
			a := newArgo(t, "images", sync.WithServerSideApply(serverSide))
			image := a.tracked(newImage("argo-life"))
			t.Cleanup(func() { a.stack.Remove(t, workerImages, "", image.GetName()) })

			if result := a.sync(t, image)[image.GetName()]; result.Status != common.ResultCodeSynced {
				t.Fatalf("%s: %s", result.Status, result.Message)
			}
			awaitCondition(t, a.stack, image.GetName(), "Ready", "True")
			before := live(t, a.stack, workerImages, image.GetName())
			got, want := before.GetAnnotations(), image.GetAnnotations()
			delete(got, "kubectl.kubernetes.io/last-applied-configuration")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(image.GetLabels(), before.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}

			a.inSync(t, image)
			a.sync(t, image)
			if diff := cmp.Diff(before, live(t, a.stack, workerImages, image.GetName())); diff != "" {
				t.Errorf("a second sync changes it (-want +got):\n%s", diff)
			}
			a.drifts(t, image)
		})
	}
}

// inSync fails if any of Argo CD's ways to compare finds a difference.
func (a *argo) inSync(t *testing.T, image *unstructured.Unstructured) {
	t.Helper()
	for way, options := range a.waysToCompare(t) {
		if result := a.compare(t, image, options...); result.Modified {
			t.Errorf("%s: out of sync\nlive: %s\nwant: %s", way, result.NormalizedLive, result.PredictedLive)
		}
	}
}

// drifts fails if one of Argo CD's ways to compare does not see what others changed.
func (a *argo) drifts(t *testing.T, image *unstructured.Unstructured) {
	t.Helper()
	a.stack.Patch(t, workerImages, "", image.GetName(), `{"metadata":{"labels":{"`+trackingLabel+`":"other"}}}`)
	for way, options := range a.waysToCompare(t) {
		if result := a.compare(t, image, options...); !result.Modified {
			t.Errorf("%s: a changed label is no drift", way)
		}
	}
	a.sync(t, image)
	a.inSync(t, image)
}

func (a *argo) compare(t *testing.T, image *unstructured.Unstructured, options ...diff.Option) *diff.DiffResult {
	t.Helper()
	result, err := diff.Diff(image.DeepCopy(), live(t, a.stack, workerImages, image.GetName()), append(options, diff.WithLogr(logr.Discard()))...)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (a *argo) waysToCompare(t *testing.T) map[string][]diff.Option {
	t.Helper()
	_, parser, err := a.kubectl.LoadOpenAPISchema(a.stack.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	applier, cleanUp, err := a.kubectl.ManageServerSideDiffDryRuns(a.stack.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cleanUp)
	return map[string][]diff.Option{
		"three-way diff":        nil,
		"structured merge diff": {diff.WithStructuredMergeDiff(true), diff.WithGVKParser(parser), diff.WithManager(manager)},
		"server-side diff": {
			diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier)),
			diff.WithGVKParser(parser), diff.WithManager(manager), diff.WithIgnoreMutationWebhook(true),
		},
	}
}

func TestArgoPrunesNoImageInUse(t *testing.T) {
	a := newArgo(t, "used", sync.WithServerSideApply(true))
	image := a.tracked(newImage("argo-used"))
	t.Cleanup(func() { a.stack.Remove(t, workerImages, "", image.GetName()) })
	a.sync(t, image)
	release := use(t, a.stack, "argo-used")

	refusal := a.pruned(t, image.GetName(), common.ResultCodeSyncFailed)
	if !strings.Contains(refusal, "Used by tenant-a/gitops-argo-used. Move the pools") {
		t.Errorf("it says %s", refusal)
	}
	live(t, a.stack, workerImages, image.GetName())

	a.stack.Patch(t, workerImages, "", image.GetName(), `{"metadata":{"annotations":{"argocd.argoproj.io/sync-options":"Prune=false,Delete=false"}}}`)
	a.pruned(t, image.GetName(), common.ResultCodePruneSkipped)
	release()
	a.pruned(t, image.GetName(), common.ResultCodePruneSkipped)
	a.stack.Patch(t, workerImages, "", image.GetName(), `{"metadata":{"annotations":{"argocd.argoproj.io/sync-options":null}}}`)
	a.pruned(t, image.GetName(), common.ResultCodePruned)
}

// pruned syncs with nothing until that ends as it should, since Argo CD hears of changes later, and returns the message.
func (a *argo) pruned(t *testing.T, name string, want common.ResultCode) (message string) {
	t.Helper()
	await.For(t, fmt.Sprintf("%s to be %s", name, want), func(context.Context) error {
		result := a.sync(t)[name]
		message = result.Message
		if result.Status != want {
			return fmt.Errorf("it is %s: %s", result.Status, message)
		}
		return nil
	})
	return message
}

func TestArgoIsToldWhatItCannotApply(t *testing.T) {
	a := newArgo(t, "told", sync.WithServerSideApply(true))
	image := a.tracked(newImage("argo-undeclared"))
	result := a.sync(t, image)[image.GetName()]
	if result.Status != common.ResultCodeSyncFailed || !strings.Contains(result.Message, "the catalog does not declare it") {
		t.Errorf("%s: %s", result.Status, result.Message)
	}
}

func TestACatalogOfAnEarlierWaveCountsForItsImages(t *testing.T) {
	image := newImage("argo-added")
	entry := func() error {
		return await.Poll(t.Context(), func(ctx context.Context) error {
			_, err := shared.stack.Get(t).Resource(catalogEntries, "").Get(ctx, image.GetName(), metav1.GetOptions{})
			return err
		})
	}
	// Argo CD waits for two seconds after each wave.
	betweenWaves := func(common.SyncPhase, int, bool) error { return entry() }
	a := newArgo(t, "catalog", sync.WithServerSideApply(true), sync.WithSyncWaveHook(betweenWaves))
	text, err := catalogText(t.Context(), a.stack)
	if err != nil {
		t.Fatal(err)
	}
	catalog := objects.New("v1", "ConfigMap", objects.Goldens, catalogName)
	objects.Set(catalog, text+"- {schematicID: argo-added, version: "+objects.Release+"}\n", "data", catalogKey)
	t.Cleanup(func() { a.stack.Remove(t, workerImages, "", image.GetName()) })

	for name, result := range a.sync(t, wave(a.tracked(image), "1"), wave(a.tracked(catalog), "0")) {
		if result.Status != common.ResultCodeSynced {
			t.Errorf("%s: %s: %s", name, result.Status, result.Message)
		}
	}
}

func TestWhatArgoIsForcedTo(t *testing.T) {
	a := newArgo(t, "forced", sync.WithServerSideApply(true))
	image := a.tracked(newImage("argo-forced"))
	t.Cleanup(func() { a.stack.Remove(t, workerImages, "", image.GetName()) })
	a.sync(t, image)
	awaitCondition(t, a.stack, image.GetName(), "Ready", "True")
	uid := live(t, a.stack, workerImages, image.GetName()).GetUID()
	objects.Set(image, "v1.13.7", "spec", "version")

	for _, test := range []struct {
		options, message string
		stays            bool
	}{
		{"ServerSideApply=true", "the identity of an image does not change", true},
		{"Replace=true", "the identity of an image does not change", true},
		{"Force=true,Replace=true", "the name of this image is talos-worker-argo-forced-v1.13.7", false},
	} {
		annotations := image.GetAnnotations()
		annotations[common.AnnotationSyncOptions] = test.options
		image.SetAnnotations(annotations)
		result := a.sync(t, image)[image.GetName()]
		if result.Status != common.ResultCodeSyncFailed || !strings.Contains(result.Message, test.message) {
			t.Errorf("%s: %s: %s", test.options, result.Status, result.Message)
		}
		after, err := a.stack.Resource(workerImages, "").Get(t.Context(), image.GetName(), metav1.GetOptions{})
		if stays := err == nil && after.GetUID() == uid; stays != test.stays {
			t.Errorf("%s: the image stays: %t, %v", test.options, stays, err)
		}
	}
}

// Guards: the health check, without which a sync goes on at once.
func TestAPoolOfALaterWaveWaitsForItsImage(t *testing.T) {
	a := newArgo(t, "waves", sync.WithServerSideApply(true))
	image := wave(a.tracked(newImage("steady-argo")), "0")
	pool := wave(a.tracked(objects.NewPool("tenant-a", "gitops", "wave", objects.ClassName, "steady-argo")), "1")
	t.Cleanup(func() { a.stack.Remove(t, workerImages, "", image.GetName()) })
	t.Cleanup(func() { a.stack.Remove(t, objects.Pools, pool.GetNamespace(), pool.GetName()) })

	for name, result := range a.sync(t, pool, image) {
		if result.Status != common.ResultCodeSynced {
			t.Errorf("%s: %s: %s", name, result.Status, result.Message)
		}
	}
	made, err := a.stack.Resource(objects.Pools, pool.GetNamespace()).Get(t.Context(), pool.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := conditionOf(live(t, a.stack, workerImages, image.GetName()), "Ready")
	since, err := time.Parse(time.RFC3339, fmt.Sprint(ready["lastTransitionTime"]))
	if err != nil {
		t.Fatal(err)
	}
	if ready["status"] != "True" || made.GetCreationTimestamp().Time.Before(since) {
		t.Errorf("the pool is made at %s, and the image ready since %s: %v", made.GetCreationTimestamp(), since, ready["status"])
	}
}
