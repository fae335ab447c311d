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

package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	imagesKey      = "images"
	schematicIDKey = "schematicID"
	versionKey     = "version"

	// imageLimit is far more than a cluster can store.
	imageLimit = 10000
	// enumerationLimit bounds what a message lists.
	enumerationLimit = 8
	// wordLimit bounds what a message quotes of the document.
	wordLimit = 80
)

// image is an item of the list of images: an entry if nothing is wrong with it.
type image struct {
	entry  Entry
	faults []fault
}

// fault is something that is wrong with a key, or with an item as a whole if the key is empty.
type fault struct {
	key     string
	message string
}

// Parse reads the YAML document of a catalog. It fails only on what is not a catalog at all; an empty
// document is a catalog that declares nothing.
func Parse(content []byte) (*Catalog, error) {
	document, err := readDocument(content)
	if err != nil {
		return nil, fmt.Errorf("not a catalog: %w", err)
	}
	items, err := document.list(imagesKey)
	if err != nil {
		return nil, fmt.Errorf("not a catalog: %w", err)
	}
	if len(items) > imageLimit {
		return nil, fmt.Errorf("not a catalog: %s has %d items, at most %d are accepted", imagesKey, len(items), imageLimit)
	}

	defaults := readDefaults(document)
	images := make([]image, 0, len(items))
	for _, item := range items {
		images = append(images, readImage(item, defaults))
	}
	rejectDuplicates(images)

	catalog := &Catalog{Warnings: warnings(document, defaults)}
	for index, image := range images {
		if len(image.faults) == 0 {
			catalog.Entries = append(catalog.Entries, image.entry)
		} else {
			catalog.Rejected = append(catalog.Rejected, image.rejection(index))
		}
	}
	slices.SortFunc(catalog.Entries, func(a, b Entry) int { return strings.Compare(a.Name(), b.Name()) })
	return catalog, nil
}

// readImage reads an item of the list. An item that is an alias would declare the same pair once more.
func readImage(item *yaml.Node, defaults []value) image {
	if item.Kind != yaml.MappingNode {
		what := "an alias"
		if item.Kind != yaml.AliasNode {
			what = describe(item)
		}
		return image{faults: []fault{{message: fmt.Sprintf("is %s, a mapping with %s and %s is accepted", what, schematicIDKey, versionKey)}}}
	}
	keys := mappingFrom(item)
	var read image
	read.readID(keys)
	for i, setting := range settings() {
		read.readSetting(keys, setting, defaults[i])
	}
	if message := unknownKeys(keys, imageKeys()); message != "" {
		read.faults = append(read.faults, fault{message: message})
	}
	return read
}

// readID keeps the parts of the pair that are legal.
func (im *image) readID(keys mapping) {
	im.entry.SchematicID = im.readPart(keys, schematicIDKey, golden.ValidateSchematicID)
	im.entry.Version = im.readPart(keys, versionKey, golden.ValidateVersion)
	if len(im.faults) > 0 {
		return
	}
	if name := im.entry.Name(); len(name) > validation.DNS1123SubdomainMaxLength {
		im.faults = append(im.faults, fault{message: fmt.Sprintf("the name of the golden would have %d characters, at most %d are accepted",
			len(name), validation.DNS1123SubdomainMaxLength)})
		im.entry.ID = golden.ID{}
	}
}

func (im *image) readPart(keys mapping, key string, validate func(string) []string) string {
	text, wrong := keys.text(key, false)
	if wrong == "" && text == "" {
		wrong = "is required"
	}
	if wrong == "" {
		if problems := validate(text); len(problems) > 0 {
			wrong = fmt.Sprintf("%s is not accepted: %s", quote(text), strings.Join(problems, "; "))
		}
	}
	if wrong != "" {
		im.faults = append(im.faults, fault{key: key, message: wrong})
		return ""
	}
	return text
}

// readSetting takes the value of the item, or else the default.
func (im *image) readSetting(keys mapping, setting setting, inherited value) {
	own := setting.read(keys)
	switch {
	case own.wrong != "":
		im.faults = append(im.faults, fault{key: setting.key, message: own.wrong})
	case own.text != "":
		*setting.of(&im.entry) = own.text
	case inherited.wrong != "":
		im.faults = append(im.faults, fault{key: setting.key,
			message: fmt.Sprintf("is not set, and the default of the catalog is wrong: %s %s", setting.key, inherited.wrong)})
	default:
		*setting.of(&im.entry) = inherited.text
	}
}

// rejectDuplicates rejects every item whose pair another item declares as well, for nothing tells which of
// them is meant. An item that is wrong in something else counts.
func rejectDuplicates(images []image) {
	places := map[golden.ID][]string{}
	for index, image := range images {
		if image.hasPair() {
			places[image.entry.ID] = append(places[image.entry.ID], itemPath(index).String())
		}
	}
	for index := range images {
		image := &images[index]
		if !image.hasPair() || len(places[image.entry.ID]) == 1 {
			continue
		}
		image.faults = append(image.faults, fault{message: fmt.Sprintf(
			"the pair of schematicID %q and version %q is declared by %s, and none of them is used: leave one",
			image.entry.SchematicID, image.entry.Version, enumerate(places[image.entry.ID]))})
	}
}

func (im *image) hasPair() bool {
	return im.entry.SchematicID != "" && im.entry.Version != ""
}

// rejection reports all faults of an item as one.
func (im *image) rejection(index int) Rejection {
	rejection := Rejection{ID: im.entry.ID, Path: itemPath(index).String()}
	if len(im.faults) == 1 && im.faults[0].key != "" {
		rejection.Path = itemPath(index).Child(im.faults[0].key).String()
		rejection.Message = im.faults[0].message
		return rejection
	}
	messages := make([]string, 0, len(im.faults))
	for _, fault := range im.faults {
		messages = append(messages, strings.TrimSpace(fault.key+" "+fault.message))
	}
	rejection.Message = strings.Join(messages, "; ")
	return rejection
}

// warnings reports the defaults that are wrong and the keys that nothing reads.
func warnings(document mapping, defaults []value) []string {
	var messages []string
	for i, setting := range settings() {
		if wrong := defaults[i].wrong; wrong != "" {
			messages = append(messages, fmt.Sprintf("%s %s; every image that does not set it is rejected", setting.key, wrong))
		}
	}
	if message := unknownKeys(document, documentKeys()); message != "" {
		messages = append(messages, message)
	}
	return messages
}

// unknownKeys returns what is wrong with the keys of a mapping, nothing if all of them are accepted.
func unknownKeys(keys mapping, accepted []string) string {
	var unknown []string
	for _, key := range keys.keys {
		if !slices.Contains(accepted, key) {
			unknown = append(unknown, quote(key))
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return fmt.Sprintf("unknown key %s, accepted are %s", enumerate(unknown), strings.Join(accepted, ", "))
}

func itemPath(index int) *field.Path {
	return field.NewPath(imagesKey).Index(index)
}

// enumerate joins what a message lists, as far as a reader wants to know.
func enumerate(words []string) string {
	if more := len(words) - enumerationLimit; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:enumerationLimit], ", "), more)
	}
	return strings.Join(words, ", ")
}

func quote(text string) string {
	return strconv.Quote(freeform.Clip(text, wordLimit))
}
