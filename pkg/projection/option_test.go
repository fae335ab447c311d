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

package projection

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// digest is an id as the Image Factory gives them.
const digest = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"

var platform = golden.ID{SchematicID: digest, Version: "v1.13.6"}

func choice(schematic, version string, usability Usability) Choice {
	return Choice{ID: golden.ID{SchematicID: schematic, Version: version}, Usability: usability, Size: "6Gi", StorageClass: "replicated"}
}

func offeredImage(phase images.WorkerImagePhase, reason string) *images.WorkerImage {
	return &images.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{Name: "talos-worker-gpu-v1.13.6"},
		Spec:       images.WorkerImageSpec{SchematicID: "gpu", Version: "v1.13.6"},
		Status: images.WorkerImageStatus{
			Phase:        phase,
			Storage:      &images.StorageStatus{Requested: "6Gi", Capacity: "7Gi"},
			StorageClass: &images.StorageClassStatus{Declared: ptr.To("replicated"), Effective: "replicated"},
			Conditions:   []metav1.Condition{{Type: images.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}},
		},
	}
}

func restarted(image *images.WorkerImage, count int32) *images.WorkerImage {
	image.Status.DataVolume = &images.DataVolumeStatus{RestartCount: count}
	return image
}

// Guards: usabilityOf, phase by phase.
func TestWhichImagesAreOffered(t *testing.T) {
	for _, test := range []struct {
		name  string
		image *images.WorkerImage
		want  Usability
		ok    bool
	}{
		{"one that is ready", offeredImage(images.WorkerImageReady, golden.ReasonReady), UsableNow, true},
		{"one that is being imported", offeredImage(images.WorkerImageImporting, golden.ReasonImporting), UsableLater, true},
		{"one whose claim is about to be bound", offeredImage(images.WorkerImageImporting, golden.ReasonClaimPending), UsableLater, true},
		{"one whose import was restarted", restarted(offeredImage(images.WorkerImageImporting, golden.ReasonImportRetrying), golden.FailingRestarts-1), UsableLater, true},
		{"one whose import keeps failing", restarted(offeredImage(images.WorkerImageImporting, golden.ReasonImportRetrying), golden.FailingRestarts), UsableMaybe, true},
		{"one that is ready after many restarts", restarted(offeredImage(images.WorkerImageReady, golden.ReasonReady), 9), UsableNow, true},
		{"one that has just been created", offeredImage(images.WorkerImagePending, golden.ReasonPending), UsableLater, true},
		{"one for which there is no class", offeredImage(images.WorkerImagePending, golden.ReasonNoStorageClass), 0, false},
		{"one whose class does not exist", offeredImage(images.WorkerImagePending, golden.ReasonStorageClassNotFound), 0, false},
		{"one that waits for a consumer", offeredImage(images.WorkerImagePending, golden.ReasonWaitForFirstConsumer), 0, false},
		{"one that a quota does not allow", offeredImage(images.WorkerImagePending, golden.ReasonQuotaExceeded), 0, false},
		{"one whose claim is gone", offeredImage(images.WorkerImagePending, golden.ReasonClaimMissing), 0, false},
		{"one that has failed", offeredImage(images.WorkerImageFailed, golden.ReasonImportFailed), 0, false},
		{"one that is being deleted", offeredImage(images.WorkerImageTerminating, golden.ReasonTerminating), 0, false},
		{"one that cannot be read now", offeredImage(images.WorkerImageUnknown, ReasonSourceNotReadable), 0, false},
		{"one in a phase that nobody knows", offeredImage("Hibernating", ""), 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := ChoiceOf(test.image)
			want := Choice{}
			if test.ok {
				want = choice("gpu", "v1.13.6", test.want)
			}
			if ok != test.ok || got != want {
				t.Errorf("%v %t, want %v %t", got, ok, want, test.ok)
			}
		})
	}
}

// Guards: that a Choice holds nothing that moves during an import.
func TestProgressMakesNoOtherChoice(t *testing.T) {
	a, b := offeredImage(images.WorkerImageImporting, golden.ReasonImporting), offeredImage(images.WorkerImageImporting, golden.ReasonImporting)
	a.Status.Progress, b.Status.Progress = ptr.To[int32](45), ptr.To[int32](46)
	before, _ := ChoiceOf(a)
	after, _ := ChoiceOf(b)
	if before != after {
		t.Errorf("%v became %v", before, after)
	}
}

