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
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/quantity"
)

// The Options, by the name that a form field gives as its source.
const (
	OptionImages     = "workerimage"
	OptionSchematics = "workerimage-schematic"
	OptionVersions   = "workerimage-version"
)

// Options returns the Options that choices, in any order, amount to. platform is the image of a pool that pins
// none: it comes first among those that are as usable as it, and is the default while it is offered at all.
func Options(choices []Choice, platform golden.ID, namespace string) []*images.Option {
	sorted := make([]candidate, 0, len(choices))
	for _, c := range choices {
		sorted = append(sorted, newCandidate(c, platform))
	}
	slices.SortFunc(sorted, compareCandidates)
	return []*images.Option{
		option(namespace, OptionImages, imageItems(sorted)),
		option(namespace, OptionSchematics, schematicItems(sorted)),
		option(namespace, OptionVersions, versionItems(sorted)),
	}
}

// optionUIDSpace is the name space of the uids of Options. They must stay the same over restarts and releases,
// so it must never change.
const optionUIDSpace = "c7c1f9a4-2d0b-4a53-9a1e-5b7e0d6f8a12"

// OptionUID is the uid of an Option in a namespace.
func OptionUID(namespace, name string) types.UID {
	return types.UID(uuid.NewSHA1(uuid.MustParse(optionUIDSpace), []byte(namespace+"/"+name)).String())
}

func option(namespace, name string, items []images.OptionItem) *images.Option {
	return &images.Option{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: OptionUID(namespace, name)},
		Spec:       images.OptionSpec{Items: items},
	}
}

// Choice is all that Options say of an image. Images of which it is the same are the same to them.
type Choice struct {
	ID           golden.ID
	Usability    Usability
	Size         string
	StorageClass string
}

// Usability is how far an image is that may be chosen, the best first.
type Usability int

const (
	// UsableNow is an image that can be cloned.
	UsableNow Usability = iota
	// UsableLater is an image whose import goes on or is about to begin: a clone waits for it.
	UsableLater
	// UsableMaybe is an image whose import keeps failing and is tried again.
	UsableMaybe
)

// ChoiceOf returns what Options say of an image, and false for one that is not to be chosen: it has failed, it
// is on its way out, nobody knows how it is, or something stands before its import that does not pass by itself.
func ChoiceOf(image *images.WorkerImage) (Choice, bool) {
	usability, ok := usabilityOf(image)
	if !ok {
		return Choice{}, false
	}
	out := Choice{
		ID:        golden.ID{SchematicID: image.Spec.SchematicID, Version: image.Spec.Version},
		Usability: usability,
	}
	if s := image.Status.Storage; s != nil {
		out.Size = readableSize(s.Requested)
	}
	if c := image.Status.StorageClass; c != nil {
		out.StorageClass = c.Effective
	}
	return out, true
}

// readableSize is a size as people write it: a number of bytes in powers of 1024, where it is a whole one.
func readableSize(size string) string {
	q, err := quantity.Parse(size)
	if err != nil {
		return size
	}
	text := q.String()
	if isBytes := strings.Trim(text, "0123456789") == ""; isBytes {
		return resource.NewQuantity(q.Value(), resource.BinarySI).String()
	}
	return text
}

func usabilityOf(image *images.WorkerImage) (Usability, bool) {
	switch image.Status.Phase {
	case images.WorkerImageReady:
		return UsableNow, true
	case images.WorkerImageImporting:
		if dv := image.Status.DataVolume; dv != nil && dv.RestartCount >= golden.FailingRestarts {
			return UsableMaybe, true
		}
		return UsableLater, true
	case images.WorkerImagePending:
		c := meta.FindStatusCondition(image.Status.Conditions, images.ConditionReady)
		return UsableLater, c != nil && c.Reason == golden.ReasonPending
	case images.WorkerImageFailed, images.WorkerImageTerminating, images.WorkerImageUnknown:
		return 0, false
	}
	return 0, false
}

// candidate is a choice and what it is sorted by.
type candidate struct {
	Choice
	// version is nil for one that is not a semantic version.
	version  *version.Version
	platform bool
}

func newCandidate(c Choice, platform golden.ID) candidate {
	out := candidate{Choice: c, platform: c.ID == platform}
	if v, err := version.ParseSemantic(c.ID.Version); err == nil {
		out.version = v
	}
	return out
}

func compareCandidates(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(a.Usability, b.Usability),
		compareBools(a.platform, b.platform),
		compareVersions(a, b),
		cmp.Compare(a.ID.SchematicID, b.ID.SchematicID),
	)
}

