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

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/informers/externalversions"
	"github.com/cozystack/workerimage-apiserver/pkg/options"
)

const (
	platformImage = "talos-worker-" + defaultSchematicID + "-" + defaultVersion
	gpuImage      = "talos-worker-gpu-v1.14.0"
)

// startWithOffer runs a server on a snapshot where the platform's image is ready and another is being imported.
func startWithOffer(t *testing.T) *fixture {
	t.Helper()
	f := start(t, map[string]string{platformImage: "Succeeded", gpuImage: "ImportInProgress", "talos-worker-gpu-v1.9.0": "Failed"})
	f.putClaim(t, platformImage)
	f.awaitOffer(t, "v1.13.6 · ce4c980550dd *", "v1.14.0 · gpu (importing)")
	return f
}

// putClaim binds the claim of a golden.
func (f *fixture) putClaim(t *testing.T, golden string) {
	t.Helper()
	f.put(t, golden+".yaml", fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  namespace: cozy-public
  name: %[1]s
  uid: claim-of-%[1]s
  ownerReferences: [{apiVersion: cdi.kubevirt.io/v1beta1, kind: DataVolume, name: %[1]s, uid: %[1]s, controller: true}]
spec: {storageClassName: replicated}
status: {phase: Bound}
`, golden))
}

// awaitOffer waits until a tenant is offered images under the labels, with a star at the default.
func (f *fixture) awaitOffer(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%v are offered", want), func(ctx context.Context) (bool, error) {
		option, err := f.client.ImagesV1alpha1().Options("tenant-a").Get(ctx, "workerimage", metav1.GetOptions{})
		return err == nil && slices.Equal(labels(option), want), err
	})
}

func labels(option *v1alpha1.Option) []string {
	var out []string
	for _, item := range option.Spec.Items {
		label := item.Label
		if item.Default {
			label += " *"
		}
		out = append(out, label)
	}
	return out
}

// optionKeys are the namespaces and names of what a list holds.
func optionKeys(list *v1alpha1.OptionList) []string {
	var out []string
	for _, option := range list.Items {
		out = append(out, option.Namespace+"/"+option.Name)
	}
	return out
}

func threeOptions(namespace string) []string {
	return []string{namespace + "/workerimage", namespace + "/workerimage-schematic", namespace + "/workerimage-version"}
}

// Guards: the translation of get and list, and a uid of its own for each namespace.
func TestEveryNamespaceIsOfferedTheSame(t *testing.T) {
	f := startWithOffer(t)
	uids := map[types.UID]string{}
	for namespace, owner := range map[string]string{
		"tenant-a": "tenant-a", "no-such-namespace": "no-such-namespace", "cozy-public": "cozy-public", metav1.NamespaceAll: "cozy-public",
	} {
		list, err := f.client.ImagesV1alpha1().Options(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(threeOptions(owner), optionKeys(list)); diff != "" {
			t.Errorf("options in %q (-want +got):\n%s", namespace, diff)
		}
		want := [][]string{
			{"v1.13.6 · ce4c980550dd *", "v1.14.0 · gpu (importing)"},
			{"ce4c980550dd *", "gpu (importing)"},
			{"v1.13.6 *", "v1.14.0 (importing)"},
		}
		if diff := cmp.Diff(want, [][]string{labels(&list.Items[0]), labels(&list.Items[1]), labels(&list.Items[2])}); diff != "" {
			t.Errorf("offer in %q (-want +got):\n%s", namespace, diff)
		}
		for _, option := range list.Items {
			key := option.Namespace + "/" + option.Name
			if other, ok := uids[option.UID]; option.UID == "" || ok && other != key {
				t.Errorf("%s and %s have the uid %q", key, other, option.UID)
			}
			uids[option.UID] = key
			got, err := f.client.ImagesV1alpha1().Options(owner).Get(t.Context(), option.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&option, got); diff != "" {
				t.Errorf("a get differs from the list (-list +get):\n%s", diff)
			}
		}
	}
}

// Guards: that a change of what is offered is one event, and which images are offered.
func TestAnOfferFollowsTheImages(t *testing.T) {
	f := startWithOffer(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	list, err := f.client.ImagesV1alpha1().Options("tenant-a").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.client.ImagesV1alpha1().Options("tenant-a").Watch(ctx, metav1.ListOptions{
		ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=workerimage",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.write(t, map[string]string{platformImage: "Succeeded", "talos-worker-gpu-v1.9.0": "Failed"})
	expectOffer(t, w, "v1.13.6 · ce4c980550dd *")
	f.write(t, map[string]string{platformImage: "Failed", "talos-worker-gpu-v1.15.0": "ImportScheduled"})
	expectOffer(t, w, "v1.15.0 · gpu (importing)")
}

// expectOffer reads a watch of tenant-a until it offers what is wanted. Changes that come in one file need not come
// in one event.
func expectOffer(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for event := range w.ResultChan() {
		option, ok := event.Object.(*v1alpha1.Option)
		if !ok || event.Type != watch.Modified || option.Namespace != "tenant-a" || option.Name != "workerimage" {
			t.Fatalf("%s %v", event.Type, event.Object)
		}
		if slices.Equal(labels(option), want) {
			return
		}
	}
	t.Fatalf("the watch ended before it offered %v", want)
}

// Guards: the selectable fields, and their translation.
func TestSelectorsOfOptions(t *testing.T) {
	f := startWithOffer(t)
	for _, test := range []struct {
		namespace, selector string
		want                []string
	}{
		{"tenant-a", "metadata.name=workerimage-version", []string{"tenant-a/workerimage-version"}},
		{"tenant-a", "metadata.namespace=tenant-a", threeOptions("tenant-a")},
		{"tenant-a", "metadata.namespace=cozy-public", nil},
		{"", "metadata.namespace=cozy-public", threeOptions("cozy-public")},
		{"", "metadata.namespace=tenant-a", nil},
	} {
		list, err := f.client.ImagesV1alpha1().Options(test.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: test.selector})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, optionKeys(list)); diff != "" {
			t.Errorf("%s in %q (-want +got):\n%s", test.selector, test.namespace, diff)
		}
	}
	for _, selector := range []string{"spec.items=x", "status.phase=Ready"} {
		if _, err := f.client.ImagesV1alpha1().Options("tenant-a").List(t.Context(), metav1.ListOptions{FieldSelector: selector}); !apierrors.IsBadRequest(err) {
			t.Errorf("list %s: %v", selector, err)
		}
		if _, err := f.client.ImagesV1alpha1().Options("tenant-a").Watch(t.Context(), metav1.ListOptions{FieldSelector: selector}); !apierrors.IsBadRequest(err) {
			t.Errorf("watch %s: %v", selector, err)
		}
	}
	if _, err := f.client.ImagesV1alpha1().Options("tenant-a").Get(t.Context(), "gpu", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an option that is not there: %v", err)
	}
}

// Guards: that tokens pass the translation.
func TestPagesOfOptions(t *testing.T) {
	f := startWithOffer(t)
	for namespace, owner := range map[string]string{"tenant-a": "tenant-a", "": "cozy-public"} {
		var got []string
		for next, more := "", true; more; more = next != "" {
			list, err := f.client.ImagesV1alpha1().Options(namespace).List(t.Context(), metav1.ListOptions{Limit: 1, Continue: next})
			if err != nil {
				t.Fatal(err)
			}
			got, next = append(got, optionKeys(list)...), list.Continue
		}
		if diff := cmp.Diff(threeOptions(owner), got); diff != "" {
			t.Errorf("pages in %q (-want +got):\n%s", namespace, diff)
		}
	}
}

// Guards: the namespace of what the rows of a table hold.
func TestTableOfOptions(t *testing.T) {
	f := startWithOffer(t)
	for namespace, path := range map[string]string{"tenant-a": "/namespaces/tenant-a/options", "cozy-public": "/options"} {
		res, body := f.request(t, "/apis/images.cozystack.io/v1alpha1"+path, http.Header{"Accept": {"application/json;as=Table;g=meta.k8s.io;v=v1"}})
		var table metav1.Table
		if err := json.Unmarshal(body, &table); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%d %v: %s", res.StatusCode, err, body)
		}
		var rows [][]any
		for _, row := range table.Rows {
			rows = append(rows, row.Cells)
			if !strings.Contains(string(row.Object.Raw), fmt.Sprintf("%q:%q", "namespace", namespace)) {
				t.Errorf("a row of %s: %s", namespace, row.Object.Raw)
			}
		}
		want := [][]any{
			{"workerimage", 2.0, "v1.13.6 · ce4c980550dd"},
			{"workerimage-schematic", 2.0, "ce4c980550dd"},
			{"workerimage-version", 2.0, "v1.13.6"},
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("unexpected rows (-want +got):\n%s", diff)
		}
	}
}

// Guards: that the bookmark which ends the beginning passes the translation.
func TestAStreamingListOfOptions(t *testing.T) {
	f := startWithOffer(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	w, err := f.client.ImagesV1alpha1().Options("tenant-a").Watch(ctx, metav1.ListOptions{
		SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	for event := range w.ResultChan() {
		option, ok := event.Object.(*v1alpha1.Option)
		if !ok {
			t.Fatalf("%s %v", event.Type, event.Object)
		}
		if event.Type == watch.Bookmark {
			if option.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				t.Errorf("a bookmark that does not end the beginning: %v", option)
			}
			break
		}
		got = append(got, option.Namespace+"/"+option.Name)
	}
	if diff := cmp.Diff(threeOptions("tenant-a"), got); diff != "" {
		t.Errorf("unexpected beginning (-want +got):\n%s", diff)
	}
}

// Guards: that what informers and metadata clients ask for is served.
func TestInformersOfOptions(t *testing.T) {
	f := startWithOffer(t)
	factory := externalversions.NewSharedInformerFactoryWithOptions(f.client, 0, externalversions.WithNamespace("tenant-a"))
	informer := factory.Images().V1alpha1().Options()
	synced := informer.Informer().HasSynced
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("the informer did not sync")
	}
	f.write(t, map[string]string{platformImage: "Succeeded"})
	eventually(t, "the informer follows", func(context.Context) (bool, error) {
		option, err := informer.Lister().Options("tenant-a").Get("workerimage")
		return err == nil && slices.Equal(labels(option), []string{"v1.13.6 · ce4c980550dd *"}), err
	})

	client, err := metadata.NewForConfig(f.config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("options")).Namespace("tenant-a").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 || list.Items[0].Namespace != "tenant-a" {
		t.Errorf("as metadata: %v %v", list, err)
	}
}

// Guards: that what importers read is what is served.
func TestAnotherServerOffersTheSame(t *testing.T) {
	f := startWithOffer(t)
	client, err := dynamic.NewForConfig(f.config)
	if err != nil {
		t.Fatal(err)
	}
	provider := options.New(client)
	for _, source := range []string{options.Images, options.Schematics, options.Versions} {
		items, err := provider.Items(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		option, err := f.client.ImagesV1alpha1().Options("tenant-a").Get(t.Context(), source, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]v1alpha1.OptionItem, 0, len(items))
		for _, item := range items {
			got = append(got, v1alpha1.OptionItem(item))
		}
		if diff := cmp.Diff(option.Spec.Items, got); diff != "" || len(items) == 0 {
			t.Errorf("%s (-served +provided):\n%s", source, diff)
		}
	}
	if items, err := provider.Items(t.Context(), "gpu"); err == nil {
		t.Errorf("a source that is not there has %v", items)
	}
}

// Guards: the copies that are stamped, under the race detector.
//
// Encoders write into what they are given, and a namespace is written into what is handed out.
func TestClientsOfManyNamespacesShareNothing(t *testing.T) {
	f := startWithOffer(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	var clients sync.WaitGroup
	for i := range 6 {
		namespace := []string{"tenant-a", "tenant-b", "cozy-public"}[i%3]
		w, err := f.client.ImagesV1alpha1().Options(namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			defer w.Stop()
			for range 5 {
				list, err := f.client.ImagesV1alpha1().Options(namespace).List(ctx, metav1.ListOptions{})
				if err != nil || !slices.Equal(optionKeys(list), threeOptions(namespace)) {
					t.Errorf("list in %s: %v %v", namespace, list, err)
				}
				event := <-w.ResultChan()
				if option, ok := event.Object.(*v1alpha1.Option); !ok || option.Namespace != namespace {
					t.Errorf("watch in %s: %s %v", namespace, event.Type, event.Object)
				}
			}
		})
	}
	for i := range 3 {
		f.write(t, map[string]string{platformImage: "Succeeded", fmt.Sprintf("talos-worker-gpu-v1.15.%d", i): "ImportInProgress"})
		f.awaitOffer(t, "v1.13.6 · ce4c980550dd *", fmt.Sprintf("v1.15.%d · gpu (importing)", i))
	}
	clients.Wait()
}
