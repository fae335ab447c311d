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

package workerimage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

func TestTheNameMayBeLeftOut(t *testing.T) {
	f := newFixture(t)
	made, err := f.create(t, asked(known))
	if err != nil {
		t.Fatal(err)
	}
	if made.Name != known.Name() || made.Status.Phase != images.WorkerImagePending {
		t.Errorf("made %s in phase %s", made.Name, made.Status.Phase)
	}
}

func TestCreateRefusesWhatTheObjectSaysByItself(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*images.WorkerImage)
		field  string
		words  string
	}{
		{"another name", func(i *images.WorkerImage) { i.Name = "talos-worker-bbb-v1.13.6" }, "metadata.name", "the name of this image is " + known.Name()},
		{"a name to be generated", func(i *images.WorkerImage) { i.GenerateName = "talos-" }, "metadata.generateName", "leave it out"},
		{"a name and one to be generated", func(i *images.WorkerImage) { i.Name, i.GenerateName = known.Name(), "talos-" }, "metadata.generateName", "leave it out"},
		{"no schematic", func(i *images.WorkerImage) { i.Spec.SchematicID = "" }, "spec.schematicID", "Required"},
		{"no version", func(i *images.WorkerImage) { i.Spec.Version = "" }, "spec.version", "Required"},
		{"a schematic in capitals", func(i *images.WorkerImage) { i.Spec.SchematicID = "AAA" }, "spec.schematicID", "talos-gpu-nvidia-open"},
		{"half a version", func(i *images.WorkerImage) { i.Spec.Version = "v1.13" }, "spec.version", "v1.13.6"},
		{"a name that would be too long", func(i *images.WorkerImage) { i.Spec.SchematicID = strings.Repeat("a", 240) }, "spec", "at most 253 characters"},
		{"finalizers", func(i *images.WorkerImage) { i.Finalizers = []string{"example.org/keep"} }, "metadata.finalizers", "only labels and annotations are kept"},
		{
			"an owner",
			func(i *images.WorkerImage) {
				i.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
			},
			"metadata.ownerReferences", "only labels and annotations are kept",
		},
		{
			"more than can be kept",
			func(i *images.WorkerImage) {
				i.Annotations = map[string]string{"note": strings.Repeat("x", golden.MetadataLimit)}
			},
			"metadata", "at most 65536 can be kept",
		},
		{"a label that is none", func(i *images.WorkerImage) { i.Labels = map[string]string{"team": "a b"} }, "metadata.labels", "a valid label"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			image := asked(known)
			test.change(image)
			_, err := f.create(t, image)
			checkInvalid(t, err, test.field, test.words)
			if names := f.names(t); names != nil {
				t.Errorf("made %v", names)
			}
		})
	}
}

func checkInvalid(t *testing.T, err error, path, words string) {
	t.Helper()
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		t.Fatalf("got %v, want it to be invalid", err)
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == path && strings.Contains(cause.Message, words) {
			return
		}
	}
	t.Errorf("no cause at %s says %q: %v", path, words, err)
}

func TestAnImageThatCannotBePlannedIsNotCreated(t *testing.T) {
	f := newFixture(t)
	_, err := f.create(t, asked(golden.ID{SchematicID: "bbb", Version: "v1.13.6"}))
	checkInvalid(t, err, "spec", "the catalog does not declare it")
	f.unplannable = apierrors.NewServiceUnavailable("the catalog cannot be read")
	if _, err := f.create(t, asked(known)); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("without a catalog: %v", err)
	}
	if names := f.names(t); names != nil {
		t.Errorf("made %v", names)
	}
}