// compareBools puts true before false.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// compareVersions puts a newer version before an older one, and what is not a semantic version last.
func compareVersions(a, b candidate) int {
	if a.version == nil || b.version == nil {
		return cmp.Or(compareBools(a.version != nil, b.version != nil), cmp.Compare(b.ID.Version, a.ID.Version))
	}
	switch {
	case b.version.LessThan(a.version):
		return -1
	case a.version.LessThan(b.version):
		return 1
	default:
		return 0
	}
}

func imageItems(sorted []candidate) []images.OptionItem {
	items := make([]images.OptionItem, 0, len(sorted))
	for _, c := range sorted {
		items = append(items, images.OptionItem{
			Value:       c.ID.Name(),
			Label:       c.ID.Version + " · " + shortSchematic(c.ID.SchematicID) + c.Usability.remark(),
			Description: "Schematic " + c.describe(c.ID.SchematicID),
			Default:     c.platform,
		})
	}
	return items
}

func schematicItems(sorted []candidate) []images.OptionItem {
	schematics := grouped(sorted, func(id golden.ID) string { return id.SchematicID })
	items := make([]images.OptionItem, 0, len(schematics))
	for _, g := range schematics {
		items = append(items, images.OptionItem{
			Value:       g.value,
			Label:       shortSchematic(g.value) + g.best().Usability.remark(),
			Description: fmt.Sprintf("Schematic %s in %s", g.value, g.describe(func(id golden.ID) string { return id.Version })),
			Default:     g.hasPlatform(),
		})
	}
	return items
}

func versionItems(sorted []candidate) []images.OptionItem {
	versions := grouped(sorted, func(id golden.ID) string { return id.Version })
	items := make([]images.OptionItem, 0, len(versions))
	for _, g := range versions {
		items = append(items, images.OptionItem{
			Value:       g.value,
			Label:       g.value + g.best().Usability.remark(),
			Description: fmt.Sprintf("Talos %s with schematic %s", g.value, g.describe(func(id golden.ID) string { return id.SchematicID })),
			Default:     g.hasPlatform(),
		})
	}
	return items
}

// group is the candidates that share a schematic or a version, the best first.
type group struct {
	value   string
	members []candidate
}

// grouped returns the groups of sorted candidates, in the order of the candidates themselves.
func grouped(sorted []candidate, by func(golden.ID) string) []group {
	var groups []group
	position := map[string]int{}
	for _, c := range sorted {
		value := by(c.ID)
		at, ok := position[value]
		if !ok {
			at = len(groups)
			position[value] = at
			groups = append(groups, group{value: value})
		}
		groups[at].members = append(groups[at].members, c)
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(
			cmp.Compare(a.best().Usability, b.best().Usability),
			compareBools(a.hasPlatform(), b.hasPlatform()),
		)
	})
	return groups
}

func (g group) best() candidate { return g.members[0] }

func (g group) hasPlatform() bool {
	return slices.ContainsFunc(g.members, func(c candidate) bool { return c.platform })
}

// described is how many images of a group its description names.
const described = 5

func (g group) describe(name func(golden.ID) string) string {
	var out []string
	for _, c := range g.members[:min(len(g.members), described)] {
		out = append(out, c.describe(name(c.ID)))
	}
	if more := len(g.members) - described; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// describe adds to a name what is known of the image.
func (c candidate) describe(name string) string {
	var facts []string
	if state := c.Usability.words(); state != "" {
		facts = append(facts, state)
	}
	if c.Size != "" {
		facts = append(facts, c.Size)
	}
	if c.StorageClass != "" {
		facts = append(facts, "StorageClass "+c.StorageClass)
	}
	if len(facts) == 0 {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, strings.Join(facts, ", "))
}

// words say what is to be said of an image besides that it is offered.
func (u Usability) words() string {
	switch u {
	case UsableNow:
		return ""
	case UsableLater:
		return "importing"
	case UsableMaybe:
		return "importing, keeps failing"
	}
	return ""
}

// remark is what follows a label.
func (u Usability) remark() string {
	if words := u.words(); words != "" {
		return " (" + words + ")"
	}
	return ""
}

const (
	// digestLength is that of the ids of the Image Factory, which are SHA-256 sums.
	digestLength = 64
	// shortLength is how much of one tells it from another at a glance.
	shortLength = 12
)

// shortSchematic cuts a digest, and leaves a name that somebody gave.
func shortSchematic(id string) string {
	if len(id) == digestLength && strings.Trim(id, "0123456789abcdef") == "" {
		return id[:shortLength]
	}
	return id
}
