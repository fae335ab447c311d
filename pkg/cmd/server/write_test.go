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

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	applyv1alpha1 "github.com/cozystack/workerimage-apiserver/pkg/generated/applyconfiguration/images/v1alpha1"
	clientv1alpha1 "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
)

// writers is how many clients write at the same time, each an image of its own.
const writers = 4

// startWritable runs a server on a snapshot without goldens. Of the images that the catalog declares, one is
// asked for by a pool at zero workers.
func startWritable(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{folder: t.TempDir()}
	f.put(t, "class.yaml", `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: replicated, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: linstor.csi.linbit.com
`)
	f.put(t, "pools.yaml", `
apiVersion: apps.cozystack.io/v1alpha1
kind: KubernetesNodes
metadata: {namespace: tenant-a, name: k1-md0}
spec: {cluster: k1, minReplicas: 0, osImage: {builtin: {schematicID: used, version: v1.13.6}}}
`)
	f.putCatalog(t, `
images:
- {schematicID: w0, version: v1.13.6}
- {schematicID: w1, version: v1.13.6}
- {schematicID: w2, version: v1.13.6}
- {schematicID: w3, version: v1.13.6}
- {schematicID: used, version: v1.13.6}
- {schematicID: insecure, version: v1.13.6, imageFactoryURL: 'http://mirror:8080'}
- {schematicID: nowhere, version: v1.13.6, storageClass: missing}
`)
	f.serve(t)
	return f
}

func (f *fixture) images() clientv1alpha1.WorkerImageInterface {
	return f.client.ImagesV1alpha1().WorkerImages()
}

func nameOf(schematic string) string { return "talos-worker-" + schematic + "-v1.13.6" }

// workerImage is what a user creates. The name follows from the spec.
func workerImage(schematic string) *v1alpha1.WorkerImage {
	return &v1alpha1.WorkerImage{Spec: v1alpha1.WorkerImageSpec{SchematicID: schematic, Version: "v1.13.6"}}
}

