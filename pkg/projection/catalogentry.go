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
	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
)

// Reasons of the conditions Valid and Materialized.
const (
	ReasonDeclared   = "Declared"
	ReasonCreated    = "Created"
	ReasonNotCreated = "NotCreated"
)

// entryUIDSpace is the name space of the uids of catalog entries. They must stay the same over restarts and
// releases, so it must never change.
const entryUIDSpace = "3b1d6c0e-9a74-4f3b-8a53-6f7d1b0c2e95"

// CatalogEntry returns the object that in amounts to, or nil where the catalog has no entry of that name and
// no pool asks for it. The result shares nothing with in that anybody modifies.
//
// The object has no creationTimestamp: an entry has none of its own, and that of the ConfigMap says nothing
// about an entry that was added later or that a pool brought about. previous and now are as for WorkerImage.
func CatalogEntry(in Entry, previous *images.CatalogEntry, now metav1.Time) *images.CatalogEntry {
	if !in.Catalog.Present() && len(in.Pools) == 0 {
		return nil
	}
	out := &images.CatalogEntry{
		ObjectMeta: metav1.ObjectMeta{Name: in.ID.Name(), UID: entryUID(in.ID)},
		Spec:       entrySpec(in),
		Status: images.CatalogEntryStatus{
			Declared:     in.Catalog.Present(),
			Materialized: in.WorkerImage != nil,
			Phase:        entryPhase(in),
			Pools:        entryPools(in),
			Conditions:   []metav1.Condition{valid(in), materialized(in)},
		},
	}
	out.Status.PoolCount = int32(len(out.Status.Pools))
	var before []metav1.Condition
	if previous != nil && (isKnown(previous) || !isKnown(out)) {
		before = previous.Status.Conditions
	}
	for i := range out.Status.Conditions {
		c := &out.Status.Conditions[i]
		c.LastTransitionTime = transitionTime(*c, before, now, now)
	}
	return out
}

// AskedBy makes an entry what it is where no pools but these ask for it, and returns false where there is none
// then. Its conditions are the same whoever asks.
func AskedBy(entry *images.CatalogEntry, pools []images.PoolStatus) bool {
	entry.Status.Pools, entry.Status.PoolCount = pools, int32(len(pools))
	if len(pools) > 0 {
		return true
	}
	if entry.Status.Phase == images.CatalogEntryMissing {
		entry.Status.Phase = images.CatalogEntryAvailable
	}
	return isKnown(entry)
}

// isKnown is true for an entry of which everybody may know. When it becomes so, its conditions begin: what they
// were before is what the pools that asked for it did.
func isKnown(entry *images.CatalogEntry) bool {
	return entry.Status.Declared || entry.Status.Materialized
}

func entryUID(id golden.ID) types.UID {
	return types.UID(uuid.NewSHA1(uuid.MustParse(entryUIDSpace), []byte(id.Name())).String())
}

// entrySpec holds no more than the identity where no entry is in force.
func entrySpec(in Entry) images.CatalogEntrySpec {
	out := images.CatalogEntrySpec{SchematicID: in.ID.SchematicID, Version: in.ID.Version}
	if entry := in.Catalog.Entry; entry != nil {
		out.ImageFactoryURL = golden.RedactURL(entry.ImageFactoryURL)
		out.Storage = entry.Storage
		out.StorageClassName = entry.StorageClass
	}
	return out
}

// entryPhase is that of the image where there is one. An entry that is rejected is Invalid whether or not a
// pool asks for it, since correcting it comes first.
func entryPhase(in Entry) images.CatalogEntryPhase {
	switch {
	case in.WorkerImage != nil:
		return images.CatalogEntryPhase(in.WorkerImage.Status.Phase)
	case in.Catalog.Present() && in.Catalog.Entry == nil:
		return images.CatalogEntryInvalid
	case len(in.Sources.unreadable(kindDataVolumes, kindClaims)) > 0:
		return images.CatalogEntryPhase(images.WorkerImageUnknown)
	case len(in.Pools) > 0:
		return images.CatalogEntryMissing
	default:
		return images.CatalogEntryAvailable
	}
}

// entryPools are those of the image where there is one. Disks that were cloned from an image that is gone
// need nothing of it.
func entryPools(in Entry) []images.PoolStatus {
	if in.WorkerImage != nil {
		return in.WorkerImage.Status.Pools
	}
	var missing pool.Image
	if unreadable := in.Sources.unreadable(kindDataVolumes, kindClaims); len(unreadable) > 0 {
		missing = pool.Image{Exists: true, State: unknownState(unreadable)}
	}
	return askingPools(in.Image, missing)
}

// valid tells whether an entry is in force.
func valid(in Entry) metav1.Condition {
	c := metav1.Condition{Type: images.ConditionValid, Status: metav1.ConditionFalse}
	switch unreadable := in.Sources.unreadable(kindCatalog); {
	case len(unreadable) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonSourceNotReadable, notReadable(unreadable)
	case in.Catalog.Entry != nil:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonDeclared
	case in.Catalog.Present():
		c.Reason, c.Message = ReasonRejected, rejected(in.Catalog.Rejections)
	default:
		c.Reason = ReasonNotDeclared
		c.Message = "At least one pool asks for an image that the catalog does not declare. " +
			"Declare it in the catalog, or select another in the pool."
	}
	return c
}

// materialized tells whether the image is there. It says nothing of pools, for whom the phase is.
func materialized(in Entry) metav1.Condition {
	c := metav1.Condition{Type: images.ConditionMaterialized, Status: metav1.ConditionFalse, Reason: ReasonNotCreated}
	switch unreadable := in.Sources.unreadable(kindDataVolumes, kindClaims); {
	case len(unreadable) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonSourceNotReadable, notReadable(unreadable)
	case in.WorkerImage != nil:
		c.Status, c.Reason = metav1.ConditionTrue, ReasonCreated
	case in.Catalog.Entry == nil:
		c.Message = "It can be created when the catalog declares it."
	default:
		c.Message = "Create the WorkerImage to import it."
	}
	return c
}