func TestCreateOfAnImageThatIsThere(t *testing.T) {
	drifted := func(i *images.WorkerImage) {
		i.Status.Catalog = &images.CatalogStatus{Declared: true, Drift: []images.CatalogDrift{
			{Field: "storage", Catalog: "8Gi", Live: "6Gi"},
			{Field: "storageClassName", Catalog: "replicated", Live: "local"},
		}}
	}
	synced := func(i *images.WorkerImage) { i.Status.Catalog = &images.CatalogStatus{Declared: true} }
	terminating := func(i *images.WorkerImage) { i.Status.Phase = images.WorkerImageTerminating }
	undeclared := golden.ID{SchematicID: "bbb", Version: "v1.13.6"}
	for _, test := range []struct {
		name        string
		id          golden.ID
		change      func(*images.WorkerImage)
		unplannable error
		is          func(error) bool
		says        []string
		saysNot     string
		after       int
	}{
		{name: "as the catalog would make it", id: known, change: synced, is: apierrors.IsAlreadyExists, saysNot: "differs"},
		{
			name: "and that differs from the catalog", id: known, change: drifted, is: apierrors.IsAlreadyExists,
			says: []string{`storage is "6Gi" and the catalog says "8Gi"`, `storageClassName is "local" and the catalog says "replicated"`},
		},
		{name: "although nobody declares it", id: undeclared, change: synced, is: apierrors.IsAlreadyExists},
		{
			name: "while the catalog cannot be read", id: known, change: synced, is: apierrors.IsAlreadyExists,
			unplannable: apierrors.NewServiceUnavailable("the catalog cannot be read"),
		},
		{name: "and on its way out", id: known, change: terminating, is: apierrors.IsConflict, says: []string{"is being deleted; try again"}, after: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
				f := newFixture(t)
				f.unplannable = test.unplannable
				f.publish(t, test.id, test.change)
				_, err := f.create(t, asked(test.id), dryRun...)
				if !test.is(err) {
					t.Fatalf("dry run %v: got %v", dryRun, err)
				}
				for _, words := range test.says {
					if !strings.Contains(err.Error(), words) {
						t.Errorf("%q does not say %q", err, words)
					}
				}
				if test.saysNot != "" && strings.Contains(err.Error(), test.saysNot) {
					t.Errorf("%q says %q", err, test.saysNot)
				}
				if after, _ := apierrors.SuggestsClientDelay(err); after != test.after {
					t.Errorf("it says to try again after %d s, want %d", after, test.after)
				}
				if len(f.rehearsals) != 0 {
					t.Errorf("rehearsals %v", f.rehearsals)
				}
			}
		})
	}
}

func TestAWrongNameIsWrongAlsoWhenTheImageIsThere(t *testing.T) {
	f := newFixture(t)
	f.publish(t, known)
	image := asked(known)
	image.Name = "another"
	_, err := f.create(t, image)
	checkInvalid(t, err, "metadata.name", known.Name())
}

