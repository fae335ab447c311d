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

package snapshot

import (
	"context"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

// Snapshot is a set of objects that were read from files.
type Snapshot struct {
	paths []string
	stdin []byte

	dataVolumes, claims, storageClasses, storageProfiles, cdis, pools, configMaps *source
}

// Open reads manifests: files, folders with everything below them, and "-" for stdin.
func Open(ctx context.Context, paths []string, stdin io.Reader) (*Snapshot, error) {
	s := &Snapshot{
		paths:           paths,
		dataVolumes:     newSource(),
		claims:          newSource(),
		storageClasses:  newSource(),
		storageProfiles: newSource(),
		cdis:            newSource(),
		pools:           newSource(),
		configMaps:      newSource(),
	}
	if slices.Contains(paths, standardInput) {
		var err error
		if s.stdin, err = io.ReadAll(stdin); err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
	}
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Read a snapshot", "objects", len(c.objects), "files", len(c.files), "ignored", ignored(c))
	return s, nil
}

// ignored lists the kinds that a snapshot has no use for, each with how many objects of it there were.
func ignored(c *content) []string {
	out := make([]string, 0, len(c.ignored))
	for kind, n := range c.ignored {
		out = append(out, fmt.Sprintf("%d %s", n, kind.GroupKind()))
	}
	slices.Sort(out)
	return out
}

// load reads everything and passes on what changed, or nothing after an error.
func (s *Snapshot) load() (*content, error) {
	c, err := read(s.paths, s.stdin)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	for kind, source := range s.byKind() {
		objects := map[types.NamespacedName]object{}
		for i, o := range c.objects {
			if i.kind == kind {
				objects[i.name] = o
			}
		}
		source.replace(objects)
	}
	return c, nil
}

func (s *Snapshot) byKind() map[schema.GroupVersionKind]*source {
	return map[schema.GroupVersionKind]*source{
		dataVolumeKind:     s.dataVolumes,
		claimKind:          s.claims,
		storageClassKind:   s.storageClasses,
		storageProfileKind: s.storageProfiles,
		cdiKind:            s.cdis,
		poolKind:           s.pools,
		configMapKind:      s.configMaps,
	}
}

// Sources are the list-watches of the snapshot. A kind of which there is no object can be read, and is
// empty.
func (s *Snapshot) Sources() inventory.Sources {
	return inventory.Sources{
		DataVolumes:     s.dataVolumes,
		Claims:          s.claims,
		StorageClasses:  s.storageClasses,
		StorageProfiles: s.storageProfiles,
		CDIs:            s.cdis,
		Pools:           s.pools,
		Catalog:         s.configMaps,
	}
}
