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
	"fmt"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// object is what a manifest becomes. It is not modified once it is in a source, except by replacing it.
type object interface {
	metav1.Object
	runtime.Object
}

// The kinds that a snapshot holds.
var (
	dataVolumeKind     = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}
	storageProfileKind = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "StorageProfile"}
	cdiKind            = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "CDI"}
	claimKind          = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	storageClassKind   = storagev1.SchemeGroupVersion.WithKind("StorageClass")
	configMapKind      = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	poolKind           = schema.GroupVersionKind{Group: "apps.cozystack.io", Version: "v1alpha1", Kind: "KubernetesNodes"}
)

// id names an object among all of a snapshot.
type id struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
}

func (i id) String() string {
	if i.name.Namespace == "" {
		return i.kind.Kind + " " + i.name.Name
	}
	return i.kind.Kind + " " + i.name.String()
}

// known is false for a kind that a snapshot does not hold.
func known(kind schema.GroupVersionKind) bool {
	switch kind {
	case dataVolumeKind, storageProfileKind, cdiKind, claimKind, storageClassKind, configMapKind, poolKind:
		return true
	}
	return false
}

func isNamespaced(kind schema.GroupVersionKind) bool {
	return kind == dataVolumeKind || kind == claimKind || kind == configMapKind || kind == poolKind
}

// objectFrom returns the object of a known kind that u is, with what an API server would have filled in.
func objectFrom(u *unstructured.Unstructured) (id, object, error) {
	kind := u.GroupVersionKind()
	if u.GetName() == "" {
		return id{}, nil, fmt.Errorf("a %s has no name", kind.Kind)
	}
	switch namespaced := isNamespaced(kind); {
	case !namespaced:
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(metav1.NamespaceDefault)
	}
	i := id{kind: kind, name: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}
	if u.GetUID() == "" {
		u.SetUID(derivedUID(i))
	}
	o, err := typed(u)
	if err != nil {
		return id{}, nil, fmt.Errorf("%s: %w", i, err)
	}
	return i, o, nil
}

// uidSpace is where the uids of objects that have none are.
var uidSpace = uuid.MustParse("6c3a8a3e-5f0e-4d7c-9b55-2f6c2a4c7d1b")

func derivedUID(i id) types.UID {
	path := strings.Join([]string{i.kind.Kind, i.name.Namespace, i.name.Name}, "/")
	return types.UID(uuid.NewSHA1(uidSpace, []byte(path)).String())
}

// typed returns the kinds of Kubernetes itself as their types, and the others as they are.
func typed(u *unstructured.Unstructured) (object, error) {
	var o object
	switch u.GroupVersionKind() {
	case claimKind:
		o = &corev1.PersistentVolumeClaim{}
	case configMapKind:
		o = &corev1.ConfigMap{}
	case storageClassKind:
		o = &storagev1.StorageClass{}
	default:
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, err
	}
	return o, nil
}