func TestOnlyADryRunIsRehearsed(t *testing.T) {
	f := newFixture(t)
	before, err := f.create(t, asked(known))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.label(t, before, "a"); err != nil {
		t.Fatal(err)
	}
	f.publish(t, known)
	if _, _, err := f.Delete(requestContext(t), known.Name(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(f.rehearsals) != 0 || f.names(t) != nil {
		t.Errorf("rehearsals %v, left %v", f.rehearsals, f.names(t))
	}

	version := f.log.ResourceVersion()
	if _, err := f.create(t, asked(known), metav1.DryRunAll); err != nil {
		t.Fatal(err)
	}
	checkRehearsals(t, f, version, "create "+known.Name())
	before = f.publish(t, known)
	version = f.log.ResourceVersion()
	if err := f.label(t, before, "a", metav1.DryRunAll); err != nil {
		t.Fatal(err)
	}
	checkRehearsals(t, f, version, "update "+known.Name()+" from map[] to map[team:a]")
	if _, _, err := f.Delete(requestContext(t), known.Name(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	checkRehearsals(t, f, version, "delete "+known.Name())
}

// checkRehearsals makes sure of what was rehearsed since the last time, and that nothing was written.
func checkRehearsals(t *testing.T, f *fixture, version uint64, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.rehearsals); diff != "" {
		t.Errorf("rehearsals (-want +got):\n%s", diff)
	}
	f.rehearsals = nil
	if now := f.log.ResourceVersion(); now != version {
		t.Errorf("it leaves a trace: version %d after %d", now, version)
	}
}

func TestADryRunIsRefusedAsTheClusterRefusesIt(t *testing.T) {
	f := newFixture(t)
	f.refusal = apierrors.NewBadRequest("no goldens on Fridays")
	if _, err := f.create(t, asked(known), metav1.DryRunAll); !errors.Is(err, f.refusal) {
		t.Errorf("create: %v", err)
	}
	before := f.publish(t, known)
	if err := f.label(t, before, "a", metav1.DryRunAll); !errors.Is(err, f.refusal) {
		t.Errorf("update: %v", err)
	}
	_, _, err := f.Delete(requestContext(t), known.Name(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	if !errors.Is(err, f.refusal) {
		t.Errorf("delete: %v", err)
	}
}

func TestAdmissionComesBeforeTheRehearsal(t *testing.T) {
	f := newFixture(t)
	denial := errors.New("denied by a policy")
	deny := func(context.Context, runtime.Object) error { return denial }
	dryRun := []string{metav1.DryRunAll}
	if _, err := f.Create(requestContext(t), asked(known), deny, &metav1.CreateOptions{DryRun: dryRun}); !errors.Is(err, denial) {
		t.Errorf("create: %v", err)
	}
	after := f.publish(t, known)
	after.Labels = map[string]string{"team": "a"}
	denyUpdate := func(context.Context, runtime.Object, runtime.Object) error { return denial }
	_, _, err := f.Update(requestContext(t), after.Name, rest.DefaultUpdatedObjectInfo(after), rest.ValidateAllObjectFunc, denyUpdate, false, &metav1.UpdateOptions{DryRun: dryRun})
	if !errors.Is(err, denial) {
		t.Errorf("update: %v", err)
	}
	if _, _, err := f.Delete(requestContext(t), after.Name, deny, &metav1.DeleteOptions{DryRun: dryRun}); !errors.Is(err, denial) {
		t.Errorf("delete: %v", err)
	}
	if len(f.rehearsals) != 0 {
		t.Errorf("rehearsals %v", f.rehearsals)
	}
}

// label updates an image.
func (f *fixture) label(t *testing.T, before *images.WorkerImage, value string, dryRun ...string) error {
	t.Helper()
	after := before.DeepCopy()
	after.Labels = map[string]string{"team": value}
	return f.update(t, after, dryRun...)
}

func (f *fixture) update(t *testing.T, after *images.WorkerImage, dryRun ...string) error {
	t.Helper()
	_, _, err := f.Update(requestContext(t), after.Name, rest.DefaultUpdatedObjectInfo(after), rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
	return err
}

func TestAnUpdateRefusesWhatCannotBeKept(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*images.WorkerImage)
		field  string
		words  string
	}{
		{"another version", func(i *images.WorkerImage) { i.Spec.Version = "v9.9.9" }, "spec.version", "another schematic or version is another WorkerImage"},
		{"another schematic", func(i *images.WorkerImage) { i.Spec.SchematicID = "bbb" }, "spec.schematicID", "this one is aaa"},
		{"no spec", func(i *images.WorkerImage) { i.Spec = images.WorkerImageSpec{} }, "spec.version", "does not change"},
		{"finalizers", func(i *images.WorkerImage) { i.Finalizers = []string{"example.org/keep"} }, "metadata.finalizers", "only labels and annotations are kept"},
		{
			"an owner",
			func(i *images.WorkerImage) {
				i.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
			},
			"metadata.ownerReferences", "only labels and annotations are kept",
		},
		{
			"more than can be kept",
			func(i *images.WorkerImage) {
				i.Annotations = map[string]string{"note": strings.Repeat("x", golden.MetadataLimit)}
			},
			"metadata", "at most 65536 can be kept",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			after := f.publish(t, known)
			version := f.log.ResourceVersion()
			test.change(after)
			checkInvalid(t, f.update(t, after), test.field, test.words)
			if f.log.ResourceVersion() != version {
				t.Error("it was written")
			}
		})
	}
}

// An apply of an image that is not there creates it.
func TestAnUpdateThatMayCreateIsACreate(t *testing.T) {
	f := newFixture(t)
	image := asked(known)
	image.Name = known.Name()
	apply := func(mayCreate bool, dryRun ...string) (bool, error) {
		_, created, err := f.Update(requestContext(t), image.Name, rest.DefaultUpdatedObjectInfo(image), rest.ValidateAllObjectFunc,
			rest.ValidateAllObjectUpdateFunc, mayCreate, &metav1.UpdateOptions{DryRun: dryRun})
		return created, err
	}
	if _, err := apply(false); !apierrors.IsNotFound(err) {
		t.Errorf("an update: %v", err)
	}
	f.unplannable = apierrors.NewServiceUnavailable("the catalog cannot be read")
	if _, err := apply(true); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("without a catalog: %v", err)
	}
	f.unplannable = nil
	if _, err := apply(true, metav1.DryRunAll); err != nil || len(f.rehearsals) != 1 || f.names(t) != nil {
		t.Errorf("a dry run: %v, rehearsals %v, images %v", err, f.rehearsals, f.names(t))
	}
	if created, err := apply(true); err != nil || !created || len(f.rehearsals) != 1 {
		t.Errorf("created: %t, %v; rehearsals %v", created, err, f.rehearsals)
	}
	f.unplannable = apierrors.NewServiceUnavailable("the catalog cannot be read")
	if created, err := apply(true); err != nil || created {
		t.Errorf("of an image that is there, created: %t, %v", created, err)
	}
}

// Every state that a golden can be in, as far as a deletion depends on it.
func everyState(yield func(what string, in projection.Image)) {
	dataVolumes := map[string]*golden.DataVolume{
		"no DataVolume":          nil,
		"a DataVolume that ends": {Namespace: "cozy-public", Name: known.Name(), UID: "dv", Deleting: true},
	}
	for _, phase := range []cdiv1.DataVolumePhase{cdiv1.PhaseUnset, cdiv1.Pending, cdiv1.ImportInProgress, cdiv1.Succeeded, cdiv1.Failed, cdiv1.Unknown, "Novel"} {
		dataVolumes[fmt.Sprintf("a DataVolume in phase %q", phase)] = &golden.DataVolume{
			Namespace: "cozy-public", Name: known.Name(), UID: "dv", Phase: string(phase), Template: golden.TemplateStorage,
		}
	}
	claims := map[string]*golden.Claim{"no claim": nil}
	for _, phase := range []corev1.PersistentVolumeClaimPhase{corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost} {
		for _, deleting := range []bool{false, true} {
			claims[fmt.Sprintf("a claim, %s, that ends: %t", phase, deleting)] = &golden.Claim{
				Namespace: "cozy-public", Name: known.Name(), UID: "claim", Owner: "dv", Phase: phase, Populated: true, Deleting: deleting,
			}
		}
	}
	pools := map[string][]pool.Pool{
		"no pool": nil,
		"a pool": {{Namespace: "tenant-a", Name: "k1-md0", DiskPool: "kubernetes-k1-md0", DiskSize: "20Gi",
			Selection: pool.Selection{Consumes: true, Image: known}}},
	}
	disks := map[string][]projection.PoolDisks{
		"no disk":            nil,
		"a disk":             {{Namespace: "tenant-b", Pool: "kubernetes-k2-md0", Cloned: 1}},
		"a disk in the make": {{Namespace: "tenant-b", Pool: "kubernetes-k2-md0", Cloning: 1, InFlight: 1}},
	}
	for dvName, dv := range dataVolumes {
		for claimName, claim := range claims {
			for poolName, pools := range pools {
				for diskName, disks := range disks {
					for clones := range 2 {
						for unread := range 8 {
							sources := projection.Sources{
								DataVolumes: unread&1 == 0, Claims: unread&2 == 0, Pools: unread&4 == 0, StorageClasses: true, StorageProfiles: true,
							}
							what := fmt.Sprintf("%s, %s, %s, %s, %d other clones, sources %+v", dvName, claimName, poolName, diskName, clones, sources)
							yield(what, projection.Image{
								ID: known, DataVolume: dv, Claim: claim, Pools: pools, Disks: disks, Clones: clones,
								Classes: storageclass.Classes{{Name: "replicated", Default: true}}, Sources: sources,
							})
						}
					}
				}
			}
		}
	}
}

func TestDeletableIsTheAnswerOfADeletion(t *testing.T) {
	f := newFixture(t)
	key := KeyPrefix + "/" + known.Name()
	answers := map[string]int{}
	everyState(func(what string, in projection.Image) {
		image := projection.WorkerImage(in, nil, metav1.Now())
		if image == nil {
			return
		}
		deletable := *meta.FindStatusCondition(image.Status.Conditions, images.ConditionDeletable)
		for _, options := range []*metav1.DeleteOptions{{DryRun: []string{metav1.DryRunAll}}, {}} {
			if _, err := f.log.Apply(key, image.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			_, _, err := f.Delete(requestContext(t), image.Name, rest.ValidateAllObjectFunc, options)
			if (err == nil) != (deletable.Status == metav1.ConditionTrue) {
				t.Errorf("%s: Deletable is %s, %s, and the answer %v", what, deletable.Status, deletable.Reason, err)
			}
			if err != nil && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), deletable.Message)) {
				t.Errorf("%s: %q does not say %q", what, err, deletable.Message)
			}
			answers[deletable.Reason]++
		}
	})
	for _, reason := range []string{projection.ReasonNotInUse, projection.ReasonInUse, projection.ReasonTerminating, projection.ReasonSourceNotReadable} {
		if answers[reason] == 0 {
			t.Errorf("there was no state in which Deletable says %s", reason)
		}
	}
}

