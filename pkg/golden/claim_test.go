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

package golden

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var created = metav1.NewTime(time.Date(2026, 11, 30, 20, 27, 30, 0, time.UTC))

// pvc returns a bound claim of 6Gi of a golden.
func pvc(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class, mode := "replicated", corev1.PersistentVolumeBlock
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "cozy-public",
			Name:              "talos-worker-aaa-v1.13.6",
			UID:               "claim-uid",
			CreationTimestamp: created,
			Annotations:       map[string]string{"cdi.kubevirt.io/storage.clone.token": "s3cret"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			StorageClassName: &class,
			VolumeMode:       &mode,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("6144Mi")},
			},
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase:    corev1.ClaimBound,
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("6817408407")},
		},
	}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

func annotated(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Annotations[key] = value }
}

func ownedBy(apiVersion, kind string, uid types.UID, controller bool) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.OwnerReferences = append(claim.OwnerReferences,
			metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: uid, Controller: &controller})
	}
}

func TestClaimFrom(t *testing.T) {
	plain := func(changes ...func(*Claim)) *Claim {
		class := "replicated"
		claim := &Claim{
			Namespace:    "cozy-public",
			Name:         "talos-worker-aaa-v1.13.6",
			UID:          "claim-uid",
			Created:      created,
			Phase:        corev1.ClaimBound,
			StorageClass: &class,
			Requested:    "6Gi",
			Capacity:     "6817408407",
			AccessModes:  []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			VolumeMode:   corev1.PersistentVolumeBlock,
		}
		for _, change := range changes {
			change(claim)
		}
		return claim
	}
	legacy := "legacy"
	for _, test := range []struct {
		name string
		pvc  *corev1.PersistentVolumeClaim
		want *Claim
	}{
		{name: "a plain claim is nobody's and not populated", pvc: pvc(), want: plain()},
		{
			name: "the legacy annotation is the class where the spec is silent",
			pvc: pvc(annotated("volume.beta.kubernetes.io/storage-class", "legacy"),
				func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil }),
			want: plain(func(claim *Claim) { claim.StorageClass = &legacy }),
		},
		{
			name: "the legacy annotation beats the spec, as it does for Kubernetes",
			pvc:  pvc(annotated("volume.beta.kubernetes.io/storage-class", "legacy")),
			want: plain(func(claim *Claim) { claim.StorageClass = &legacy }),
		},
		{
			name: "a claim may say nothing at all",
			pvc: pvc(func(claim *corev1.PersistentVolumeClaim) {
				claim.Spec, claim.Status = corev1.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimStatus{}
			}),
			want: &Claim{Namespace: "cozy-public", Name: "talos-worker-aaa-v1.13.6", UID: "claim-uid", Created: created},
		},
		{
			name: "populatedFor means populated, whatever it says",
			pvc:  pvc(annotated("cdi.kubevirt.io/storage.populatedFor", "")),
			want: plain(func(claim *Claim) { claim.Populated = true }),
		},
		{
			name: "an importer that succeeded means populated",
			pvc:  pvc(annotated("cdi.kubevirt.io/storage.pod.phase", "Succeeded")),
			want: plain(func(claim *Claim) { claim.Populated = true }),
		},
		{
			name: "an importer that runs does not",
			pvc:  pvc(annotated("cdi.kubevirt.io/storage.pod.phase", "Running")),
			want: plain(),
		},
		{
			name: "CDI says which DataVolume it made the claim for",
			pvc:  pvc(annotated("cdi.kubevirt.io/createdForDataVolume", "dv-uid")),
			want: plain(func(claim *Claim) { claim.CreatedFor = "dv-uid" }),
		},
		{
			name: "the controlling DataVolume is the owner",
			pvc:  pvc(ownedBy("cdi.kubevirt.io/v1beta1", "DataVolume", "dv-uid", true)),
			want: plain(func(claim *Claim) { claim.Owner = "dv-uid" }),
		},
		{
			name: "a DataVolume that does not control the claim is not the owner",
			pvc:  pvc(ownedBy("cdi.kubevirt.io/v1beta1", "DataVolume", "dv-uid", false)),
			want: plain(),
		},
		{
			name: "what is not a DataVolume is not the owner",
			pvc:  pvc(ownedBy("v1", "PersistentVolumeClaim", "other", true)),
			want: plain(),
		},
		{
			name: "a DataVolume of another group is not the owner",
			pvc:  pvc(ownedBy("example.com/v1", "DataVolume", "other", true)),
			want: plain(),
		},
		{
			name: "a deletion timestamp means that it is being deleted",
			pvc:  pvc(func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = &created }),
			want: plain(func(claim *Claim) { claim.Deleting = true }),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := test.pvc.DeepCopy()
			if diff := cmp.Diff(test.want, ClaimFrom(test.pvc)); diff != "" {
				t.Errorf("ClaimFrom (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.pvc); diff != "" {
				t.Errorf("ClaimFrom changes the claim:\n%s", diff)
			}
		})
	}
}

func TestOwnClaim(t *testing.T) {
	dv := succeeded
	claimNameFoo := func(dv *DataVolume) { dv.ClaimName = "foo" }
	for _, test := range []struct {
		name  string
		dv    *DataVolume
		claim *Claim
		own   bool
	}{
		{name: "the claim that it controls is its own", dv: dv(), claim: boundClaim(), own: true},
		{name: "a claim that nobody controls is about to be adopted", dv: dv(), claim: boundClaim(nobodys), own: true},
		{name: "a claim that another DataVolume controls is not", dv: dv(), claim: boundClaim(anothers)},
		{name: "without claimName the golden's name counts", dv: dv(func(dv *DataVolume) { dv.ClaimName = "" }), claim: boundClaim(), own: true},
		{name: "with claimName the claim of the golden's name is not its own", dv: dv(claimNameFoo), claim: boundClaim(nobodys)},
		{name: "with claimName the claim it names is its own", dv: dv(claimNameFoo), claim: boundClaim(named("foo")), own: true},
		{name: "a claim of another namespace is not", dv: dv(), claim: boundClaim(func(claim *Claim) { claim.Namespace = "tenant-a" })},
		{name: "no claim is none", dv: dv()},
		{name: "a bare claim is the golden's, whoever it was made for", claim: boundClaim(anothers), own: true},
		{name: "nothing has no claim"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var want *Claim
			if test.own {
				want = test.claim
			}
			if got := OwnClaim(test.dv, test.claim); got != want {
				t.Errorf("OwnClaim = %v, want %v", got, want)
			}
		})
	}
}
