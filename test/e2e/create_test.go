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
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

func TestTheSampleIsImported(t *testing.T) {
	p := realPlatform(t)
	const name = "talos-worker-gpu-nvidia-open-v1.13.7"
	t.Cleanup(func() { p.Remove(t, objects.DataVolumes, objects.Goldens, name) })
	printed := p.kubectl.run(t, "create", "-f", filepath.Join(root, "artifacts", "samples", "workerimage.yaml"))
	if want := "workerimage.images.cozystack.io/" + name + " created\n"; printed != want {
		t.Errorf("kubectl prints %q, want %q", printed, want)
	}
	rows := p.kubectl.follow(t, "get", "workerimage", name, "--watch")
	rows.until(t, "it to be Ready", func(line string) bool { return isRow(line, name, "Ready") })
	image := p.awaitReady(t, name)
	if synced := condition(image, v1alpha1.ConditionCatalogSynced); synced.Status != metav1.ConditionTrue {
		t.Errorf("CatalogSynced is %+v", synced)
	}
}

// Whatever the platform's package would have rendered.
func TestWhatIsMadeIsTheGoldenOfThePlatform(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "rendered")
	image := newImage("rendered")
	image.Labels = map[string]string{"argocd.argoproj.io/instance": "images"}
	image.Annotations = map[string]string{"cdi.kubevirt.io/storage.usePopulator": "false"}
	if _, err := p.images.Create(t.Context(), image, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	made, err := p.Resource(objects.DataVolumes, objects.Goldens).Get(t.Context(), objects.NameOf("rendered"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := objects.NewGolden("rendered")
	if diff := cmp.Diff(want.Object["spec"], made.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.GetLabels(), made.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	annotations := made.GetAnnotations()
	delete(annotations, "images.cozystack.io/metadata")
	if diff := cmp.Diff(want.GetAnnotations(), annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestOfFiftyCreatesAtOnceOneMakesTheImage(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "wanted")
	answers := make([]error, 50)
	var running sync.WaitGroup
	for i := range answers {
		running.Go(func() { _, answers[i] = p.images.Create(t.Context(), newImage("wanted"), metav1.CreateOptions{}) })
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
	await.For(t, "the audit log to tell of the DataVolume", func(context.Context) error {
		if users := p.writers(t, "create", "datavolumes", "wanted", http.StatusCreated); !slices.Equal(users, []string{serverUser}) {
			return fmt.Errorf("made by %v", users)
		}
		return nil
	})
}

func TestCreatesThatAreRefused(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "here", "there")
	p.declareEntries(t, fmt.Sprintf("{schematicID: classless, version: %s, storageClass: missing}", objects.Release))
	p.awaitPhase(t, "classless", v1alpha1.CatalogEntryAvailable)
	p.createImage(t, "there")
	for _, test := range []struct {
		name, schematic, metadata string
		code                      int
		says                      []string
	}{
		{"an image that is not in the catalog", "nowhere", "", 422, []string{"spec: Invalid value", "schematicID nowhere, version " + objects.Release, "declare it first"}},
		{"another name", "here", "name: here", 422, []string{"metadata.name: Invalid value", objects.NameOf("here")}},
		{"a name to be generated", "here", "generateName: here-", 422, []string{"metadata.generateName: Forbidden"}},
		{"a class that does not exist", "classless", "", 422, []string{"\"missing\"", "does not exist"}},
		{"an image that is there", "there", "", 409, []string{objects.NameOf("there"), "already exists"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := p.exists(t, objects.DataVolumes, objects.Goldens, objects.NameOf(test.schematic))
			for _, query := range []string{"", "?dryRun=All"} {
				refused := p.post(t, query, imageManifest(test.schematic, test.metadata))
				if refused.Status != test.code {
					t.Fatalf("%s: %d %s", query, refused.Status, refused.Body)
				}
				for _, words := range test.says {
					if !strings.Contains(message(t, refused), words) {
						t.Errorf("%s: %q does not say %q", query, message(t, refused), words)
					}
				}
			}
			if p.exists(t, objects.DataVolumes, objects.Goldens, objects.NameOf(test.schematic)) != before {
				t.Error("a DataVolume was made")
			}
		})
	}
}

func TestWithoutAClassNothingIsMade(t *testing.T) {
	p := realPlatform(t)
	p.setCatalog(t, fmt.Sprintf("images:\n- {schematicID: homeless, version: %s}\n", objects.Release))
	p.awaitPhase(t, "homeless", v1alpha1.CatalogEntryAvailable)
	annotate := func(value string) {
		p.Patch(t, objects.StorageClasses, "", "local", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, objects.DefaultClass, value))
	}
	t.Cleanup(func() { annotate("true") })
	annotate("false")
	await.For(t, "the default to be gone", func(context.Context) error {
		if a := p.post(t, "?dryRun=All", imageManifest("homeless", "")); a.Status != http.StatusUnprocessableEntity || !strings.Contains(message(t, a), "has no default") {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		return nil
	})
	if a := p.post(t, "", imageManifest("homeless", "")); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if p.exists(t, objects.DataVolumes, objects.Goldens, objects.NameOf("homeless")) {
		t.Error("a DataVolume was made")
	}
}

func TestTheWordsOfCDIArePassedOn(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "squatted")
	claim := objects.New("v1", "PersistentVolumeClaim", objects.Goldens, objects.NameOf("squatted"))
	claim.Object["spec"] = map[string]any{
		"accessModes":      []any{"ReadWriteOnce"},
		"storageClassName": "replicated",
		"resources":        map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}
	p.Create(t, objects.Claims, claim)
	for _, query := range []string{"", "?dryRun=All"} {
		refused := p.post(t, query, imageManifest("squatted", ""))
		want := fmt.Sprintf("Destination PVC %s/%s already exists", objects.Goldens, objects.NameOf("squatted"))
		if refused.Status != http.StatusUnprocessableEntity || !strings.Contains(message(t, refused), want) {
			t.Errorf("%s: %d %s, want CDI's own words", query, refused.Status, refused.Body)
		}
	}
	if p.exists(t, objects.DataVolumes, objects.Goldens, objects.NameOf("squatted")) {
		t.Error("a DataVolume was made")
	}
}

func TestAnImageCanBeMadeAgainWhenItIsGone(t *testing.T) {
	p := realPlatform(t)
	const schematic = "slow-again"
	p.declare(t, schematic)
	first := p.createImage(t, schematic)
	p.awaitImage(t, first.Name, "Importing", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.Phase == v1alpha1.WorkerImageImporting && image.Status.Claim != nil
	})
	// The DataVolume is held until a create has been refused.
	const finalizer = "example.org/hold"
	p.Patch(t, objects.DataVolumes, objects.Goldens, first.Name, fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, finalizer))
	if err := p.images.Delete(t.Context(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	refused := p.post(t, "", imageManifest(schematic, ""))
	if refused.Status != http.StatusConflict || refused.Header.Get("Retry-After") == "" || !strings.Contains(message(t, refused), "is being deleted") {
		t.Errorf("%d, Retry-After: %s, %s", refused.Status, refused.Header.Get("Retry-After"), refused.Body)
	}
	p.Patch(t, objects.DataVolumes, objects.Goldens, first.Name, `{"metadata":{"finalizers":null}}`)
	p.createImage(t, schematic)
	if second := p.image(t, schematic); second.UID == first.UID || second.Status.Phase == v1alpha1.WorkerImageTerminating {
		t.Errorf("uid %s after %s, phase %s", second.UID, first.UID, second.Status.Phase)
	}
}

func TestAGoldenOutlivesItsEntry(t *testing.T) {
	p := realPlatform(t)
	before := p.catalog(t)
	p.declare(t, "outdated")
	created := p.createImage(t, "outdated")
	p.writeCatalog(t, before)
	image := p.awaitImage(t, created.Name, "not declared", func(image *v1alpha1.WorkerImage) bool {
		return condition(image, v1alpha1.ConditionCatalogSynced).Status == metav1.ConditionFalse
	})
	if reason := condition(image, v1alpha1.ConditionCatalogSynced).Reason; reason != "NotDeclared" || image.UID != created.UID {
		t.Errorf("CatalogSynced is False for %s; the uid was %s and is %s", reason, created.UID, image.UID)
	}
	if refused := p.post(t, "", imageManifest("outdated", "")); refused.Status != http.StatusConflict {
		t.Errorf("once more: %d %s", refused.Status, refused.Body)
	}
}

func TestWithoutTheWebhookOfCDINothingIsMade(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "unheard")
	there := p.createImage(t, "unheard")
	for _, test := range []struct {
		name, schematic string
		stop, back      func() error
	}{
		{
			"it is down", "unasked-down",
			func() error { return p.Processes().Kill(webhookServer) },
			func() error { return p.Processes().Restart(webhookServer) },
		},
		{
			"it hangs", "unasked-hung",
			func() error { return p.signal(webhookServer, syscall.SIGSTOP) },
			func() error { return p.signal(webhookServer, syscall.SIGCONT) },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p.declare(t, test.schematic)
			if err := test.stop(); err != nil {
				t.Fatal(err)
			}
			back := sync.OnceValue(test.back)
			t.Cleanup(func() {
				if err := back(); err != nil {
					t.Error(err)
				}
			})
			for _, query := range []string{"", "?dryRun=All"} {
				begin := time.Now()
				refused := p.post(t, query, imageManifest(test.schematic, ""))
				if refused.Status != http.StatusServiceUnavailable || !strings.Contains(message(t, refused), "try again") {
					t.Errorf("%s: %d %s", query, refused.Status, refused.Body)
				}
				if took := time.Since(begin); took > 10*time.Second {
					t.Errorf("%s: it takes %v", query, took)
				}
			}
			if p.exists(t, objects.DataVolumes, objects.Goldens, objects.NameOf(test.schematic)) {
				t.Error("a DataVolume was made")
			}
			if err := p.images.Delete(t.Context(), there.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("a deletion needs no webhook: %v", err)
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
			await.For(t, "it to be made when the webhook is back", func(ctx context.Context) error {
				_, err := p.images.Create(ctx, newImage(test.schematic), metav1.CreateOptions{})
				return err
			})
		})
	}
}

func (p *platform) signal(program string, signal syscall.Signal) error {
	pid, running := p.Process(program)
	if !running {
		return fmt.Errorf("%s does not run", program)
	}
	return syscall.Kill(pid, signal)
}

func TestADryRunLeavesNoTrace(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "rehearsed")
	manifest := imageManifest("rehearsed", named("rehearsed", ""))
	events := p.watch(t, "&fieldSelector=metadata.name="+objects.NameOf("rehearsed"), wire.JSON)
	for _, args := range [][]string{
		{"create", "--dry-run=server", "-f", "-"},
		{"apply", "--dry-run=server", "-f", "-"},
		{"apply", "--server-side", "--dry-run=server", "-f", "-"},
	} {
		printed, stderr, err := p.kubectl.try(t.Context(), manifest, args...)
		if err != nil || !strings.Contains(printed, "(server dry run)") {
			t.Errorf("kubectl %s: %v, %q\n%s", strings.Join(args, " "), err, printed, stderr)
		}
	}
	printed, stderr, err := p.kubectl.try(t.Context(), manifest, "diff", "-f", "-")
	if err == nil || !strings.Contains(printed, "+kind: WorkerImage") {
		t.Errorf("kubectl diff of an image that is not there: %v, %q\n%s", err, printed, stderr)
	}
	if p.exists(t, objects.DataVolumes, objects.Goldens, objects.NameOf("rehearsed")) {
		t.Error("a DataVolume was made")
	}
	// What comes first is what is really created.
	created := p.createImage(t, "rehearsed")
	if f := events.Next(t); f.Type != watch.Added || f.Image(t).UID != created.UID {
		t.Errorf("the first event is %s %s", f.Type, f.Raw)
	}
}