// conditions of an image that is not deletable.
func kept(used, reason, message string) func(*images.WorkerImage) {
	return func(i *images.WorkerImage) {
		i.Status.Conditions = []metav1.Condition{
			{Type: images.ConditionInUse, Status: metav1.ConditionTrue, Reason: used},
			{Type: images.ConditionDeletable, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		}
	}
}

var declaredByPools = kept(projection.ReasonDeclaredByPools, projection.ReasonInUse, "At least one pool asks for the image.")

func TestARefusedDeletionNamesTheUsersAndTheWayOut(t *testing.T) {
	pools := func(n int) func(*images.WorkerImage) {
		return func(i *images.WorkerImage) {
			for k := range n {
				i.Status.Pools = append(i.Status.Pools, images.PoolStatus{Namespace: "tenant-a", Name: fmt.Sprintf("k1-md%d", k)})
			}
		}
	}
	past := func(i *images.WorkerImage) {
		i.Status.Pools = append(i.Status.Pools, images.PoolStatus{Namespace: "tenant-b", Name: "past", Reason: projection.ReasonNotSelected})
	}
	cloning := func(i *images.WorkerImage) {
		i.Status.Pools = append(i.Status.Pools, images.PoolStatus{
			Namespace: "tenant-b", Name: "cloning", Reason: projection.ReasonNotSelected, Disks: images.DiskCounts{Cloning: 1},
		})
	}
	inFlight := kept(projection.ReasonCloneInFlight, projection.ReasonInUse, "At least one DataVolume is being cloned from the image.")
	for _, test := range []struct {
		name   string
		change []func(*images.WorkerImage)
		want   string
	}{
		{"one pool", []func(*images.WorkerImage){declaredByPools, pools(1)}, "Used by tenant-a/k1-md0. Move the pools to another image first."},
		{"a pool that asked for it once is no user", []func(*images.WorkerImage){declaredByPools, pools(1), past}, "Used by tenant-a/k1-md0. Move"},
		{"a pool that is still cloning it is one", []func(*images.WorkerImage){inFlight, cloning}, "Used by tenant-b/cloning. Wait until that is done."},
		{"ten pools", []func(*images.WorkerImage){declaredByPools, pools(10)}, "tenant-a/k1-md8, tenant-a/k1-md9. Move"},
		{"twelve pools", []func(*images.WorkerImage){declaredByPools, pools(12)}, "tenant-a/k1-md8, tenant-a/k1-md9, and 2 more. Move"},
		{"pools that are not the caller's to see", []func(*images.WorkerImage){declaredByPools}, "asks for the image. Move the pools to another image first."},
		{"a clone of nobody's", []func(*images.WorkerImage){inFlight}, "is being cloned from the image. Wait until that is done."},
		{
			"pools that cannot be read",
			[]func(*images.WorkerImage){kept("", projection.ReasonSourceNotReadable, "KubernetesNodes cannot be read from the cluster now."), pools(1)},
			`": KubernetesNodes cannot be read from the cluster now.`,
		},
		{"nothing known", []func(*images.WorkerImage){func(i *images.WorkerImage) { i.Status.Conditions = nil }}, "whether it is in use is not known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.publish(t, known, test.change...)
			_, _, err := f.Delete(requestContext(t), known.Name(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a conflict that says %q", err, test.want)
			}
			if len(f.names(t)) != 1 {
				t.Error("it is gone")
			}
		})
	}
}

func TestADeletionHoldsItsPreconditions(t *testing.T) {
	f := newFixture(t)
	image := f.publish(t, known)
	for name, preconditions := range map[string]metav1.Preconditions{
		"another uid":     *metav1.NewUIDPreconditions("another"),
		"another version": {ResourceVersion: new("1")},
	} {
		_, _, err := f.Delete(requestContext(t), image.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{Preconditions: &preconditions})
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
	_, _, err := f.Delete(requestContext(t), image.Name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(image.UID))})
	if err != nil {
		t.Error(err)
	}
	if _, _, err := f.Delete(requestContext(t), image.Name, rest.ValidateAllObjectFunc, nil); !apierrors.IsNotFound(err) {
		t.Errorf("once more: %v", err)
	}
}

