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

package inventory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// AwaitDataVolumes returns when everything that is published of an image takes in what the DataVolumes were at a
// resourceVersion, such as the one that a write has returned.
func (i *Inventory) AwaitDataVolumes(ctx context.Context, image, resourceVersion string) error {
	return i.await(ctx, i.dataVolumes, image, resourceVersion)
}

// AwaitClaims is AwaitDataVolumes for claims.
func (i *Inventory) AwaitClaims(ctx context.Context, image, resourceVersion string) error {
	return i.await(ctx, i.claims, image, resourceVersion)
}

func (i *Inventory) await(ctx context.Context, s *source, image, resourceVersion string) error {
	for {
		done, progress, err := i.shows(s, image, resourceVersion)
		if done || err != nil {
			return err
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s shows version %s of the %s: %w", image, resourceVersion, s.name, ctx.Err())
		}
	}
}

// shows tells whether a source has come as far as a version and nothing of that is left to publish for an
// image, and returns a channel that is closed when that may have changed.
func (i *Inventory) shows(s *source, image, resourceVersion string) (bool, <-chan struct{}, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s.version != "" {
		order, err := resourceversion.CompareResourceVersion(s.version, resourceVersion)
		if err != nil {
			return false, nil, fmt.Errorf("compare versions of the %s: %w", s.name, err)
		}
		if order >= 0 && !i.index.dirty.Has(image) && !i.unpublished.Has(image) {
			return true, nil, nil
		}
	}
	if i.progress == nil {
		i.progress = make(chan struct{})
	}
	return false, i.progress, nil
}

// progressed tells those who wait. The caller holds the lock.
func (i *Inventory) progressed() {
	if i.progress != nil {
		close(i.progress)
		i.progress = nil
	}
}

// settled says that nothing is left to publish for an image of what was known when it was projected.
func (i *Inventory) settled(image string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unpublished.Delete(image)
	i.progressed()
}
