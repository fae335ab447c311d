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
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// world is what a cluster holds, by resource.
type world map[string]map[types.NamespacedName]object

func newWorld() world {
	w := world{}
	for _, resource := range resources {
		w[resource] = map[types.NamespacedName]object{}
	}
	return w
}

// catalogAfter is the catalog in force after an event, when before was in force.
func (w world) catalogAfter(t *testing.T, before *catalog.Catalog) *catalog.Catalog {
	t.Helper()
	o, ok := w["catalog"][catalogName]
	if !ok {
		return catalog.Empty()
	}
	parsed, err := catalog.Parse([]byte(o.(*corev1.ConfigMap).Data["catalog.yaml"]))
	if err != nil {
		return before
	}
	return parsed
}

// declaration looks for an image in a whole catalog.
func declaration(c *catalog.Catalog, name string) projection.Declaration {
	var out projection.Declaration
	for _, entry := range c.Entries {
		if entry.Name() == name {
			out.Entry = &entry
		}
	}
	for _, r := range c.Rejected {
		if r.ID == imageID(name) {
			out.Rejections = append(out.Rejections, r)
		}
	}
	return out
}

var resources = []string{"datavolumes", "persistentvolumeclaims", "storageclasses", "storageprofiles", "cdis", "kubernetesnodes", "catalog"}

func (w world) dataVolume(namespace, name string) *unstructured.Unstructured {
	u, _ := w["datavolumes"][types.NamespacedName{Namespace: namespace, Name: name}].(*unstructured.Unstructured)
	return u
}

func (w world) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	pvc, _ := w["persistentvolumeclaims"][types.NamespacedName{Namespace: namespace, Name: name}].(*corev1.PersistentVolumeClaim)
	return pvc
}

// image computes the inputs of an image from scratch, by walking everything.
func (w world) image(name string) projection.Image {
	out := projection.Image{ID: imageID(name), Profiles: storageclass.Profiles{Override: w.override(), Strategies: map[string]string{}}}
	claimName := name
	if u := w.dataVolume(goldens, name); u != nil {
		out.DataVolume = golden.DataVolumeFrom(u.Object)
		claimName = out.DataVolume.Claim()
	}
	if pvc := w.claim(goldens, claimName); pvc != nil && !strings.HasPrefix(claimName, "prime-") {
		out.Claim = golden.ClaimFrom(pvc)
	}
	for _, o := range w["storageclasses"] {
		out.Classes = append(out.Classes, storageclass.FromStorageClass(o.(*storagev1.StorageClass)))
	}
	for _, o := range w["storageprofiles"] {
		class, strategy := storageclass.StrategyFromProfile(o.(*unstructured.Unstructured).Object)
		out.Profiles.Strategies[class] = strategy
	}
	for _, o := range w["kubernetesnodes"] {
		if p := pool.From(o.(*unstructured.Unstructured).Object, platform); p.Selection.Consumes && p.Selection.Image.Name() == name {
			out.Pools = append(out.Pools, p)
		}
	}
	out.Disks, out.Clones = w.disks(claimName)
	return sorted(out)
}

func (w world) disks(source string) (disks []projection.PoolDisks, loose int) {
	type poolName struct{ namespace, pool string }
	counts := map[poolName]projection.PoolDisks{}
	classes := map[poolName][]string{}
	for _, o := range w["datavolumes"] {
		d, ok := pool.DiskFrom(o.(*unstructured.Unstructured).Object, goldens)
		if !ok || d.SourceClaim != source {
			continue
		}
		if d.Pool == "" {
			if d.InFlight {
				loose++
			}
			continue
		}
		at := poolName{d.Namespace, d.Pool}
		n := counts[at]
		n.Namespace, n.Pool = d.Namespace, d.Pool
		switch d.State {
		case pool.DiskCloned:
			n.Cloned++
			if class := cmp.Or(d.StorageClass, w.classOfClaim(d.Namespace, d.ClaimName)); class != "" {
				classes[at] = append(classes[at], class)
			}
		case pool.DiskFailed:
			n.Failed++
		case pool.DiskCloning:
			n.Cloning++
		}
		if d.InFlight {
			n.InFlight++
		}
		counts[at] = n
	}
	for at, n := range counts {
		n.StorageClass = mostFrequent(classes[at])
		disks = append(disks, n)
	}
	return disks, loose
}