func TestDeleteCollectionDeletesWhatMayBeDeleted(t *testing.T) {
	ids := []golden.ID{{SchematicID: "aaa", Version: "v1.13.6"}, {SchematicID: "bbb", Version: "v1.13.6"}, {SchematicID: "ccc", Version: "v1.13.6"}}
	for _, test := range []struct {
		name     string
		used     int
		selector fields.Selector
		dryRun   []string
		left     []string
		says     string
	}{
		{name: "all of them", used: -1},
		{name: "all but the one in use", used: 1, left: []string{ids[1].Name()}, says: "2 deleted, 1 kept"},
		{name: "the selected ones", used: 1, selector: fields.OneTermEqualSelector("spec.schematicID", "aaa"), left: []string{ids[1].Name(), ids[2].Name()}},
		{name: "nothing when there is nothing to delete", used: -1, selector: fields.OneTermEqualSelector("spec.schematicID", "zzz"), left: []string{ids[0].Name(), ids[1].Name(), ids[2].Name()}},
		{name: "nothing in a dry run", used: 1, dryRun: []string{metav1.DryRunAll}, left: []string{ids[0].Name(), ids[1].Name(), ids[2].Name()}, says: "2 deleted, 1 kept"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			for i, id := range ids {
				image := f.publish(t, id)
				if i == test.used {
					declaredByPools(image)
					if _, err := f.log.Apply(KeyPrefix+"/"+image.Name, image); err != nil {
						t.Fatal(err)
					}
				}
			}
			deleted, err := f.DeleteCollection(requestContext(t), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: test.dryRun},
				&internalversion.ListOptions{FieldSelector: test.selector})
			if test.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got, want := len(deleted.(*images.WorkerImageList).Items), len(ids)-len(test.left); got != want {
					t.Errorf("it says that %d are deleted, want %d", got, want)
				}
			} else if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), ids[test.used].Name()) {
				t.Errorf("got %v, want a conflict that says %q and names the one", err, test.says)
			}
			if diff := cmp.Diff(test.left, f.names(t)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoWorkerImageIsNotCreated(t *testing.T) {
	_, err := newFixture(t).Create(requestContext(t), &images.WorkerImageList{}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
}

func TestWritesThatAreNoDryRunAreObserved(t *testing.T) {
	all := rest.ValidateAllObjectFunc
	remove := func(t *testing.T, f *fixture, dryRun ...string) error {
		_, _, err := f.Delete(requestContext(t), known.Name(), all, &metav1.DeleteOptions{DryRun: dryRun})
		return err
	}
	for _, test := range []struct {
		name  string
		write func(*testing.T, *fixture) error
		want  []string
	}{
		{"a create", func(t *testing.T, f *fixture) error { _, err := f.create(t, asked(known)); return err }, []string{"create"}},
		{"a create of what is there", func(t *testing.T, f *fixture) error {
			f.publish(t, known)
			_, err := f.create(t, asked(known))
			return err
		}, []string{"create AlreadyExists"}},
		{"a rehearsed create", func(t *testing.T, f *fixture) error {
			_, err := f.create(t, asked(known), metav1.DryRunAll)
			return err
		}, nil},
		{"a delete", func(t *testing.T, f *fixture) error { f.publish(t, known); return remove(t, f) }, []string{"delete"}},
		{"a delete of what is not there", func(t *testing.T, f *fixture) error { return remove(t, f) }, []string{"delete NotFound"}},
		{"a delete that is refused", func(t *testing.T, f *fixture) error {
			f.publish(t, known, declaredByPools)
			return remove(t, f)
		}, []string{"refused InUse", "delete Conflict"}},
		{"a delete of which nothing is known", func(t *testing.T, f *fixture) error {
			f.publish(t, known, func(i *images.WorkerImage) { i.Status.Conditions = nil })
			return remove(t, f)
		}, []string{"refused", "delete Conflict"}},
		{"a rehearsed delete", func(t *testing.T, f *fixture) error { f.publish(t, known); return remove(t, f, metav1.DryRunAll) }, nil},
		{"a rehearsed delete that is refused", func(t *testing.T, f *fixture) error {
			f.publish(t, known, declaredByPools)
			return remove(t, f, metav1.DryRunAll)
		}, nil},
		{"an update of what is not there", func(t *testing.T, f *fixture) error {
			_, _, err := f.Update(requestContext(t), known.Name(), rest.DefaultUpdatedObjectInfo(asked(known)), all, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
			return err
		}, []string{"update NotFound"}},
		{"an apply that creates", func(t *testing.T, f *fixture) error {
			_, _, err := f.Update(requestContext(t), known.Name(), rest.DefaultUpdatedObjectInfo(asked(known)), all, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
			return err
		}, []string{"create"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			err := test.write(t, f)
			if diff := cmp.Diff(test.want, f.observed); diff != "" {
				t.Errorf("with error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
