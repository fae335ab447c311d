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
	"strings"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

// Catalog is what a document declares. It must not be modified once it is shared.
type Catalog struct {
	// Entries are valid, no two have the same pair, and they are sorted by the name of the golden.
	Entries []Entry
	// Rejected says which entries of the document are not in force, in the order of the document.
	Rejected []Rejection
	// Warnings are about the document as a whole. They reject nothing by themselves.
	Warnings []string
}

// Entry is an image that may exist. All values are those in force: what the entry leaves out comes from the
// defaults of its catalog.
type Entry struct {
	golden.ID

	// ImageFactoryURL has no trailing slash. It may hold credentials.
	ImageFactoryURL string
	// Storage is the size as it was written.
	Storage string
	// StorageClass is empty where the default of the cluster is to be used.
	StorageClass string
	// Checksum of the compressed image, as <algorithm>:<hash>; empty where nothing is to be compared.
	Checksum string
	// CertConfigMap names the ConfigMap that holds the CA of the factory; empty where the usual CAs do.
	CertConfigMap string
}

// Rejection is an entry of the document that is not in force. It quotes no URL, for that may hold credentials.
type Rejection struct {
	// ID holds the parts of the pair that are legal, the others are empty.
	ID golden.ID
	// Path of the value that is wrong, or of the entry if that is not one value.
	Path string
	// Message says what is wrong and what would be accepted.
	Message string
}

// Empty returns a catalog that declares nothing.
func Empty() *Catalog {
	return &Catalog{}
}

// Lookup returns the entry that declares the pair.
func (c *Catalog) Lookup(id golden.ID) (Entry, bool) {
	index, found := slices.BinarySearchFunc(c.Entries, id.Name(), func(entry Entry, name string) int {
		return strings.Compare(entry.Name(), name)
	})
	// A pair that is not legal may have the name of one that is.
	if !found || c.Entries[index].ID != id {
		return Entry{}, false
	}
	return c.Entries[index], true
}

// String names the entry by its place and, as far as it is known, by its pair.
func (r Rejection) String() string {
	if r.ID == (golden.ID{}) {
		return fmt.Sprintf("%s: %s", r.Path, r.Message)
	}
	return fmt.Sprintf("%s (schematicID %q, version %q): %s", r.Path, r.ID.SchematicID, r.ID.Version, r.Message)
}