// Guards: readableSize.
func TestASizeIsWrittenAsPeopleDo(t *testing.T) {
	for size, want := range map[string]string{
		"6Gi": "6Gi", "6442450944": "6Gi", "6144Mi": "6Gi", "6G": "6G", "6000000000": "6G", "6442450945": "6442450945", "": "", "huge": "huge",
	} {
		image := offeredImage(images.WorkerImageReady, golden.ReasonReady)
		image.Status.Storage.Requested = size
		if c, _ := ChoiceOf(image); c.Size != want {
			t.Errorf("%q is %q, want %q", size, c.Size, want)
		}
	}
}

// Guards: the parts of the status that may be absent.
func TestAnImageOfWhichLittleIsKnownCanBeChosen(t *testing.T) {
	got, ok := ChoiceOf(&images.WorkerImage{
		Spec:   images.WorkerImageSpec{SchematicID: "gpu", Version: "v1.13.6"},
		Status: images.WorkerImageStatus{Phase: images.WorkerImageReady},
	})
	if want := (Choice{ID: golden.ID{SchematicID: "gpu", Version: "v1.13.6"}}); !ok || got != want {
		t.Errorf("%v %t", got, ok)
	}
	items := Options([]Choice{got}, platform, "ns")[0].Spec.Items
	if want := "Schematic gpu"; items[0].Description != want {
		t.Errorf("description %q, want %q", items[0].Description, want)
	}
}

// offers returns the labels of an Option, with a star at the default.
func offers(option *images.Option) []string {
	var out []string
	for _, item := range option.Spec.Items {
		label := item.Label
		if item.Default {
			label += " *"
		}
		out = append(out, label)
	}
	return out
}

