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

package backend

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// dataVolume is the golden as the platform's package renders it.
const dataVolume = `apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  annotations:
    cdi.kubevirt.io/storage.bind.immediate.requested: "true"
    cdi.kubevirt.io/storage.usePopulator: "true"
    helm.sh/resource-policy: keep
    kubernetes-worker-image.cozystack.io/schematic-id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515
    kubernetes-worker-image.cozystack.io/talos-version: v1.13.6
  labels:
    app.kubernetes.io/managed-by: cozystack
  name: talos-worker-ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515-v1.13.6
  namespace: cozy-public
spec:
  contentType: kubevirt
  source:
    http:
      url: https://factory.talos.dev/image/ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515/v1.13.6/openstack-amd64.raw.xz
  storage:
    resources:
      requests:
        storage: 6Gi
    storageClassName: replicated
`

func TestCreateMakesTheDataVolumeOfTheEntry(t *testing.T) {
	f := newFixture()
	if _, err := f.Create(t.Context(), "", image()); err != nil {
		t.Fatal(err)
	}
	if len(f.dataVolumes.writes) != 1 || len(f.claims.writes) != 0 {
		t.Fatalf("writes %v and %v", f.dataVolumes.writes, f.claims.writes)
	}
	got, err := yaml.Marshal(f.dataVolumes.writes[0].object.Object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dataVolume, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a user sets would change what CDI and GitOps tools do to the golden if it stood there by itself.
func TestWhatAUserSetsIsKeptInOneAnnotation(t *testing.T) {
	f := newFixture()
	labelled := image()
	labelled.Labels = map[string]string{"argocd.argoproj.io/instance": "images", "app.kubernetes.io/managed-by": "argocd"}
	labelled.Annotations = map[string]string{"cdi.kubevirt.io/storage.usePopulator": "false", "helm.sh/resource-policy": "delete"}
	labelled.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "images.cozystack.io/v1alpha1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
	}}
	if _, err := f.Create(t.Context(), "", labelled); err != nil {
		t.Fatal(err)
	}
	made := f.dataVolumes.objects[name]
	kept := golden.DataVolumeFrom(made.Object).Metadata
	if diff := cmp.Diff(golden.Metadata{Labels: labelled.Labels, Annotations: labelled.Annotations, ManagedFields: labelled.ManagedFields}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app.kubernetes.io/managed-by": "cozystack"}, made.GetLabels()); diff != "" {
		t.Errorf("labels of the DataVolume (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"helm.sh/resource-policy":                            "keep",
		"cdi.kubevirt.io/storage.bind.immediate.requested":   "true",
		"cdi.kubevirt.io/storage.usePopulator":               "true",
		"kubernetes-worker-image.cozystack.io/schematic-id":  schematic,
		"kubernetes-worker-image.cozystack.io/talos-version": release,
		golden.MetadataAnnotation:                            made.GetAnnotations()[golden.MetadataAnnotation],
	}
	if diff := cmp.Diff(want, made.GetAnnotations()); diff != "" {
		t.Errorf("annotations of the DataVolume (-want +got):\n%s", diff)
	}
}

func TestCreateOfWhatTheCatalogDoesNotDeclare(t *testing.T) {
	f := newFixture()
	other := image()
	other.Spec.Version = "v9.9.9"
	_, err := f.Create(t.Context(), "", other)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec: Invalid value") {
		t.Errorf("got %v, want a refusal of the spec", err)
	}
	if len(f.dataVolumes.writes) != 0 {
		t.Errorf("writes %v", f.dataVolumes.writes)
	}
}

func TestCreateOfAGoldenThatExistsSpeaksOfTheImage(t *testing.T) {
	f := newFixture()
	f.golden(t)
	_, err := f.Create(t.Context(), "", image())
	if !apierrors.IsAlreadyExists(err) || !strings.Contains(err.Error(), "workerimages.images.cozystack.io") {
		t.Errorf("got %v, want that the image exists", err)
	}
}

