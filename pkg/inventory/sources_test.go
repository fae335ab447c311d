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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestTheSourcesOfAClusterAreItsKinds(t *testing.T) {
	catalog := types.NamespacedName{Namespace: "cozy-system", Name: "catalog"}
	client := kubefake.NewClientset(
		claimObject("tenant-a", "claim", "replicated"),
		classObject("class"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: catalog.Namespace, Name: catalog.Name}},
	)
	client.Resources = []*metav1.APIResourceList{{GroupVersion: "apps.cozystack.io/v1alpha1", APIResources: []metav1.APIResource{nodes("kubernetesnodeses")}}}
	pools := schema.GroupVersionResource{Group: "apps.cozystack.io", Version: "v1alpha1", Resource: "kubernetesnodeses"}
	dynamicClient := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		cdiVersion.WithResource("datavolumes"):     "DataVolumeList",
		cdiVersion.WithResource("storageprofiles"): "StorageProfileList",
		cdiVersion.WithResource("cdis"):            "CDIList",
		pools:                                      "KubernetesNodesList",
	}, dataVolumeObject("tenant-a", "datavolume"), profileObject("profile", ""), cdiObject("cdi", ""))
	if err := dynamicClient.Tracker().Create(pools, poolObject("tenant-a", "pool", platform), "tenant-a"); err != nil {
		t.Fatal(err)
	}

	sources := NewClusterSources(client, dynamicClient, catalog)
	for want, source := range map[string]cache.ListerWatcherWithContext{
		"datavolume": sources.DataVolumes, "claim": sources.Claims, "class": sources.StorageClasses, "profile": sources.StorageProfiles,
		"cdi": sources.CDIs, "pool": sources.Pools, "catalog": sources.Catalog,
	} {
		list, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("list of %s: %v", want, err)
			continue
		}
		var got []string
		err = meta.EachListItem(list, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			if err == nil {
				got = append(got, m.GetName())
			}
			return err
		})
		if diff := cmp.Diff([]string{want}, got); err != nil || diff != "" {
			t.Errorf("list of %s: %v %s", want, err, diff)
		}
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("watch of %s: %v", want, err)
			continue
		}
		w.Stop()
	}
}

// The server may read no other ConfigMap, not even by listing them.
func TestOnlyOneConfigMapIsAskedFor(t *testing.T) {
	client := kubefake.NewClientset()
	name := types.NamespacedName{Namespace: "cozy-system", Name: "catalog"}
	source := NewClusterSources(client, fake.NewSimpleDynamicClient(runtime.NewScheme()), name).Catalog
	if _, err := source.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	var asked []string
	for _, action := range client.Actions() {
		selector := ""
		switch action := action.(type) {
		case clienttesting.ListAction:
			selector = action.GetListRestrictions().Fields.String()
		case clienttesting.WatchAction:
			selector = action.GetWatchRestrictions().Fields.String()
		}
		asked = append(asked, strings.Join([]string{action.GetVerb(), action.GetNamespace(), selector}, " "))
	}
	want := []string{"list cozy-system metadata.name=catalog", "watch cozy-system metadata.name=catalog"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("unexpected requests (-want +got):\n%s", diff)
	}
}

func TestClaimsAndClassesOfAClusterArriveTyped(t *testing.T) {
	sources := NewClusterSources(kubefake.NewClientset(), fake.NewSimpleDynamicClient(runtime.NewScheme()), types.NamespacedName{})
	claims, err := sources.Claims.ListWithContext(t.Context(), metav1.ListOptions{})
	if _, ok := claims.(*corev1.PersistentVolumeClaimList); err != nil || !ok {
		t.Errorf("claims are %T: %v", claims, err)
	}
	classes, err := sources.StorageClasses.ListWithContext(t.Context(), metav1.ListOptions{})
	if _, ok := classes.(*storagev1.StorageClassList); err != nil || !ok {
		t.Errorf("classes are %T: %v", classes, err)
	}
}