func (f *fixture) create(t *testing.T, schematic string) *v1alpha1.WorkerImage {
	t.Helper()
	image, err := f.images().Create(t.Context(), workerImage(schematic), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func (f *fixture) get(t *testing.T, schematic string) *v1alpha1.WorkerImage {
	t.Helper()
	image, err := f.images().Get(t.Context(), nameOf(schematic), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// version is that of the list: it moves with everything that a watch shows.
func (f *fixture) version(t *testing.T) string {
	t.Helper()
	list, err := f.images().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}

func TestAWriteShowsInTheNextReadsAThousandTimes(t *testing.T) {
	f := startWritable(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*waitTimeout)
	defer cancel()
	var running sync.WaitGroup
	for writer := range writers {
		running.Go(func() {
			for round := range 1000 / writers {
				if err := writeAndRead(ctx, f.images(), fmt.Sprintf("w%d", writer)); err != nil {
					t.Errorf("writer %d, round %d: %v", writer, round, err)
					return
				}
			}
		})
	}
	running.Wait()
}

// writeAndRead creates an image and deletes it, and reads after each in every way there is.
func writeAndRead(ctx context.Context, images clientv1alpha1.WorkerImageInterface, schematic string) error {
	before, err := images.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	created, err := images.Create(ctx, workerImage(schematic), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	got, err := images.Get(ctx, created.Name, metav1.GetOptions{})
	if err != nil || got.ResourceVersion != created.ResourceVersion || got.UID != created.UID {
		return fmt.Errorf("get after create: %w; created %v, got %v", err, created, got)
	}
	if there, err := isListed(ctx, images, created); err != nil || !there {
		return fmt.Errorf("list after create: it is there: %t, %w", there, err)
	}
	// Watched from before the image comes, from itself it goes.
	if err := expectEvent(ctx, images, before.ResourceVersion, watch.Added, created); err != nil {
		return fmt.Errorf("watch after create: %w", err)
	}
	if err := images.Delete(ctx, created.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if got, err := images.Get(ctx, created.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("get after delete: %v, %w", got, err)
	}
	if there, err := isListed(ctx, images, created); err != nil || there {
		return fmt.Errorf("list after delete: it is there: %t, %w", there, err)
	}
	if err := expectEvent(ctx, images, created.ResourceVersion, watch.Deleted, created); err != nil {
		return fmt.Errorf("watch after delete: %w", err)
	}
	return nil
}

func isListed(ctx context.Context, images clientv1alpha1.WorkerImageInterface, image *v1alpha1.WorkerImage) (bool, error) {
	list, err := images.List(ctx, metav1.ListOptions{ResourceVersion: image.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, func(i v1alpha1.WorkerImage) bool { return i.UID == image.UID }), nil
}

// expectEvent watches from a version and wants one event to be the first.
func expectEvent(ctx context.Context, images clientv1alpha1.WorkerImageInterface, version string, kind watch.EventType, image *v1alpha1.WorkerImage) error {
	w, err := images.Watch(ctx, metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=" + image.Name})
	if err != nil {
		return err
	}
	defer w.Stop()
	event := <-w.ResultChan()
	got, ok := event.Object.(*v1alpha1.WorkerImage)
	if event.Type != kind || !ok || got.UID != image.UID {
		return fmt.Errorf("%s %v", event.Type, event.Object)
	}
	return nil
}

func TestOfFiftyCreatesAtOnceOneMakesTheImage(t *testing.T) {
	f := startWritable(t)
	version := f.version(t)
	answers := make([]error, 50)
	var running sync.WaitGroup
	for i := range answers {
		running.Go(func() { _, answers[i] = f.images().Create(t.Context(), workerImage("w0"), metav1.CreateOptions{}) })
	}
	running.Wait()
	made := 0
	for _, err := range answers {
		switch {
		case err == nil:
			made++
		case !apierrors.IsAlreadyExists(err):
			t.Errorf("got %v", err)
		}
	}
	if made != 1 {
		t.Errorf("%d say that they made it", made)
	}
	image := f.get(t, "w0")
	if err := expectEvent(t.Context(), f.images(), version, watch.Added, image); err != nil {
		t.Errorf("another was there before: %v", err)
	}
}

func TestWhatIsCreatedIsServedAsItWasAsked(t *testing.T) {
	f := startWritable(t)
	asked := workerImage("w0")
	asked.Labels, asked.Annotations = map[string]string{"team": "a"}, map[string]string{"cdi.kubevirt.io/storage.usePopulator": "false"}
	asked.Status.Phase = v1alpha1.WorkerImageReady
	created, err := f.images().Create(t.Context(), asked, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.get(t, "w0"), created); diff != "" {
		t.Errorf("what was answered differs from what is there (-want +got):\n%s", diff)
	}
	if created.Name != nameOf("w0") || created.Spec != asked.Spec || created.Generation != 1 || created.UID == "" || created.CreationTimestamp.IsZero() {
		t.Errorf("created %+v", created)
	}
	if !cmp.Equal(created.Labels, asked.Labels) || !cmp.Equal(created.Annotations, asked.Annotations) {
		t.Errorf("labels %v, annotations %v", created.Labels, created.Annotations)
	}
	if created.Status.Phase != v1alpha1.WorkerImagePending || created.Status.ObservedGeneration != 1 || len(created.Status.Conditions) == 0 {
		t.Errorf("status %+v", created.Status)
	}
}

// send sends a request as it is, and returns the answer with its body.
func (f *fixture) send(t *testing.T, method, path, contentType, body string) (*http.Response, string) {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(f.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, f.config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(answer)
}

func manifest(schematic string, metadata string) string {
	return fmt.Sprintf(`{"apiVersion": "images.cozystack.io/v1alpha1", "kind": "WorkerImage", "metadata": {%s},
		"spec": {"schematicID": %q, "version": "v1.13.6"}}`, metadata, schematic)
}

func TestCreatesThatAreRefused(t *testing.T) {
	f := startWritable(t)
	version := f.version(t)
	for _, test := range []struct {
		name, body string
		code       int
		says       []string
	}{
		{"an image that is not in the catalog", manifest("w9", ""), 422, []string{"spec: Invalid value", "schematicID w9, version v1.13.6", "(w0, v1.13.6)"}},
		{"another name", manifest("w0", `"name": "w0"`), 422, []string{"metadata.name: Invalid value", nameOf("w0")}},
		{"a name to be generated", manifest("w0", `"generateName": "w0-"`), 422, []string{"metadata.generateName: Forbidden"}},
		{"a class that does not exist", manifest("nowhere", ""), 422, []string{"\"missing\"", "does not exist"}},
		{"finalizers", manifest("w0", `"finalizers": ["example.org/keep"]`), 422, []string{"metadata.finalizers: Forbidden"}},
		{
			"an owner", manifest("w0", `"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]`),
			422, []string{"metadata.ownerReferences: Forbidden"},
		},
		{
			"annotations that are too large", manifest("w0", fmt.Sprintf(`"annotations": {"note": %q}`, strings.Repeat("x", 70<<10))),
			422, []string{"at most 65536 can be kept"},
		},
		{"no spec", `{"apiVersion": "images.cozystack.io/v1alpha1", "kind": "WorkerImage"}`, 422, []string{"spec.schematicID: Required", "spec.version: Required"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, query := range []string{"", "?dryRun=All"} {
				res, answer := f.send(t, http.MethodPost, resource+query, "application/json", test.body)
				if res.StatusCode != test.code {
					t.Errorf("%s: %d %s", query, res.StatusCode, answer)
				}
				var status metav1.Status
				if err := json.Unmarshal([]byte(answer), &status); err != nil {
					t.Fatal(err)
				}
				for _, words := range test.says {
					if !strings.Contains(status.Message, words) {
						t.Errorf("%s: %q does not say %q", query, status.Message, words)
					}
				}
			}
		})
	}
	if now := f.version(t); now != version {
		t.Errorf("something was written: version %s after %s", now, version)
	}
}

func TestAPlainHTTPFactoryIsWarnedOf(t *testing.T) {
	f := startWritable(t)
	res, answer := f.send(t, http.MethodPost, resource, "application/json", manifest("insecure", ""))
	if res.StatusCode != http.StatusCreated || !strings.Contains(res.Header.Get("Warning"), "plain http") {
		t.Errorf("%d, Warning: %s, %s", res.StatusCode, res.Header.Get("Warning"), answer)
	}
	res, _ = f.send(t, http.MethodPost, resource, "application/json", manifest("w0", ""))
	if res.StatusCode != http.StatusCreated || res.Header.Get("Warning") != "" {
		t.Errorf("over https: %d, Warning: %s", res.StatusCode, res.Header.Get("Warning"))
	}
}

func TestACreateOfAnImageOnItsWayOutIsToBeTriedAgain(t *testing.T) {
	f := startWritable(t)
	f.put(t, "leaving.yaml", fmt.Sprintf(`
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  namespace: cozy-public
  name: %s
  uid: leaving
  creationTimestamp: "2026-11-01T10:00:00Z"
  deletionTimestamp: "2026-11-01T11:00:00Z"
  deletionGracePeriodSeconds: 0
  finalizers: [example.org/wait]
status: {phase: Succeeded}
`, nameOf("w0")))
	eventually(t, "it is on its way out", func(ctx context.Context) (bool, error) {
		image, err := f.images().Get(ctx, nameOf("w0"), metav1.GetOptions{})
		return err == nil && image.Status.Phase == v1alpha1.WorkerImageTerminating, nil
	})
	res, answer := f.send(t, http.MethodPost, resource, "application/json", manifest("w0", ""))
	if res.StatusCode != http.StatusConflict || res.Header.Get("Retry-After") != "5" || !strings.Contains(answer, "is being deleted") {
		t.Errorf("%d, Retry-After: %s, %s", res.StatusCode, res.Header.Get("Retry-After"), answer)
	}
	if err := f.images().Delete(t.Context(), nameOf("w0"), metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete once more: %v", err)
	}
}

func TestADryRunLeavesNoTrace(t *testing.T) {
	f := startWritable(t)
	f.create(t, "w1")
	version := f.version(t)
	dryRun := []string{metav1.DryRunAll}
	image, err := f.images().Create(t.Context(), workerImage("w0"), metav1.CreateOptions{DryRun: dryRun})
	if err != nil || image.Name != nameOf("w0") || image.UID == "" {
		t.Errorf("create: %v, %v", image, err)
	}
	if _, err := f.images().Create(t.Context(), workerImage("w1"), metav1.CreateOptions{DryRun: dryRun}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create of an image that is there: %v", err)
	}
	labelled := f.get(t, "w1")
	labelled.Labels = map[string]string{"team": "a"}
	if got, err := f.images().Update(t.Context(), labelled, metav1.UpdateOptions{DryRun: dryRun}); err != nil || got.Labels["team"] != "a" {
		t.Errorf("update: %v, %v", got, err)
	}
	if got, err := f.images().Apply(t.Context(), manifestOf("w0", nil), metav1.ApplyOptions{DryRun: dryRun, FieldManager: "test"}); err != nil || got.Name != nameOf("w0") {
		t.Errorf("apply of a new one: %v, %v", got, err)
	}
	if got, err := f.images().Apply(t.Context(), manifestOf("w1", map[string]string{"team": "a"}), metav1.ApplyOptions{DryRun: dryRun, FieldManager: "test"}); err != nil || got.Labels["team"] != "a" {
		t.Errorf("apply: %v, %v", got, err)
	}
	if err := f.images().Delete(t.Context(), nameOf("w1"), metav1.DeleteOptions{DryRun: dryRun}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := f.images().DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{}); err != nil {
		t.Errorf("deletecollection: %v", err)
	}
	if now := f.version(t); now != version {
		t.Errorf("something was written: version %s after %s", now, version)
	}
}

// manifestOf is a WorkerImage as it is applied.
func manifestOf(schematic string, labels map[string]string) *applyv1alpha1.WorkerImageApplyConfiguration {
	return applyv1alpha1.WorkerImage(nameOf(schematic)).WithLabels(labels).
		WithSpec(applyv1alpha1.WorkerImageSpec().WithSchematicID(schematic).WithVersion("v1.13.6"))
}

func (f *fixture) apply(t *testing.T, manager string, image *applyv1alpha1.WorkerImageApplyConfiguration) *v1alpha1.WorkerImage {
	t.Helper()
	applied, err := f.images().Apply(t.Context(), image, metav1.ApplyOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func TestServerSideApply(t *testing.T) {
	f := startWritable(t)
	two := map[string]string{"team": "a", "tier": "gold"}
	first := f.apply(t, "flux", manifestOf("w0", two))
	if first.Name != nameOf("w0") || !cmp.Equal(first.Labels, two) {
		t.Fatalf("created %v", first)
	}
	if again := f.apply(t, "flux", manifestOf("w0", two)); again.ResourceVersion != first.ResourceVersion {
		t.Errorf("the same again moves the version from %s to %s", first.ResourceVersion, again.ResourceVersion)
	}

	one := map[string]string{"team": "a"}
	changed := f.apply(t, "flux", manifestOf("w0", one))
	if diff := cmp.Diff(one, changed.Labels); diff != "" || changed.UID != first.UID || changed.Generation != 1 {
		t.Errorf("a label that is no longer applied is not removed: %s (-want +got):\n%s", changed.UID, diff)
	}
	if diff := cmp.Diff(f.get(t, "w0"), changed); diff != "" {
		t.Errorf("what was answered differs from what is there (-want +got):\n%s", diff)
	}

	other := manifestOf("w0", map[string]string{"team": "b"})
	_, err := f.images().Apply(t.Context(), other, metav1.ApplyOptions{FieldManager: "terraform"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "flux") || !strings.Contains(err.Error(), ".metadata.labels.team") {
		t.Errorf("another manager: got %v, want a conflict with the first about the label", err)
	}
	forced, err := f.images().Apply(t.Context(), other, metav1.ApplyOptions{FieldManager: "terraform", Force: true})
	if err != nil || forced.Labels["team"] != "b" {
		t.Errorf("by force: %v, %v", forced, err)
	}
	if beside := f.apply(t, "argocd", manifestOf("w0", map[string]string{"tracking": "x"})); beside.Labels["team"] != "b" || beside.Labels["tracking"] != "x" {
		t.Errorf("two managers of different labels: %v", beside.Labels)
	}
}

func TestAnAppliedStatusIsIgnored(t *testing.T) {
	f := startWritable(t)
	first := f.apply(t, "flux", manifestOf("w0", nil))
	withStatus := manifestOf("w0", nil).WithStatus(applyv1alpha1.WorkerImageStatus().WithPhase(v1alpha1.WorkerImageReady).WithPoolCount(7))
	again := f.apply(t, "flux", withStatus)
	if again.Status.Phase != v1alpha1.WorkerImagePending || again.ResourceVersion != first.ResourceVersion {
		t.Errorf("phase %s, version %s after %s", again.Status.Phase, again.ResourceVersion, first.ResourceVersion)
	}
	for _, entry := range again.ManagedFields {
		if entry.Subresource != "" || strings.Contains(string(entry.FieldsV1.GetRawBytes()), "f:status") {
			t.Errorf("somebody owns the status: %s", entry.FieldsV1.GetRawBytes())
		}
	}
}

func TestApplyTakesNoManagedFields(t *testing.T) {
	f := startWritable(t)
	body := manifest("w0", fmt.Sprintf(`"name": %q, "managedFields": [{"manager": "x", "operation": "Apply", "apiVersion": "images.cozystack.io/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": {}}]`, nameOf("w0")))
	res, answer := f.send(t, http.MethodPatch, resource+"/"+nameOf("w0")+"?fieldManager=x", "application/apply-patch+yaml", body)
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(answer, "metadata.managedFields must be nil") {
		t.Errorf("%d %s", res.StatusCode, answer)
	}
}

// kubectl apply keeps what it applied in an annotation, and sends a patch only for what differs from it.
func TestAPatchThatChangesNothingWritesNothing(t *testing.T) {
	f := startWritable(t)
	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	asked := workerImage("w0")
	asked.Annotations = map[string]string{lastApplied: `{"labels":{"team":"a"}}`}
	asked.Labels = map[string]string{"team": "a"}
	created, err := f.images().Create(t.Context(), asked, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(kind types.PatchType, body string, dryRun ...string) *v1alpha1.WorkerImage {
		t.Helper()
		patched, err := f.images().Patch(t.Context(), created.Name, kind, []byte(body),
			metav1.PatchOptions{FieldManager: "kubectl-client-side-apply", DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		return patched
	}
	for _, same := range []string{`{}`, `{"metadata":{"labels":{"team":"a"}}}`, `{"spec":{"version":"v1.13.6"}}`, `{"status":{"phase":"Ready"}}`} {
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			if diff := cmp.Diff(created, patch(types.MergePatchType, same, dryRun...)); diff != "" {
				t.Errorf("%s, dry run %v, changes it (-want +got):\n%s", same, dryRun, diff)
			}
		}
	}
	changed := patch(types.MergePatchType, `{"metadata":{"labels":{"team":null},"annotations":{"note":"b"}}}`)
	if changed.ResourceVersion == created.ResourceVersion || len(changed.Labels) != 0 || changed.Annotations["note"] != "b" || changed.Annotations[lastApplied] == "" {
		t.Errorf("labels %v, annotations %v", changed.Labels, changed.Annotations)
	}
	jsonPatched := patch(types.JSONPatchType, `[{"op": "remove", "path": "/metadata/annotations/note"}]`)
	if _, there := jsonPatched.Annotations["note"]; there {
		t.Errorf("annotations %v", jsonPatched.Annotations)
	}
}

func TestUpdates(t *testing.T) {
	f := startWritable(t)
	created := f.create(t, "w0")

	labelled := created.DeepCopy()
	labelled.Labels = map[string]string{"team": "a"}
	labelled.Status = v1alpha1.WorkerImageStatus{Phase: v1alpha1.WorkerImageReady}
	updated, err := f.images().Update(t.Context(), labelled, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Labels["team"] != "a" || !cmp.Equal(updated.Status, created.Status) || updated.Generation != 1 || updated.UID != created.UID {
		t.Errorf("updated %+v", updated)
	}
	if diff := cmp.Diff(f.get(t, "w0"), updated); diff != "" {
		t.Errorf("what was answered differs from what is there (-want +got):\n%s", diff)
	}
	if again, err := f.images().Update(t.Context(), updated, metav1.UpdateOptions{}); err != nil || again.ResourceVersion != updated.ResourceVersion {
		t.Errorf("the same again: %v, %v", again, err)
	}
	if _, err := f.images().Update(t.Context(), labelled, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("of an old version: %v", err)
	}
	unconditional := updated.DeepCopy()
	unconditional.ResourceVersion, unconditional.Labels = "", map[string]string{"team": "b"}
	if got, err := f.images().Update(t.Context(), unconditional, metav1.UpdateOptions{}); err != nil || got.Labels["team"] != "b" {
		t.Errorf("of whatever version: %v, %v", got, err)
	}
	missing := workerImage("w1")
	missing.Name = nameOf("w1")
	if _, err := f.images().Update(t.Context(), missing, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("of an image that is not there: %v", err)
	}
}

func TestTheSpecDoesNotChange(t *testing.T) {
	f := startWritable(t)
	f.apply(t, "flux", manifestOf("w0", nil))
	version := f.version(t)
	other := f.get(t, "w0")
	other.Spec.SchematicID = "w1"
	_, err := f.images().Update(t.Context(), other, metav1.UpdateOptions{})
	checkRefused(t, "update", err, "spec.schematicID")
	_, err = f.images().Patch(t.Context(), nameOf("w0"), types.MergePatchType, []byte(`{"spec":{"version":"v9.9.9"}}`), metav1.PatchOptions{})
	checkRefused(t, "patch", err, "spec.version")
	otherSpec := applyv1alpha1.WorkerImage(nameOf("w0")).WithSpec(applyv1alpha1.WorkerImageSpec().WithSchematicID("w0").WithVersion("v1.14.0"))
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		_, err = f.images().Apply(t.Context(), otherSpec, metav1.ApplyOptions{FieldManager: "flux", DryRun: dryRun})
		checkRefused(t, "apply", err, "spec.version")
	}
	if now := f.version(t); now != version {
		t.Errorf("something was written: version %s after %s", now, version)
	}
}

func checkRefused(t *testing.T, verb string, err error, field string) {
	t.Helper()
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		t.Fatalf("%s: got %v", verb, err)
	}
	causes := status.Status().Details.Causes
	if len(causes) != 1 || causes[0].Field != field || !strings.Contains(causes[0].Message, "another WorkerImage") {
		t.Errorf("%s: causes %v", verb, causes)
	}
}

func TestAnImageThatAPoolAsksForIsKept(t *testing.T) {
	f := startWritable(t)
	f.create(t, "used")
	f.create(t, "w0")
	f.create(t, "w1")
	for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
		err := f.images().Delete(t.Context(), nameOf("used"), metav1.DeleteOptions{DryRun: dryRun})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "tenant-a/k1-md0") {
			t.Errorf("dry run %v: got %v, want a conflict that names the pool", dryRun, err)
		}
	}
	err := f.images().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.schematicID!=w1"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "1 deleted, 1 kept") || !strings.Contains(err.Error(), "tenant-a/k1-md0") {
		t.Errorf("deletecollection: %v", err)
	}
	list, err := f.images().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, image := range list.Items {
		left = append(left, image.Name)
	}
	if diff := cmp.Diff([]string{nameOf("used"), nameOf("w1")}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	f.put(t, "pools.yaml", "")
	eventually(t, "it is deleted when the pool is gone", func(ctx context.Context) (bool, error) {
		err := f.images().Delete(ctx, nameOf("used"), metav1.DeleteOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	if _, err := f.images().Get(t.Context(), nameOf("used"), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestADeletionOfAnotherImageIsRefused(t *testing.T) {
	f := startWritable(t)
	first := f.create(t, "w0")
	if err := f.images().Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := f.create(t, "w0")
	if second.UID == first.UID {
		t.Errorf("both have uid %s", first.UID)
	}
	err := f.images().Delete(t.Context(), first.Name, *metav1.NewPreconditionDeleteOptions(string(first.UID)))
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if err := f.images().Delete(t.Context(), first.Name, *metav1.NewRVDeletionPrecondition(second.ResourceVersion)); err != nil {
		t.Errorf("of the right version: %v", err)
	}
	if err := f.images().Delete(t.Context(), first.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("once more: %v", err)
	}
}