func (w world) classOfClaim(namespace, name string) string {
	pvc := w.claim(namespace, name)
	if pvc == nil || namespace == goldens && strings.HasPrefix(name, "prime-") {
		return ""
	}
	claim := golden.ClaimFrom(pvc)
	if namespace != goldens && claim.Owner == "" && pvc.Annotations["kubernetes-worker-image.cozystack.io/golden"] == "" {
		return ""
	}
	return ptr.Deref(claim.StorageClass, "")
}

func mostFrequent(names []string) string {
	slices.Sort(names)
	best, most := "", 0
	for _, name := range slices.Compact(slices.Clone(names)) {
		n := 0
		for _, other := range names {
			if other == name {
				n++
			}
		}
		if n > most {
			best, most = name, n
		}
	}
	return best
}

func (w world) override() string {
	var all []*unstructured.Unstructured
	for _, o := range w["cdis"] {
		all = append(all, o.(*unstructured.Unstructured))
	}
	if len(all) == 0 {
		return ""
	}
	oldest := slices.MinFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
	})
	return storageclass.OverrideFromCDI(oldest.Object)
}

// imageNames are those whose inputs are compared. There is not always a golden of that name.
var imageNames = []string{goldA, goldB, "talos-worker-ccc-v1.0.0", "talos-worker-aaa-v1.14.0"}

// sameInputs compares inputs in which everything is in order.
func sameInputs(a, b projection.Image) bool {
	equalities := equality.Semantic.Copy()
	if err := equalities.AddFunc(time.Time.Equal); err != nil {
		panic(err)
	}
	return equalities.DeepEqual(a, b)
}

// sorted puts in order what comes in any.
func sorted(in projection.Image) projection.Image {
	in.Pools, in.Disks = slices.Clone(in.Pools), slices.Clone(in.Disks)
	slices.SortFunc(in.Pools, func(a, b pool.Pool) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(in.Disks, func(a, b projection.PoolDisks) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Pool, b.Pool))
	})
	slices.SortFunc(in.Classes, func(a, b storageclass.Class) int { return strings.Compare(a.Name, b.Name) })
	return in
}

// randomObject returns an object of a resource, of which there are so few names that they often meet.
func randomObject(r *rand.Rand, resource string) object {
	switch resource {
	case "datavolumes":
		if r.IntN(3) == 0 {
			return randomGolden(r)
		}
		return randomDisk(r)
	case "persistentvolumeclaims":
		return randomClaim(r)
	case "storageclasses":
		return classObject(one(r, "replicated", "local", "nvme"), one(r, "a", "storageclass.kubernetes.io/is-default-class"))
	case "storageprofiles":
		return profileObject(one(r, "replicated", "local"), one(r, "csi-clone", "copy", ""))
	case "catalog":
		return randomCatalog(r)
	case "cdis":
		cdi := cdiObject(one(r, "cdi", "another"), one(r, "", "copy", "snapshot"))
		cdi.SetCreationTimestamp(metav1.NewTime(start.Add(time.Duration(r.IntN(2)) * time.Second)))
		return cdi
	default:
		return randomPool(r)
	}
}

