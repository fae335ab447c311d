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
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// index holds the values of all kinds and finds those that matter to an image or to a catalog entry, which
// have one name. What it has learned since it was last asked is the set of names to project again.
//
// It does not lock.
type index struct {
	goldensNamespace text

	dataVolumes table[dataVolume]
	claims      table[claim]
	pools       table[*pool.Pool]
	classes     table[storageclass.Class]
	profiles    table[profile]
	cdis        table[cdi]
	documents   table[*document]

	// images are the names that a golden or a claim in the goldens' namespace has.
	images sets.Set[string]
	// claimedBy lists the goldens whose claim has another name than they, by the name of the claim.
	claimedBy multimap[string, string]
	// clonesOf adds up the clones of each claim in the goldens' namespace.
	clonesOf map[text]*clones
	// diskOf lists the disks whose claim has another name than they, by claim.
	diskOf multimap[key, key]
	// poolsOf lists the pools that ask for an image, by its name.
	poolsOf map[string]*consumers

	// catalog is the last one that could be read, and parsed is false until one was.
	catalog *catalog.Catalog
	parsed  bool
	// declarations are what it says about each image that it names.
	declarations map[string]projection.Declaration
	// reportDue is true while nobody was told what became of the document.
	reportDue bool

	// classList and strategies are what the tables say, nil until they are asked for.
	classList  storageclass.Classes
	strategies *storageclass.Profiles

	dirty sets.Set[string]
}

func newIndex(goldensNamespace string) *index {
	x := &index{
		goldensNamespace: newText(goldensNamespace),
		images:           sets.New[string](),
		claimedBy:        multimap[string, string]{},
		clonesOf:         map[text]*clones{},
		diskOf:           multimap[key, key]{},
		poolsOf:          map[string]*consumers{},
		catalog:          catalog.Empty(),
		declarations:     map[string]projection.Declaration{},
		reportDue:        true,
		dirty:            sets.New[string](),
	}
	x.dataVolumes = newTable(sameDataVolume, x.dataVolumeMoved)
	x.claims = newTable(sameClaim, x.claimMoved)
	x.pools = newTable(samePool, x.poolMoved)
	x.classes = newTable(sameClass, x.classMoved)
	x.profiles = newTable(same[profile], x.profileMoved)
	x.cdis = newTable(same[cdi], x.cdiMoved)
	x.documents = newTable(sameDocument, x.documentMoved)
	return x
}

// takeDirty returns the names of the images and catalog entries that may have changed since it was last called, sorted.
func (x *index) takeDirty() []string {
	names := sets.List(x.dirty)
	clear(x.dirty)
	return names
}

// markAll makes every image and every catalog entry dirty.
func (x *index) markAll() {
	for name := range x.images {
		x.dirty.Insert(name)
	}
	for name := range x.declarations {
		x.dirty.Insert(name)
	}
	for name := range x.poolsOf {
		x.dirty.Insert(name)
	}
}

// known is true for the name of an image or of a catalog entry.
func (x *index) known(name string) bool {
	_, declared := x.declarations[name]
	return declared || x.images.Has(name) || x.poolsOf[name] != nil
}

// image returns everything known about an image name. What it returns is never modified afterwards.
func (x *index) image(name string) (projection.Image, bool) {
	id, ok := golden.ParseName(name)
	if !ok {
		return projection.Image{}, false
	}
	out := projection.Image{ID: id, Classes: x.classValues(), Profiles: x.profileValues(), Catalog: x.declarations[name]}
	out.DataVolume = x.golden(name)
	claimName := x.claimName(name)
	out.Claim = x.claims.values[key{x.goldensNamespace, claimName}].golden
	if c := x.poolsOf[name]; c != nil {
		out.Pools = c.list()
	}
	if c := x.clonesOf[newText(claimName)]; c != nil {
		out.Disks, out.Clones = c.poolDisks(), c.loose
	}
	return out, true
}

func (x *index) golden(name string) *golden.DataVolume {
	return x.dataVolumes.values[key{x.goldensNamespace, name}].golden
}

// claimName is the name of the claim that holds an image.
func (x *index) claimName(image string) string {
	if dv := x.golden(image); dv != nil {
		return dv.Claim()
	}
	return image
}

// markUsers makes the names dirty of the images that the claim of that name in the goldens' namespace holds.
func (x *index) markUsers(claim string) {
	for image := range x.claimedBy[claim] {
		x.dirty.Insert(image)
	}
	if x.known(claim) && x.claimName(claim) == claim {
		x.dirty.Insert(claim)
	}
}

func (x *index) dataVolumeMoved(k key, from, to dataVolume) {
	if from.golden != to.golden {
		x.goldenMoved(k.name, from.golden, to.golden)
	}
	x.cloneMoved(x.cloneOf(k, from.disk), x.cloneOf(k, to.disk))
	if ownClaim := (key{k.namespace, from.disk.claim}); from.disk.isDisk() && ownClaim != k {
		x.diskOf.remove(ownClaim, k)
	}
	if ownClaim := (key{k.namespace, to.disk.claim}); to.disk.isDisk() && ownClaim != k {
		x.diskOf.add(ownClaim, k)
	}
}

