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

package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

const (
	goldensNamespace = "cozy-public"
	catalogKey       = "catalog.yaml"
)

var (
	platform    = golden.ID{SchematicID: "aaa", Version: "v1.13.6"}
	catalogName = types.NamespacedName{Namespace: goldensNamespace, Name: "worker-image-catalog"}
)

// The universe is small, so that names meet each other again and again.
var (
	schematics = []string{"aaa", "bbb", "a-v1"}
	versions   = []string{"v1.13.6", "v1.14.0-alpha.1"}
	tenants    = []string{"tenant-a", "tenant-b", "tenant-c"}
	classes    = []string{"replicated", "local", "fast"}
	phases     = []string{"", "Pending", "ImportScheduled", "ImportInProgress", "Succeeded", "Succeeded", "Succeeded", "Failed", "Paused", "NewWord"}
	sizes      = []string{"6Gi", "6144Mi", "8Gi", "no quantity"}
	strategies = []string{"csi-clone", "snapshot", "copy", ""}
)

// otherClaim is a claim in the goldens' namespace whose name is no golden's.
const otherClaim = "restored-claim"

// inputs are the sources of all kinds, and the only writer to them.
type inputs struct {
	*rand.Rand
	dataVolumes, claims, classes, profiles, cdis, pools, configMaps *source
	// made counts the objects that were made, each of which has a uid of its own.
	made int
	// catalogIsBroken is true while what is in force depends on what was there before.
	catalogIsBroken bool
}

func newInputs(r *rand.Rand) *inputs {
	source := func(name string) *source { return newSource(name, r.IntN(2) == 0) }
	return &inputs{
		Rand:        r,
		dataVolumes: source("datavolumes"), claims: source("persistentvolumeclaims"), classes: source("storageclasses"),
		profiles: source("storageprofiles"), cdis: source("cdis"), pools: source("kubernetesnodeses"), configMaps: source("configmaps"),
	}
}

func (in *inputs) all() []*source {
	return []*source{in.dataVolumes, in.claims, in.classes, in.profiles, in.cdis, in.pools, in.configMaps}
}