// CDI would make the golden, and report the state of the claim that is going away as its own.
func TestACreateWaitsForTheClaimOfTheGoldenBefore(t *testing.T) {
	owned := func(claim *unstructured.Unstructured) {
		claim.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: name, UID: "gone", Controller: ptr.To(true),
		}})
	}
	deleting := func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)}) }
	for _, test := range []struct {
		name       string
		claim      func(*unstructured.Unstructured)
		dataVolume func(*unstructured.Unstructured)
		refused    func(error) bool
	}{
		{name: "a claim of nobody's is CDI's to judge", claim: func(*unstructured.Unstructured) {}},
		{name: "a claim that is being deleted", claim: deleting, refused: apierrors.IsConflict},
		{name: "a claim whose DataVolume is gone", claim: owned, refused: apierrors.IsConflict},
		{name: "a claim whose DataVolume is there", claim: owned, dataVolume: func(*unstructured.Unstructured) {}, refused: apierrors.IsAlreadyExists},
		{name: "a claim whose DataVolume is being deleted", claim: owned, dataVolume: deleting, refused: apierrors.IsConflict},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture()
			if test.dataVolume != nil {
				f.golden(t)
				test.dataVolume(f.dataVolumes.objects[name])
			}
			f.bareClaim()
			test.claim(f.claims.objects[name])
			_, err := f.Create(t.Context(), "", image())
			if test.refused == nil {
				if err != nil || len(f.dataVolumes.writes) != 1 {
					t.Errorf("got %v and %d writes", err, len(f.dataVolumes.writes))
				}
				return
			}
			if !test.refused(err) || len(f.dataVolumes.writes) != 0 {
				t.Errorf("got %v and %d writes", err, len(f.dataVolumes.writes))
			}
			if after, suggested := apierrors.SuggestsClientDelay(err); apierrors.IsConflict(err) && (!suggested || after == 0) {
				t.Errorf("it does not say when to try again: %v", err)
			}
		})
	}
}

func TestACreateThatCannotSeeWhetherThereIsAClaimIsRefused(t *testing.T) {
	f := newFixture()
	f.claims.unreadable = errors.New("connection refused")
	if _, err := f.Create(t.Context(), "", image()); !apierrors.IsServiceUnavailable(err) || len(f.dataVolumes.writes) != 0 {
		t.Errorf("got %v and %d writes", err, len(f.dataVolumes.writes))
	}
}

func TestADryRunOfACreateIsOneInTheClusterToo(t *testing.T) {
	f := newFixture()
	if err := f.DryRunCreate(t.Context(), image()); err != nil {
		t.Fatal(err)
	}
	if len(f.dataVolumes.writes) != 1 || !f.dataVolumes.writes[0].dryRun {
		t.Errorf("writes %v, want one rehearsal", f.dataVolumes.writes)
	}
	if len(f.dataVolumes.objects) != 0 || len(f.observer.awaited) != 0 {
		t.Errorf("it leaves %v and waits for %v", f.dataVolumes.objects, f.observer.awaited)
	}
	f.golden(t)
	if err := f.DryRunCreate(t.Context(), image()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("of an image that exists: %v", err)
	}
}

func TestACreateIsAnsweredWhenItIsPublished(t *testing.T) {
	f := newFixture()
	visible, err := f.Create(t.Context(), "", image())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"datavolumes " + name + " 1"}, f.observer.awaited); diff != "" {
		t.Errorf("waits for (-want +got):\n%s", diff)
	}
	if !visible(nil) {
		t.Error("it is waited for once more")
	}
}

func TestAWriteThatIsNotPublishedInTimeIsSaidToBeAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		f.observer.answer = func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		begin := time.Now()
		_, err := f.Create(t.Context(), "", image())
		if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "accepted") {
			t.Errorf("got %v, want that it was accepted", err)
		}
		if took := time.Since(begin); took != awaitTimeout {
			t.Errorf("it took %v", took)
		}
		if f.dataVolumes.objects[name] == nil {
			t.Error("there is no DataVolume")
		}
	})
}

func TestTheLogSaysForWhomAWriteWasMade(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"}), logger)
	f := newFixture()
	published := f.golden(t)
	if _, err := f.Delete(ctx, "", published); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(ctx, "", image()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(logger.GetSink().(ktesting.Underlier).GetBuffer().String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("it says %q", lines)
	}
	for _, line := range lines {
		if !strings.Contains(line, `user="alice"`) || !strings.Contains(line, name) {
			t.Errorf("it says %s", line)
		}
	}
}