func one[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func randomGolden(r *rand.Rand) object {
	return goldenObject(one(r, append([]string{"vm-default-images-ubuntu", "talos-worker-bad"}, imageNames...)...),
		phase(one(r, "", "ImportInProgress", "Succeeded", "Failed")),
		progress(one(r, "N/A", "12.5%", "100.0%")),
		claimNamed(one(r, "", "", goldA, goldB, "adopted", "prime-123")))
}

func randomDisk(r *rand.Rand) object {
	namespace := one(r, "tenant-a", "tenant-b", goldens)
	name := one(r, "disk-1", "disk-2", "disk-3", "disk-4")
	if namespace == goldens {
		name = one(r, append([]string{name}, imageNames...)...) // a golden that is a clone
	}
	disk := diskObject(namespace, name, one(r, append([]string{"adopted", "vm-default-images-ubuntu"}, imageNames...)...), one(r, diskPoolA, "kubernetes-k1-md1"),
		phase(one(r, "", "CSICloneInProgress", "Succeeded", "Succeeded", "Succeeded", "Failed")),
		claimNamed(one(r, "", "", name, "disk-1", "another")))
	if r.IntN(2) == 0 {
		classInSpec(one(r, "replicated", "local", ""))(disk.Object)
	}
	if r.IntN(4) == 0 {
		unstructured.RemoveNestedField(disk.Object, "metadata", "annotations")
	}
	return disk
}

func randomClaim(r *rand.Rand) object {
	namespace := one(r, "tenant-a", "tenant-b", goldens, goldens)
	names := []string{"disk-1", "disk-2", "disk-3", "disk-4", "another"}
	if namespace == goldens {
		names = append([]string{"adopted", "prime-123", "disk-1"}, imageNames...)
	}
	claim := claimObject(namespace, one(r, names...), one(r, "replicated", "local", "nvme", ""))
	if r.IntN(4) == 0 {
		claim.OwnerReferences = nil
	}
	if r.IntN(4) == 0 {
		claim.Annotations = map[string]string{"kubernetes-worker-image.cozystack.io/golden": goldA}
	}
	claim.Status.Phase = one(r, corev1.ClaimBound, corev1.ClaimPending)
	return claim
}

func randomCatalog(r *rand.Rand) object {
	if r.IntN(8) == 0 {
		return catalogObject(one(r, noCatalog, "", "images: null"))
	}
	document := fmt.Sprintf("storage: %s\nimages:\n", one(r, "6Gi", "6Gi", "8Gi", "big"))
	for range r.IntN(5) {
		id := imageID(one(r, imageNames...))
		document += fmt.Sprintf("- {schematicID: %s, version: %s%s}\n", id.SchematicID, id.Version, one(r, "", "", "", ", storageClass: local", ", storage: big"))
	}
	return catalogObject(document)
}

func randomPool(r *rand.Rand) object {
	p := poolObject(one(r, "tenant-a", "tenant-b"), one(r, poolA, "k1-md1", "k1-md2"), imageID(one(r, imageNames...)),
		set(one(r, "replicated", "local", ""), "spec", "storageClass"))
	switch r.IntN(8) {
	case 0:
		set(map[string]any{}, "spec", "osImage", "factory")(p.Object)
	case 1:
		set(map[string]any{}, "spec", "osImage", "builtin")(p.Object)
	case 2:
		unstructured.RemoveNestedField(p.Object, "spec", "osImage")
	case 3:
		set("Illegal!", "spec", "osImage", "builtin", "version")(p.Object)
	}
	return p
}

// stores returns the stores of an Inventory that does not run, by resource.
func stores(i *Inventory) map[string]cache.ReflectorStore {
	out := map[string]cache.ReflectorStore{}
	for _, s := range i.sources {
		out[s.name] = s.store
	}
	return out
}

// event applies a random change to the world and to a store, the way watches and relists report it.
func event(t *testing.T, r *rand.Rand, w world, resource string, store cache.ReflectorStore) string {
	t.Helper()
	objects := w[resource]
	var err error
	var what string
	switch o := randomObject(r, resource); r.IntN(12) {
	case 0: // a relist that has missed deletions and changes
		for name := range objects {
			if r.IntN(3) == 0 {
				delete(objects, name)
			}
		}
		objects[nameOf(o)] = o
		what, err = "relist", store.Replace(listed(t, r, objects, store), "")
	case 1, 2, 3:
		delete(objects, nameOf(o))
		what, err = "delete "+nameOf(o).String(), store.Delete(o)
	case 4: // the same again
		if old, ok := objects[nameOf(o)]; ok {
			what, err = "repeat "+nameOf(o).String(), store.Update(old.DeepCopyObject())
		}
	default:
		objects[nameOf(o)] = o
		what, err = "put "+nameOf(o).String(), store.Update(o.DeepCopyObject())
	}
	if err != nil {
		t.Fatal(err)
	}
	return what + " of " + resource
}

// listed is what a reflector hands to Replace: objects of a plain list, or what is left of streamed ones.
func listed(t *testing.T, r *rand.Rand, objects map[types.NamespacedName]object, store cache.ReflectorStore) []any {
	t.Helper()
	transform := func(o any) (any, error) { return o, nil }
	if r.IntN(2) == 0 {
		transform = store.(cache.TransformingStore).Transformer()
	}
	var out []any
	for _, o := range objects {
		item, err := transform(o.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, item)
	}
	return out
}

// newIdle returns an Inventory that does not run.
func newIdle() *Inventory {
	return New(Config{
		GoldensNamespace: goldens, Platform: platform, Catalog: catalogName, CatalogKey: "catalog.yaml",
		Clock: clocktesting.NewFakeClock(start),
	})
}

func TestIndexesEqualARecomputationFromScratch(t *testing.T) {
	const seeds, events = 8, 600
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			i, w := newIdle(), newWorld()
			stores, before := stores(i), map[string]projection.Image{}
			inForce := catalog.Empty()
			for _, name := range imageNames {
				before[name] = w.image(name)
			}
			for n := range events {
				resource := one(r, append([]string{"datavolumes", "datavolumes", "persistentvolumeclaims"}, resources...)...)
				what := event(t, r, w, resource, stores[resource])
				dirty := i.index.takeDirty()
				inForce = w.catalogAfter(t, inForce)
				for _, name := range imageNames {
					want := w.image(name)
					want.Catalog = declaration(inForce, name)
					if got, _ := i.index.image(name); !sameInputs(want, sorted(got)) {
						t.Fatalf("event %d, %s: inputs of %s: %s", n, what, name, gocmp.Diff(want, sorted(got), cmpopts.EquateEmpty()))
					}
					matters := concerns(want) || concerns(before[name])
					if changed := !sameInputs(before[name], want); changed && matters && !slices.Contains(dirty, name) {
						t.Fatalf("event %d, %s: %s changed and is not projected again", n, what, name)
					}
					before[name] = want
				}
			}
		})
	}
}