// sources are what an inventory reads.
func (in *inputs) sources() inventory.Sources {
	return inventory.Sources{
		DataVolumes: in.dataVolumes, Claims: in.claims, StorageClasses: in.classes,
		StorageProfiles: in.profiles, CDIs: in.cdis, Pools: in.pools, Catalog: in.configMaps,
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (in *inputs) oneIn(n int) bool { return in.IntN(n) == 0 }

func (in *inputs) image() golden.ID {
	return golden.ID{SchematicID: pick(in.Rand, schematics), Version: pick(in.Rand, versions)}
}

func (in *inputs) uid() types.UID {
	in.made++
	return types.UID(fmt.Sprintf("uid-%d", in.made))
}

// created is one of few, so that ages are often equal.
func (in *inputs) created() metav1.Time {
	return metav1.NewTime(time.Date(2026, time.November, 1+in.IntN(3), 0, 0, 0, 0, time.UTC))
}

// change makes one change, and says which.
func (in *inputs) change() string {
	switch n := in.IntN(100); {
	case n < 32:
		return in.changeGolden()
	case n < 50:
		return in.changeClaim()
	case n < 65:
		return in.changeDisk()
	case n < 82:
		return in.changePool()
	case n < 87:
		return in.changeClass()
	case n < 91:
		return in.changeProfile()
	default:
		return in.changeCatalog()
	}
}

func (in *inputs) changeGolden() string {
	id := in.image()
	return in.changeUnstructured(in.dataVolumes, goldensNamespace, id.Name(), in.newGolden, in.modifyDataVolume)
}

func (in *inputs) changeDisk() string {
	namespace, name := pick(in.Rand, tenants), fmt.Sprintf("disk-%d", in.IntN(3))
	return in.changeUnstructured(in.dataVolumes, namespace, name, in.newDisk, in.modifyDataVolume)
}

func (in *inputs) changePool() string {
	namespace := pick(in.Rand, tenants)
	return in.changeUnstructured(in.pools, namespace, fmt.Sprintf("%s-md%d", namespace, in.IntN(2)), in.newPool, in.modifyPool)
}

// changeUnstructured puts in, modifies, deletes or recreates an object.
func (in *inputs) changeUnstructured(s *source, namespace, name string, build, modify func(*unstructured.Unstructured)) string {
	key := namespace + "/" + name
	old, isThere := s.get(key).(*unstructured.Unstructured)
	what := "put"
	switch {
	case isThere && in.oneIn(5):
		s.remove(key)
		if !in.oneIn(3) {
			return "delete " + s.name + " " + key
		}
		what = "recreate"
	case isThere && !in.oneIn(4):
		o := old.DeepCopy()
		modify(o)
		s.put(o)
		return fmt.Sprintf("modify %s %s: %v %v", s.name, key, o.Object["spec"], o.Object["status"])
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(in.uid())
	o.SetCreationTimestamp(in.created())
	if isThere && what == "put" {
		o.SetUID(old.GetUID())
	}
	build(o)
	if in.oneIn(12) {
		in.malform(o)
	}
	s.put(o)
	return fmt.Sprintf("%s %s %s: %v %v", what, s.name, key, o.Object["spec"], o.Object["status"])
}

// malform gives an object's fields types that nobody expects.
func (in *inputs) malform(o *unstructured.Unstructured) {
	switch in.IntN(5) {
	case 0:
		o.Object["spec"] = "text"
	case 1:
		o.Object["status"] = []any{int64(1), nil}
	case 2:
		set(o, []any{"x"}, "spec", "source")
		set(o, map[string]any{"builtin": "text"}, "spec", "osImage")
	case 3:
		set(o, int64(7), "status", "phase")
		set(o, map[string]any{}, "spec", "storageClass")
	default:
		set(o, "{", "metadata", "annotations", golden.MetadataAnnotation)
	}
}

// set leaves an object alone in which the path leads through something else than objects.
func set(o *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(o.Object, value, path...)
}

func (in *inputs) newGolden(o *unstructured.Unstructured) {
	o.SetAPIVersion("cdi.kubevirt.io/v1beta1")
	o.SetKind("DataVolume")
	set(o, "https://user:secret@factory.example/image.raw.xz?token=secret", "spec", "source", "http", "url")
	set(o, pick(in.Rand, sizes), "spec", "storage", "resources", "requests", "storage")
	if in.oneIn(2) {
		set(o, pick(in.Rand, append(classes, "")), "spec", "storage", "storageClassName")
	}
	if in.oneIn(12) {
		in.cloneFrom(o)
	}
	set(o, pick(in.Rand, phases), "status", "phase")
	in.modifyDataVolume(o)
}

// newDisk is a worker disk, or the clone of a golden that belongs to no pool.
func (in *inputs) newDisk(o *unstructured.Unstructured) {
	o.SetAPIVersion("cdi.kubevirt.io/v1beta1")
	o.SetKind("DataVolume")
	in.cloneFrom(o)
	if in.oneIn(3) {
		set(o, pick(in.Rand, classes), "spec", "storage", "storageClassName")
	}
	set(o, pick(in.Rand, []string{"Succeeded", "CloneInProgress", "Failed"}), "status", "phase")
}

func (in *inputs) cloneFrom(o *unstructured.Unstructured) {
	claim := in.image().Name()
	if in.oneIn(6) {
		claim = otherClaim
	}
	set(o, goldensNamespace, "spec", "source", "pvc", "namespace")
	set(o, claim, "spec", "source", "pvc", "name")
	if in.oneIn(5) {
		return
	}
	named := claim
	if in.oneIn(5) {
		named = in.image().Name()
	}
	set(o, named, "metadata", "annotations", "kubernetes-worker-image.cozystack.io/golden")
	set(o, fmt.Sprintf("kubernetes-%s-md%d", o.GetNamespace(), in.IntN(3)), "metadata", "annotations", "kubernetes-worker-image.cozystack.io/pool")
}

func (in *inputs) modifyDataVolume(o *unstructured.Unstructured) {
	switch in.IntN(8) {
	case 0, 1:
		set(o, pick(in.Rand, phases), "status", "phase")
	case 2, 3:
		set(o, fmt.Sprintf("%d.5%%", in.IntN(100)), "status", "progress")
	case 4:
		set(o, int64(in.IntN(5)), "status", "restartCount")
	case 5:
		set(o, pick(in.Rand, []string{"", otherClaim, in.image().Name()}), "status", "claimName")
	case 6:
		set(o, fmt.Sprintf(`{"labels":{"tier":"%d"}}`, in.IntN(2)), "metadata", "annotations", golden.MetadataAnnotation)
	default:
		if in.oneIn(3) {
			o.SetDeletionTimestamp(ptr.To(in.created()))
		}
		set(o, []any{map[string]any{"type": "Running", "status": "False", "reason": pick(in.Rand, []string{"Error", "ErrClaimNotValid", "ImagePullFailed"}), "message": "went wrong"}},
			"status", "conditions")
	}
}

func (in *inputs) newPool(o *unstructured.Unstructured) {
	o.SetAPIVersion("apps.cozystack.io/v1alpha1")
	o.SetKind("KubernetesNodes")
	set(o, o.GetNamespace(), "spec", "cluster")
	builtin := map[string]any{}
	if !in.oneIn(4) {
		id := in.image()
		builtin["schematicID"], builtin["version"] = id.SchematicID, id.Version
	}
	if in.oneIn(4) { // what no other may be shown, in the name of an entry or of none
		builtin["schematicID"] = pick(in.Rand, []string{"of-" + o.GetNamespace(), o.GetNamespace() + "_!"})
	}
	set(o, builtin, "spec", "osImage", "builtin")
	if in.oneIn(8) {
		set(o, map[string]any{}, "spec", "osImage", "factory")
	}
	set(o, pick(in.Rand, []string{"", "", "replicated", "local"}), "spec", "storageClass")
	in.modifyPool(o)
}

func (in *inputs) modifyPool(o *unstructured.Unstructured) {
	switch in.IntN(6) {
	case 0, 1, 2:
		set(o, int64(in.IntN(5)), "spec", "minReplicas")
	case 3:
		set(o, pick(in.Rand, []string{"20Gi", "5Gi", "x"}), "spec", "diskSize")
	case 4:
		set(o, pick(in.Rand, versions), "spec", "osImage", "builtin", "version")
	default:
		unstructured.RemoveNestedField(o.Object, "spec", "osImage", pick(in.Rand, []string{"builtin", "factory"}))
	}
}

func (in *inputs) changeClaim() string {
	namespace, name := goldensNamespace, in.image().Name()
	switch in.IntN(5) {
	case 0:
		name = otherClaim
	case 1, 2:
		namespace, name = pick(in.Rand, tenants), fmt.Sprintf("disk-%d", in.IntN(3))
	}
	key := namespace + "/" + name
	if old, ok := in.claims.get(key).(*corev1.PersistentVolumeClaim); ok {
		if in.oneIn(5) {
			in.claims.remove(key)
			if !in.oneIn(3) {
				return "delete claim " + key
			}
		} else if in.oneIn(2) {
			pvc := old.DeepCopy()
			pvc.Status.Phase = pick(in.Rand, []corev1.PersistentVolumeClaimPhase{corev1.ClaimBound, corev1.ClaimPending, corev1.ClaimLost})
			in.claims.put(pvc)
			return fmt.Sprintf("modify claim %s: %s", key, pvc.Status.Phase)
		}
	}
	pvc := in.newClaim(namespace, name)
	in.claims.put(pvc)
	return fmt.Sprintf("put claim %s: %v %s %v", key, ptr.Deref(pvc.Spec.StorageClassName, "nil"), pvc.Status.Phase, pvc.OwnerReferences)
}

func (in *inputs) newClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: in.uid(), CreationTimestamp: in.created(), Annotations: map[string]string{}},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(pick(in.Rand, classes))},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	if in.oneIn(3) {
		pvc.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("6Gi")}
	}
	if in.oneIn(6) {
		pvc.Spec.StorageClassName = nil
		pvc.Annotations[corev1.BetaStorageClassAnnotation] = pick(in.Rand, classes)
	}
	if in.oneIn(8) {
		pvc.DeletionTimestamp = ptr.To(in.created())
	}
	if in.oneIn(3) {
		pvc.Annotations["cdi.kubevirt.io/storage.pod.phase"] = "Succeeded"
	}
	if namespace != goldensNamespace && in.oneIn(2) {
		pvc.Annotations["kubernetes-worker-image.cozystack.io/golden"] = in.image().Name()
	}
	if owner := in.ownerOf(namespace, name); owner != "" {
		pvc.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: name, UID: owner, Controller: ptr.To(true),
		}}
	}
	return pvc
}

