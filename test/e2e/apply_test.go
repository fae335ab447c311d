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
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// prints runs kubectl on a manifest and returns what became of the image, as kubectl says.
func (k kubectl) prints(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	printed, stderr, err := k.try(t.Context(), manifest, append(args, "-f", "-")...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	_, verdict, _ := strings.Cut(strings.TrimSpace(printed), " ")
	return verdict
}

// settled creates an image by applying it, and waits until only users change it.
func (p *platform) settled(t *testing.T, schematic, labels string, args ...string) (manifest string) {
	t.Helper()
	p.declare(t, schematic)
	manifest = imageManifest(schematic, named(schematic, labels))
	p.kubectl.prints(t, manifest, append([]string{"apply"}, args...)...)
	p.awaitReady(t, objects.NameOf(schematic))
	return manifest
}

func (p *platform) image(t *testing.T, schematic string) *v1alpha1.WorkerImage {
	t.Helper()
	image, err := p.images.Get(t.Context(), objects.NameOf(schematic), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestClientSideApply(t *testing.T) {
	p := realPlatform(t)
	manifest := p.settled(t, "applied", "team: a")
	before := p.image(t, "applied")
	for range 2 {
		if verdict := p.kubectl.prints(t, manifest, "apply"); verdict != "unchanged" {
			t.Errorf("the same again is %q", verdict)
		}
	}
	if printed, stderr, err := p.kubectl.try(t.Context(), manifest, "diff", "-f", "-"); err != nil || printed != "" {
		t.Errorf("kubectl diff: %v\n%s\n%s", err, printed, stderr)
	}
	if diff := cmp.Diff(before, p.image(t, "applied")); diff != "" {
		t.Errorf("it changes (-want +got):\n%s", diff)
	}

	changed := imageManifest("applied", named("applied", "tier: gold"))
	printed, _, err := p.kubectl.try(t.Context(), changed, "diff", "-f", "-")
	if err == nil || !strings.Contains(printed, "-    team: a") || !strings.Contains(printed, "+    tier: gold") {
		t.Errorf("kubectl diff of other labels: %v\n%s", err, printed)
	}
	if diff := cmp.Diff(before, p.image(t, "applied")); diff != "" {
		t.Errorf("kubectl diff changes it (-want +got):\n%s", diff)
	}
	if verdict := p.kubectl.prints(t, changed, "apply"); verdict != "configured" {
		t.Errorf("other labels are %q", verdict)
	}
	after := p.image(t, "applied")
	if diff := cmp.Diff(map[string]string{"tier": "gold"}, after.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if after.UID != before.UID || after.Generation != 1 || !cmp.Equal(after.Status, before.Status) {
		t.Errorf("more than labels has changed: %+v", after)
	}

	other := strings.Replace(manifest, "version: "+objects.Release, "version: v9.9.9", 1)
	if _, stderr, err := p.kubectl.try(t.Context(), other, "apply", "-f", "-"); err == nil || !strings.Contains(stderr, "spec.version") {
		t.Errorf("another version: %v\n%s", err, stderr)
	}
}

func TestServerSideApply(t *testing.T) {
	p := realPlatform(t)
	manifest := p.settled(t, "owned", "team: a, tier: gold", "--server-side", "--field-manager=flux")
	asFlux := []string{"apply", "--server-side", "--field-manager=flux"}
	before := p.image(t, "owned")
	for range 2 {
		if verdict := p.kubectl.prints(t, manifest, asFlux...); verdict != "serverside-applied" {
			t.Errorf("the same again is %q", verdict)
		}
	}
	if diff := cmp.Diff(before, p.image(t, "owned")); diff != "" {
		t.Errorf("it changes (-want +got):\n%s", diff)
	}

	p.kubectl.prints(t, imageManifest("owned", named("owned", "team: b")), asFlux...)
	if diff := cmp.Diff(map[string]string{"team": "b"}, p.image(t, "owned").Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	second := imageManifest("owned", named("owned", "team: c"))
	_, stderr, err := p.kubectl.try(t.Context(), second, "apply", "--server-side", "--field-manager=terraform", "-f", "-")
	if err == nil || !strings.Contains(stderr, `conflict with "flux": .metadata.labels.team`) {
		t.Errorf("another manager: %v\n%s", err, stderr)
	}
	p.kubectl.prints(t, second, "apply", "--server-side", "--field-manager=terraform", "--force-conflicts")
	if team := p.image(t, "owned").Labels["team"]; team != "c" {
		t.Errorf("by force it becomes %q", team)
	}
}

func TestWhatUsersSetOutlivesTheServer(t *testing.T) {
	p := realPlatform(t)
	asFlux := []string{"--server-side", "--field-manager=flux"}
	manifest := p.settled(t, "restarted", "team: a, tier: gold", asFlux...)
	before := p.image(t, "restarted")
	if err := p.Processes().Kill(cluster.ServerName); err != nil {
		t.Fatal(err)
	}
	if err := p.RestartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := p.awaitReady(t, objects.NameOf("restarted"))
	want, got := before.DeepCopy(), after.DeepCopy()
	want.ResourceVersion, got.ResourceVersion = "", ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it comes back changed (-want +got):\n%s", diff)
	}
	p.kubectl.prints(t, manifest, append([]string{"apply"}, asFlux...)...)
	if now := p.image(t, "restarted"); now.ResourceVersion != after.ResourceVersion {
		t.Errorf("the same again moves the version from %s to %s", after.ResourceVersion, now.ResourceVersion)
	}
	p.kubectl.prints(t, imageManifest("restarted", named("restarted", "team: a")), append([]string{"apply"}, asFlux...)...)
	if diff := cmp.Diff(map[string]string{"team": "a"}, p.image(t, "restarted").Labels); diff != "" {
		t.Errorf("a label that is no longer applied (-want +got):\n%s", diff)
	}
}

func TestWhatUsersSetIsNotTheGoldens(t *testing.T) {
	p := realPlatform(t)
	p.settled(t, "labelled", "")
	p.kubectl.run(t, "label", "workerimage", objects.NameOf("labelled"), "app.kubernetes.io/managed-by=argocd")
	p.kubectl.run(t, "annotate", "workerimage", objects.NameOf("labelled"), "cdi.kubevirt.io/storage.usePopulator=false")
	golden, err := p.Resource(objects.DataVolumes, objects.Goldens).Get(t.Context(), objects.NameOf("labelled"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if owner := golden.GetLabels()["app.kubernetes.io/managed-by"]; owner != "cozystack" {
		t.Errorf("the golden is managed by %s", owner)
	}
	if populator := golden.GetAnnotations()["cdi.kubevirt.io/storage.usePopulator"]; populator != "true" {
		t.Errorf("the golden is annotated %s", populator)
	}
	image := p.image(t, "labelled")
	got := fmt.Sprint(image.Labels["app.kubernetes.io/managed-by"], image.Annotations["cdi.kubevirt.io/storage.usePopulator"])
	if got != fmt.Sprint("argocd", "false") {
		t.Errorf("the image has %s", got)
	}
}