func TestWhatIsPublishedEqualsAProjectionFromScratch(t *testing.T) {
	const seeds, events = 5, 300
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			f, w, inForce := newFixture(t, seed%2 == 0), newWorld(), catalog.Empty()
			f.start()
			sources := map[string]*fakeSource{
				"datavolumes": f.dataVolumes, "persistentvolumeclaims": f.claims, "storageclasses": f.classes,
				"storageprofiles": f.profiles, "cdis": f.cdis, "kubernetesnodes": f.pools, "catalog": f.configMaps,
			}
			parsed := false
			for range events {
				resource := one(r, resources...)
				o := randomObject(r, resource)
				if r.IntN(4) == 0 {
					delete(w[resource], nameOf(o))
					sources[resource].remove(o)
				} else {
					w[resource][nameOf(o)] = o
					sources[resource].put(o)
				}
				f.settle()
				inForce = w.catalogAfter(t, inForce)
				parsed = parsed || len(w["catalog"]) > 0 && !f.source("catalog").Malformed
				f.pass(time.Duration(r.IntN(3)) * tick)
			}
			f.pass(2 * publishInterval)
			for _, name := range imageNames {
				in := w.image(name)
				in.Catalog = declaration(inForce, name)
				in.Sources = projection.Sources{
					DataVolumes: true, Claims: true, StorageClasses: true, StorageProfiles: true, Pools: true,
					Catalog: parsed || !f.source("catalog").Malformed,
				}
				image := projection.WorkerImage(in, f.out.images[name], metav1.Time{})
				if diff := gocmp.Diff(image, f.out.images[name]); diff != "" {
					t.Errorf("seed %d, image %s (-want +got):\n%s", seed, name, diff)
				}
				entry := projection.CatalogEntry(projection.Entry{Image: in, WorkerImage: image}, f.out.entries[name], metav1.Time{})
				if diff := gocmp.Diff(entry, f.out.entries[name]); diff != "" {
					t.Errorf("seed %d, entry %s (-want +got):\n%s", seed, name, diff)
				}
			}
			if len(f.out.repeated) > 0 {
				t.Errorf("seed %d: published without a change: %v", seed, f.out.repeated)
			}
		})
	}
}

// concerns is true for the inputs of an image or of a catalog entry.
func concerns(in projection.Image) bool {
	return golden.Exists(in.DataVolume, in.Claim) || in.Catalog.Present() || len(in.Pools) > 0
}