// ownerOf is mostly the DataVolume that there is, and sometimes one that is gone, or none.
func (in *inputs) ownerOf(namespace, name string) types.UID {
	dv := in.dataVolumes.get(namespace + "/" + name)
	switch {
	case in.oneIn(5):
		return "uid-of-one-that-is-gone"
	case dv == nil, in.oneIn(4):
		return ""
	}
	return dv.GetUID()
}

func (in *inputs) changeClass() string {
	name := pick(in.Rand, classes)
	if in.classes.get("/"+name) != nil && in.oneIn(3) {
		in.classes.remove("/" + name)
		return "delete class " + name
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: in.uid(), CreationTimestamp: in.created(), Annotations: map[string]string{},
	}}
	for _, annotation := range []string{
		"storageclass.kubevirt.io/is-default-virt-class", "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class",
	} {
		if in.oneIn(3) {
			class.Annotations[annotation] = pick(in.Rand, []string{"true", "True"})
		}
	}
	in.classes.put(class)
	return fmt.Sprintf("put class %s: %v", name, class.Annotations)
}

func (in *inputs) changeProfile() string {
	s, name, path := in.profiles, pick(in.Rand, classes), []string{"status", "cloneStrategy"}
	if in.oneIn(3) {
		s, name, path = in.cdis, pick(in.Rand, []string{"cdi", "cdi2"}), []string{"spec", "cloneStrategyOverride"}
	}
	if s.get("/"+name) != nil && in.oneIn(3) {
		s.remove("/" + name)
		return "delete " + s.name + " " + name
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetName(name)
	o.SetUID(in.uid())
	o.SetCreationTimestamp(in.created())
	strategy := pick(in.Rand, strategies)
	set(o, strategy, path...)
	s.put(o)
	return fmt.Sprintf("put %s %s: %q", s.name, name, strategy)
}

func (in *inputs) changeCatalog() string {
	name, text := catalogName.Name, in.catalog()
	switch in.IntN(8) {
	case 0:
		in.configMaps.remove(catalogName.String())
		in.catalogIsBroken = false
		return "delete the catalog"
	case 1:
		name = "another"
	case 2:
		text = "images: {"
	}
	in.putCatalog(name, text)
	return fmt.Sprintf("put ConfigMap %s: %q", name, text)
}

func (in *inputs) putCatalog(name, text string) {
	in.configMaps.put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: goldensNamespace, Name: name, UID: in.uid()},
		Data:       map[string]string{catalogKey: text},
	})
	if name == catalogName.Name {
		in.catalogIsBroken = text == "images: {"
	}
}

// catalog is one that can be read, whose entries may be rejected.
func (in *inputs) catalog() string {
	var out strings.Builder
	fmt.Fprintf(&out, "storageClass: %s\nstorage: %s\nimages:\n", pick(in.Rand, classes), pick(in.Rand, sizes[:3]))
	for range in.IntN(4) {
		id := in.image()
		fmt.Fprintf(&out, "- {schematicID: %s, version: %s", id.SchematicID, id.Version)
		if in.oneIn(4) {
			fmt.Fprintf(&out, ", storage: %s", pick(in.Rand, sizes))
		}
		out.WriteString("}\n")
	}
	return out.String()
}

// settle makes everything readable, and what is in force a matter of what there is.
func (in *inputs) settle() {
	if in.catalogIsBroken {
		in.putCatalog(catalogName.Name, in.catalog())
	}
	for _, s := range in.all() {
		s.recover()
		s.release()
	}
}

// areCurrent is true while the server can be expected to know all that there is.
func (in *inputs) areCurrent() bool {
	for _, s := range in.all() {
		if !s.isCurrent() {
			return false
		}
	}
	return !in.catalogIsBroken
}