// Guards: compareCandidates and the order of groups.
func TestTheOrderOfAnOffer(t *testing.T) {
	for _, test := range []struct {
		name                         string
		choices                      []Choice
		images, schematics, versions []string
	}{
		{name: "nothing is offered where there is nothing"},
		{
			name: "a newer version comes first, by semantic version",
			choices: []Choice{
				choice("gpu", "v1.9.0", UsableNow), choice("gpu", "v1.10.0", UsableNow), choice("gpu", "v1.14.0-rc.10", UsableNow),
				choice("gpu", "v1.14.0-rc.2", UsableNow), choice("gpu", "v1.14.0", UsableNow),
			},
			images: []string{
				"v1.14.0 · gpu", "v1.14.0-rc.10 · gpu", "v1.14.0-rc.2 · gpu", "v1.10.0 · gpu", "v1.9.0 · gpu",
			},
			schematics: []string{"gpu"},
			versions:   []string{"v1.14.0", "v1.14.0-rc.10", "v1.14.0-rc.2", "v1.10.0", "v1.9.0"},
		},
		{
			name: "a release comes before its candidates",
			choices: []Choice{
				choice("gpu", "v1.13.6-rc.1", UsableNow), choice("gpu", "v1.10.0", UsableNow), choice("gpu", "v1.13.6", UsableNow),
			},
			images:     []string{"v1.13.6 · gpu", "v1.13.6-rc.1 · gpu", "v1.10.0 · gpu"},
			schematics: []string{"gpu"},
			versions:   []string{"v1.13.6", "v1.13.6-rc.1", "v1.10.0"},
		},
		{
			name: "what is not a semantic version comes last",
			choices: []Choice{
				choice("gpu", "v01.13.6", UsableNow), choice("gpu", "v2.00.0", UsableNow), choice("gpu", "v1.2.0", UsableNow),
			},
			images:     []string{"v1.2.0 · gpu", "v2.00.0 · gpu", "v01.13.6 · gpu"},
			schematics: []string{"gpu"},
			versions:   []string{"v1.2.0", "v2.00.0", "v01.13.6"},
		},
		{
			name: "images of one version are sorted by schematic",
			choices: []Choice{
				choice("metal", "v1.13.6", UsableNow), choice("iscsi", "v1.13.6", UsableNow),
			},
			images:     []string{"v1.13.6 · iscsi", "v1.13.6 · metal"},
			schematics: []string{"iscsi", "metal"},
			versions:   []string{"v1.13.6"},
		},
		{
			name: "the default comes before newer ones",
			choices: []Choice{
				choice("gpu", "v1.14.0", UsableNow), choice(digest, "v1.13.6", UsableNow), choice(digest, "v1.14.0", UsableNow),
			},
			images:     []string{"v1.13.6 · ce4c980550dd *", "v1.14.0 · ce4c980550dd", "v1.14.0 · gpu"},
			schematics: []string{"ce4c980550dd *", "gpu"},
			versions:   []string{"v1.13.6 *", "v1.14.0"},
		},
		{
			name: "what is ready comes before what is being imported, and that before what keeps failing",
			choices: []Choice{
				choice("gpu", "v1.15.0", UsableMaybe), choice("metal", "v1.14.0", UsableLater), choice("iscsi", "v1.13.0", UsableNow),
			},
			images: []string{
				"v1.13.0 · iscsi", "v1.14.0 · metal (importing)", "v1.15.0 · gpu (importing, keeps failing)",
			},
			schematics: []string{"iscsi", "metal (importing)", "gpu (importing, keeps failing)"},
			versions:   []string{"v1.13.0", "v1.14.0 (importing)", "v1.15.0 (importing, keeps failing)"},
		},
		{
			name: "a default that is being imported stays the default, behind what is ready",
			choices: []Choice{
				choice("gpu", "v1.14.0", UsableLater), choice(digest, "v1.13.6", UsableLater), choice("gpu", "v1.12.0", UsableNow),
			},
			images: []string{
				"v1.12.0 · gpu", "v1.13.6 · ce4c980550dd (importing) *", "v1.14.0 · gpu (importing)",
			},
			schematics: []string{"gpu", "ce4c980550dd (importing) *"},
			versions:   []string{"v1.12.0", "v1.13.6 (importing) *", "v1.14.0 (importing)"},
		},
		{
			name: "a schematic is as usable as the best of its images",
			choices: []Choice{
				choice(digest, "v1.13.6", UsableLater), choice(digest, "v1.12.0", UsableNow), choice("gpu", "v1.13.0", UsableNow),
			},
			images:     []string{"v1.13.0 · gpu", "v1.12.0 · ce4c980550dd", "v1.13.6 · ce4c980550dd (importing) *"},
			schematics: []string{"ce4c980550dd *", "gpu"},
			versions:   []string{"v1.13.0", "v1.12.0", "v1.13.6 (importing) *"},
		},
		{
			name: "without the default pair there is no default, though both halves of it are offered",
			choices: []Choice{
				choice(digest, "v1.12.0", UsableNow), choice("gpu", "v1.13.6", UsableNow), choice("gpu", "v1.14.0", UsableNow),
			},
			images:     []string{"v1.14.0 · gpu", "v1.13.6 · gpu", "v1.12.0 · ce4c980550dd"},
			schematics: []string{"gpu", "ce4c980550dd"},
			versions:   []string{"v1.14.0", "v1.13.6", "v1.12.0"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 10 {
				random.Shuffle(len(test.choices), func(i, j int) {
					test.choices[i], test.choices[j] = test.choices[j], test.choices[i]
				})
				options := Options(test.choices, platform, "cozy-public")
				got := [][]string{offers(options[0]), offers(options[1]), offers(options[2])}
				if diff := cmp.Diff([][]string{test.images, test.schematics, test.versions}, got); diff != "" {
					t.Fatalf("unexpected offer (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Guards: labels, descriptions and the default.
func TestWhatAnItemSays(t *testing.T) {
	importing := choice("gpu", "v1.14.0-rc.1", UsableLater)
	importing.StorageClass = ""
	options := Options([]Choice{choice(digest, "v1.13.6", UsableNow), importing, choice("gpu", "v1.13.6", UsableMaybe)}, platform, "cozy-public")
	want := []*images.Option{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cozy-public", Name: "workerimage", UID: OptionUID("cozy-public", "workerimage")},
			Spec: images.OptionSpec{Items: []images.OptionItem{
				{
					Value: "talos-worker-" + digest + "-v1.13.6", Label: "v1.13.6 · ce4c980550dd", Default: true,
					Description: "Schematic " + digest + " (6Gi, StorageClass replicated)",
				},
				{
					Value: "talos-worker-gpu-v1.14.0-rc.1", Label: "v1.14.0-rc.1 · gpu (importing)",
					Description: "Schematic gpu (importing, 6Gi)",
				},
				{
					Value: "talos-worker-gpu-v1.13.6", Label: "v1.13.6 · gpu (importing, keeps failing)",
					Description: "Schematic gpu (importing, keeps failing, 6Gi, StorageClass replicated)",
				},
			}},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cozy-public", Name: "workerimage-schematic", UID: OptionUID("cozy-public", "workerimage-schematic")},
			Spec: images.OptionSpec{Items: []images.OptionItem{
				{
					Value: digest, Label: "ce4c980550dd", Default: true,
					Description: "Schematic " + digest + " in v1.13.6 (6Gi, StorageClass replicated)",
				},
				{
					Value: "gpu", Label: "gpu (importing)",
					Description: "Schematic gpu in v1.14.0-rc.1 (importing, 6Gi), v1.13.6 (importing, keeps failing, 6Gi, StorageClass replicated)",
				},
			}},
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cozy-public", Name: "workerimage-version", UID: OptionUID("cozy-public", "workerimage-version")},
			Spec: images.OptionSpec{Items: []images.OptionItem{
				{
					Value: "v1.13.6", Label: "v1.13.6", Default: true,
					Description: "Talos v1.13.6 with schematic " + digest + " (6Gi, StorageClass replicated), gpu (importing, keeps failing, 6Gi, StorageClass replicated)",
				},
				{
					Value: "v1.14.0-rc.1", Label: "v1.14.0-rc.1 (importing)",
					Description: "Talos v1.14.0-rc.1 with schematic gpu (importing, 6Gi)",
				},
			}},
		},
	}
	if diff := cmp.Diff(want, options); diff != "" {
		t.Errorf("unexpected Options (-want +got):\n%s", diff)
	}
}

// Guards: that items are a list when nothing is offered.
func TestAnEmptyOfferIsAnEmptyList(t *testing.T) {
	for _, option := range Options(nil, platform, "cozy-public") {
		if option.Spec.Items == nil {
			t.Errorf("the items of %s are null to clients", option.Name)
		}
	}
}

// Guards: described.
func TestADescriptionIsBounded(t *testing.T) {
	var choices []Choice
	for i := range described + 3 {
		choices = append(choices, choice("gpu", fmt.Sprintf("v1.13.%d", i), UsableNow))
	}
	description := Options(choices, platform, "cozy-public")[1].Spec.Items[0].Description
	if want := "v1.13.3 (6Gi, StorageClass replicated), and 3 more"; !strings.HasSuffix(description, want) {
		t.Errorf("%q does not end in %q", description, want)
	}
}

// Guards: shortSchematic.
func TestOnlyADigestIsCut(t *testing.T) {
	for _, test := range []struct{ id, want string }{
		{digest, "ce4c980550dd"},
		{"talos-gpu-nvidia-open", "talos-gpu-nvidia-open"},
		{digest[:63], digest[:63]},
		{digest + "0", digest + "0"},
		{strings.Repeat("gpu-", 15) + "open", strings.Repeat("gpu-", 15) + "open"},
	} {
		if got := shortSchematic(test.id); got != test.want {
			t.Errorf("%s is %s, want %s", test.id, got, test.want)
		}
	}
}

// Guards: optionUIDSpace.
func TestUIDsOfOptionsStay(t *testing.T) {
	// A release that changed it would be another object to every client.
	if got, want := string(OptionUID("tenant-a", "workerimage")), "153ef9fa-93c8-5578-9a23-1aec30d373d4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	seen := map[string]bool{}
	for _, namespace := range []string{"tenant-a", "tenant-b"} {
		for _, name := range []string{OptionImages, OptionSchematics, OptionVersions} {
			seen[string(OptionUID(namespace, name))] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("6 Options have %d uids", len(seen))
	}
}

// Guards: the order in which the log has them.
func TestOptionsAreSortedByName(t *testing.T) {
	var names []string
	for _, option := range Options(nil, platform, "cozy-public") {
		names = append(names, option.Name)
	}
	if !slices.IsSorted(names) {
		t.Errorf("%v", names)
	}
}