func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	i, w := newIdle(), newWorld()
	stores := stores(i)
	for range 1000 {
		resource := one(r, resources...)
		event(t, r, w, resource, stores[resource])
	}
	for _, store := range stores {
		if err := store.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	i.index.takeDirty()
	x := i.index
	for what, n := range map[string]int{
		"images": len(x.images), "claimedBy": len(x.claimedBy), "clonesOf": len(x.clonesOf), "diskOf": len(x.diskOf), "poolsOf": len(x.poolsOf),
		"dataVolumes": len(x.dataVolumes.values), "claims": len(x.claims.values), "pools": len(x.pools.values),
		"documents": len(x.documents.values), "declarations": len(x.declarations),
	} {
		if n != 0 {
			t.Errorf("%s holds %d entries", what, n)
		}
	}
}

func TestAnEventConcernsTheImagesThatItNames(t *testing.T) {
	silent := diskObject("tenant-a", "disk-1", goldA, diskPoolA)
	tests := []struct {
		name  string
		given []object
		event object
		want  []string
	}{
		{name: "a golden", event: goldenObject(goldA, progress("50%")), want: []string{goldA}},
		{name: "a disk", event: diskObject("tenant-a", "disk-1", goldA, diskPoolA), want: []string{goldA}},
		{
			name:  "a disk that changes its source",
			given: []object{silent},
			event: diskObject("tenant-a", "disk-1", goldB, diskPoolA),
			want:  []string{goldA, goldB},
		},
		{
			name:  "a disk that changes in nothing that is read",
			given: []object{silent},
			event: diskObject("tenant-a", "disk-1", goldA, diskPoolA, set("x", "metadata", "labels", "x")),
		},
		{
			name:  "a cloned disk of a golden whose claim has another name",
			given: []object{goldenObject(goldB, claimNamed("adopted"))},
			event: diskObject("tenant-a", "disk-1", "adopted", diskPoolA, set(goldB, "metadata", "annotations", "kubernetes-worker-image.cozystack.io/golden")),
			want:  []string{goldB},
		},
		{name: "a golden that changes in nothing that is read", event: goldenObject(goldA, set("x", "metadata", "labels", "x"))},
		{
			name:  "a pool that changes in nothing that is read",
			given: []object{poolObject("tenant-a", poolA, imageID(goldB))},
			event: poolObject("tenant-a", poolA, imageID(goldB), set("x", "spec", "x")),
		},
		{name: "a DataVolume that is none of both", event: dataVolumeObject("tenant-a", "vm-disk", phase("Succeeded"))},
		{name: "the claim of a golden", event: claimObject(goldens, goldA, "replicated"), want: []string{goldA}},
		{
			name:  "a claim that a golden of another name has",
			given: []object{goldenObject(goldB, claimNamed("adopted"))},
			event: claimObject(goldens, "adopted", "replicated"),
			want:  []string{goldB},
		},
		{
			name:  "a claim of the name of a golden that has another",
			given: []object{goldenObject(goldB, claimNamed("adopted"))},
			event: claimObject(goldens, goldB, "replicated"),
		},
		{name: "the claim of a disk that says its class", given: []object{silent, diskObject("tenant-a", "disk-1", goldA, diskPoolA, classInSpec("local"))}, event: claimObject("tenant-a", "disk-1", "replicated")},
		{name: "the claim of a disk that is silent about its class", given: []object{silent}, event: claimObject("tenant-a", "disk-1", "replicated"), want: []string{goldA}},
		{name: "the claim of nothing", event: claimObject("tenant-a", "data", "replicated")},
		{name: "a claim that CDI makes on the way", event: claimObject(goldens, "prime-1", "replicated")},
		{name: "a pool", event: poolObject("tenant-a", poolA, imageID(goldB)), want: []string{goldB}},
		{
			name:  "a pool that moves to another image",
			given: []object{poolObject("tenant-a", poolA, imageID(goldB))},
			event: poolObject("tenant-a", poolA, imageID(goldA)),
			want:  []string{goldA, goldB},
		},
		{name: "a class", event: classObject("nvme"), want: []string{goldA, goldB}},
		{name: "a storage profile", event: profileObject("nvme", "copy"), want: []string{goldA, goldB}},
		{name: "the CDI object", event: cdiObject("cdi", "copy"), want: []string{goldA, goldB}},
		{name: "a class, while pools and the catalog name images that are not there",
			given: []object{
				poolObject("tenant-a", poolA, imageID("talos-worker-ccc-v1.0.0")),
				catalogObject("images: [{schematicID: ddd, version: v1.0.0}]"),
			},
			event: classObject("nvme"),
			want:  []string{goldA, goldB, "talos-worker-ccc-v1.0.0", "talos-worker-ddd-v1.0.0"},
		},
		{
			name:  "a disk whose image is not there and is asked for",
			given: []object{poolObject("tenant-a", poolA, imageID("talos-worker-ccc-v1.0.0"))},
			event: diskObject("tenant-a", "disk-1", "talos-worker-ccc-v1.0.0", diskPoolA),
			want:  []string{"talos-worker-ccc-v1.0.0"},
		},
		{name: "a disk whose image is not there and that nobody asks for", event: diskObject("tenant-a", "disk-1", "talos-worker-ccc-v1.0.0", diskPoolA)},
		{
			name:  "a catalog that declares one more",
			given: []object{catalogObject(declaresA)},
			event: catalogObject(declaresAAndB),
			want:  []string{goldB},
		},
		{
			name:  "a catalog that declares one less",
			given: []object{catalogObject(declaresAAndB)},
			event: catalogObject(declaresA),
			want:  []string{goldB},
		},
		{
			name:  "a catalog that changes one entry",
			given: []object{catalogObject(declaresAAndB)},
			event: catalogObject("images: [{schematicID: aaa, version: v1.13.6, storage: 8Gi}, {schematicID: bbb, version: v1.13.6}]"),
			want:  []string{goldA},
		},
		{
			name:  "a catalog that changes a default",
			given: []object{catalogObject(declaresAAndB)},
			event: catalogObject(declaresAAndB + "\nstorage: 8Gi"),
			want:  []string{goldA, goldB},
		},
		{
			name:  "a catalog that is written in another way",
			given: []object{catalogObject(declaresAAndB)},
			event: catalogObject("# as before\nstorage: 6Gi\nimages: [{schematicID: bbb, version: v1.13.6}, {schematicID: aaa, version: v1.13.6}]"),
		},
		{
			name:  "a catalog that rejects what it declared",
			given: []object{catalogObject(declaresAAndB)},
			event: catalogObject("images: [{schematicID: aaa, version: v1.13.6, storage: big}, {schematicID: bbb, version: v1.13.6}]"),
			want:  []string{goldA},
		},
		{
			name:  "a rejection that moves to another place",
			given: []object{catalogObject("images: [{schematicID: aaa, version: v1.13.6, storage: big}, {schematicID: bbb, version: v1.13.6}]")},
			event: catalogObject("images: [{schematicID: bbb, version: v1.13.6}, {schematicID: aaa, version: v1.13.6, storage: big}]"),
			want:  []string{goldA},
		},
		{
			name:  "a catalog that is none any more",
			given: []object{catalogObject(declaresA)},
			event: catalogObject(noCatalog),
		},
		{name: "a catalog that is none and never was one", event: catalogObject(noCatalog), want: []string{goldA, goldB}},
		{name: "another ConfigMap", event: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: goldens, Name: "another"}}},
		{name: "a second CDI object", given: []object{cdiObject("cdi", "copy")}, event: cdiObject("cdi-2", "snapshot")},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			i := newIdle()
			for _, o := range append([]object{goldenObject(goldA), goldenObject(goldB)}, tc.given...) {
				add(t, i, o)
			}
			for _, name := range i.index.takeDirty() {
				i.index.image(name)
			}
			add(t, i, tc.event)
			if diff := gocmp.Diff(tc.want, i.index.takeDirty(), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// add puts an object into the store of its kind.
func add(t *testing.T, i *Inventory, o object) {
	t.Helper()
	if err := stores(i)[resourceOf(o)].Add(o.DeepCopyObject()); err != nil {
		t.Fatal(err)
	}
}

func resourceOf(o object) string {
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		return "persistentvolumeclaims"
	case *storagev1.StorageClass:
		return "storageclasses"
	case *corev1.ConfigMap:
		return "catalog"
	default:
		kind := strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind)
		return strings.TrimSuffix(kind, "s") + "s"
	}
}