func (x *index) goldenMoved(name string, from, to *golden.DataVolume) {
	if from != nil && from.Claim() != name {
		x.claimedBy.remove(from.Claim(), name)
	}
	if to != nil && to.Claim() != name {
		x.claimedBy.add(to.Claim(), name)
	}
	x.imageMoved(name)
	x.dirty.Insert(name)
}

// imageMoved updates the set of images. It is called with names that are goldens' only.
func (x *index) imageMoved(name string) {
	k := key{x.goldensNamespace, name}
	if x.dataVolumes.values[k].golden != nil || x.claims.values[k].golden != nil {
		x.images.Insert(name)
	} else {
		x.images.Delete(name)
	}
}

func (x *index) claimMoved(k key, from, to claim) {
	if from.golden != to.golden {
		x.markUsers(k.name) // while the image may still be known
		if _, ok := golden.ParseName(k.name); ok {
			x.imageMoved(k.name)
		}
		x.markUsers(k.name)
	}
	if from.class == to.class {
		return
	}
	for disk := range x.disksOn(k) {
		d := x.dataVolumes.values[disk].disk
		x.cloneMoved(newClone(disk, d, from.class), newClone(disk, d, to.class))
	}
}

// disksOn are the disks whose claim is k.
func (x *index) disksOn(k key) sets.Set[key] {
	disks := x.diskOf[k]
	if d := x.dataVolumes.values[k].disk; d.isDisk() && d.claim == k.name {
		return disks.Clone().Insert(k)
	}
	return disks
}

// cloneOf is what a disk adds to the counters now.
func (x *index) cloneOf(k key, d disk) clone {
	return newClone(k, d, x.claims.values[key{k.namespace, d.claim}].class)
}

func (x *index) cloneMoved(from, to clone) {
	if from == to {
		return
	}
	if from != (clone{}) {
		c := x.clonesOf[from.source]
		if c.count(from, -1); c.empty() {
			delete(x.clonesOf, from.source)
		}
		x.markUsers(from.source.String())
	}
	if to != (clone{}) {
		c := x.clonesOf[to.source]
		if c == nil {
			c = newClones()
			x.clonesOf[to.source] = c
		}
		c.count(to, 1)
		x.markUsers(to.source.String())
	}
}

func (x *index) poolMoved(k key, from, to *pool.Pool) {
	if from != nil {
		name := from.Selection.Image.Name()
		c := x.poolsOf[name]
		if c.remove(k); len(c.pools) == 0 {
			delete(x.poolsOf, name)
		}
		x.dirty.Insert(name)
	}
	if to != nil {
		name := to.Selection.Image.Name()
		c := x.poolsOf[name]
		if c == nil {
			c = &consumers{pools: map[key]*pool.Pool{}}
			x.poolsOf[name] = c
		}
		c.add(k, to)
		x.dirty.Insert(name)
	}
}

func (x *index) classMoved(key, storageclass.Class, storageclass.Class) {
	x.classList = nil
	x.markAll()
}

func (x *index) classValues() storageclass.Classes {
	if x.classList == nil {
		x.classList = slices.Collect(maps.Values(x.classes.values))
		slices.SortFunc(x.classList, func(a, b storageclass.Class) int { return strings.Compare(a.Name, b.Name) })
	}
	return x.classList
}

func (x *index) profileMoved(key, profile, profile) {
	x.strategies = nil
	x.markAll()
}

func (x *index) cdiMoved(_ key, _, _ cdi) {
	if x.strategies != nil && x.strategies.Override == x.override() {
		return
	}
	x.strategies = nil
	x.markAll()
}

func (x *index) profileValues() storageclass.Profiles {
	if x.strategies == nil {
		strategies := make(map[string]string, len(x.profiles.values))
		for _, p := range x.profiles.values {
			strategies[p.class] = p.strategy
		}
		x.strategies = &storageclass.Profiles{Override: x.override(), Strategies: strategies}
	}
	return *x.strategies
}

// override is that of the oldest CDI object, the first by name among equals.
func (x *index) override() string {
	var oldest key
	var found cdi
	for k, c := range x.cdis.values {
		if !found.present || c.created.Before(found.created) || c.created.Equal(found.created) && k.name < oldest.name {
			oldest, found = k, c
		}
	}
	return found.override
}

func same[V comparable](a, b V) bool { return a == b }

func sameDataVolume(a, b dataVolume) bool {
	return a.disk == b.disk && equality.Semantic.DeepEqual(a.golden, b.golden)
}

func sameClaim(a, b claim) bool {
	return a.class == b.class && equality.Semantic.DeepEqual(a.golden, b.golden)
}

func samePool(a, b *pool.Pool) bool { return equality.Semantic.DeepEqual(a, b) }

func sameDocument(a, b *document) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.uid == b.uid && a.err == b.err && equality.Semantic.DeepEqual(a.catalog, b.catalog)
}

func sameClass(a, b storageclass.Class) bool {
	created := a.Created
	a.Created = b.Created
	return a == b && created.Equal(b.Created)
}
