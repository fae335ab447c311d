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
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/informers/externalversions"
)

const (
	waitTimeout  = 30 * time.Second
	pollInterval = 10 * time.Millisecond
)

// fixture is a server on a snapshot that the test may edit.
type fixture struct {
	config *rest.Config
	client versioned.Interface
	folder string
	// end ends the server and returns when it has.
	end func()
}

// start runs a server whose snapshot holds the goldens that are named, in the phase that is given.
func start(t *testing.T, goldens map[string]string) *fixture {
	t.Helper()
	f := &fixture{folder: t.TempDir()}
	f.write(t, goldens)
	f.serve(t)
	return f
}

// serve runs a server on the snapshot until the test ends.
func (f *fixture) serve(t *testing.T) {
	t.Helper()
	f.serveWith(t, run)
}

func (f *fixture) serveWith(t *testing.T, run func(context.Context, *Options) error) {
	t.Helper()
	o := NewOptions()
	o.Snapshot.Paths = []string{f.folder}
	o.Snapshot.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o) }()
	f.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	t.Cleanup(f.end)

	eventually(t, "the server is ready", func(ctx context.Context) (bool, error) {
		select {
		case err := <-ended:
			ended <- nil
			return false, fmt.Errorf("the server ended early: %w", err)
		default:
		}
		config, err := clientcmd.BuildConfigFromFlags("", o.Snapshot.Kubeconfig)
		if err != nil {
			return false, nil // it is not written yet
		}
		config.QPS = -1
		f.config = config
		f.client, err = versioned.NewForConfig(config)
		if err != nil {
			return false, err
		}
		_, err = f.client.ImagesV1alpha1().WorkerImages().List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

func (f *fixture) write(t *testing.T, goldens map[string]string) {
	t.Helper()
	f.put(t, "goldens.yaml", dataVolumes(goldens))
}

func dataVolumes(goldens map[string]string) string {
	var out strings.Builder
	for name, phase := range goldens {
		fmt.Fprintf(&out, `---
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata: {namespace: cozy-public, name: %[1]s, uid: %[1]s, creationTimestamp: "2026-11-01T10:00:00Z"}
spec:
  source: {http: {url: "https://factory.talos.dev/image"}}
  storage: {storageClassName: replicated, resources: {requests: {storage: 6Gi}}}
status: {phase: %[2]s}
`, name, phase)
	}
	return out.String()
}

// put makes content the manifests in a file of the snapshot.
func (f *fixture) put(t *testing.T, file, content string) {
	t.Helper()
	// A rename, as editors do it: the server never sees half a file.
	file = filepath.Join(f.folder, file)
	draft := file + ".draft"
	if err := os.WriteFile(draft, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, file); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) request(t *testing.T, path string, header http.Header) (*http.Response, []byte) {
	t.Helper()
	client, err := rest.HTTPClientFor(f.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), pollInterval, waitTimeout, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

const resource = "/apis/images.cozystack.io/v1alpha1/workerimages"

var three = map[string]string{
	"talos-worker-aaa-v1.13.6": "ImportInProgress",
	"talos-worker-bbb-v1.13.6": "Pending",
	"talos-worker-bbb-v1.14.0": "Failed",
}

func TestTheFeaturesOfAServerDoNotDependOnItsVersion(t *testing.T) {
	gate := utilfeature.DefaultMutableFeatureGate
	if err := gate.SetEmulationVersion(utilversion.MajorMinor(0, 1)); err != nil {
		t.Fatal(err)
	}
	if gate.Enabled(features.WatchList) {
		t.Fatal("a program of version 0.1 has streaming lists anyway")
	}
	if err := useFeaturesOfKubernetes(); err != nil {
		t.Fatal(err)
	}
	if !gate.Enabled(features.WatchList) {
		t.Error("there are no streaming lists")
	}
}

// A client whose watch is cut short cannot know what it has missed, and says so in its log.
func TestAServerThatEndsEndsItsWatchesAtOnce(t *testing.T) {
	f := start(t, three)
	watcher, err := f.client.ImagesV1alpha1().WorkerImages().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	for range three {
		<-watcher.ResultChan()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.end()
	}()
	select {
	case <-ended:
	case <-time.After(waitTimeout):
		t.Error("it waits for them")
		watcher.Stop()
	}
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			t.Errorf("the watch fails: %v", apierrors.FromObject(event.Object))
		}
	}
}

func TestDiscoveryAdvertisesWhatIsServed(t *testing.T) {
	f := start(t, three)
	_, body := f.request(t, "/apis/images.cozystack.io/v1alpha1", nil)
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	want := []metav1.APIResource{{
		Name: "catalogentries", SingularName: "catalogentry", Kind: "CatalogEntry", ShortNames: []string{"wie"}, Categories: []string{"cozystack"},
		Verbs: metav1.Verbs{"get", "list", "watch"},
	}, {
		Name: "options", SingularName: "option", Kind: "Option", Namespaced: true, Categories: []string{"cozystack"},
		Verbs: metav1.Verbs{"get", "list", "watch"},
	}, {
		Name: "workerimages", SingularName: "workerimage", Kind: "WorkerImage", ShortNames: []string{"wi"}, Categories: []string{"cozystack"},
		Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	}}
	for i := range list.APIResources {
		list.APIResources[i].StorageVersionHash = ""
	}
	if diff := cmp.Diff(want, list.APIResources); diff != "" {
		t.Errorf("unexpected resources (-want +got):\n%s", diff)
	}
}

func TestSelectors(t *testing.T) {
	f := start(t, three)
	for _, test := range []struct {
		selector string
		want     []string
	}{
		{"metadata.name=talos-worker-bbb-v1.13.6", []string{"talos-worker-bbb-v1.13.6"}},
		{"spec.schematicID=bbb", []string{"talos-worker-bbb-v1.13.6", "talos-worker-bbb-v1.14.0"}},
		{"spec.version=v1.13.6", []string{"talos-worker-aaa-v1.13.6", "talos-worker-bbb-v1.13.6"}},
		{"spec.schematicID=bbb,spec.version!=v1.13.6", []string{"talos-worker-bbb-v1.14.0"}},
		{"status.phase=Failed", []string{"talos-worker-bbb-v1.14.0"}},
		{"status.storageClass.effective=local", nil},
	} {
		t.Run(test.selector, func(t *testing.T) {
			list, err := f.client.ImagesV1alpha1().WorkerImages().List(t.Context(), metav1.ListOptions{FieldSelector: test.selector})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("unexpected images (-want +got):\n%s", diff)
			}
		})
	}
	for _, selector := range []string{"status.progress=5", "spec.nodeName=x", "nonsense=1"} {
		t.Run("unknown field "+selector, func(t *testing.T) {
			_, err := f.client.ImagesV1alpha1().WorkerImages().List(t.Context(), metav1.ListOptions{FieldSelector: selector})
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "status.phase") {
				t.Errorf("list: %v", err)
			}
			w, err := f.client.ImagesV1alpha1().WorkerImages().Watch(t.Context(), metav1.ListOptions{FieldSelector: selector})
			if !apierrors.IsBadRequest(err) {
				t.Errorf("watch: %v %v", w, err)
			}
		})
	}
}

func TestAMissingImageIsNamed(t *testing.T) {
	f := start(t, nil)
	_, err := f.client.ImagesV1alpha1().WorkerImages().Get(t.Context(), "talos-worker-zzz-v1.0.0", metav1.GetOptions{})
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		t.Fatal(err)
	}
	if d := status.Status().Details; d == nil || d.Name != "talos-worker-zzz-v1.0.0" || d.Kind != "workerimages" || d.Group != "images.cozystack.io" {
		t.Errorf("details %+v", d)
	}
}

func TestRepresentations(t *testing.T) {
	f := start(t, three)
	for _, test := range []struct {
		name, path, accept string
		status             int
		contentType        string
		contains           string
	}{
		{"json", resource, "application/json", 200, "application/json", `"kind":"WorkerImageList"`},
		{"yaml", resource, "application/yaml", 200, "application/yaml", "kind: WorkerImageList"},
		{"a client that prefers protobuf gets JSON", resource, "application/vnd.kubernetes.protobuf,application/json", 200, "application/json", `"kind":"WorkerImageList"`},
		{"a client that takes nothing but protobuf", resource, "application/vnd.kubernetes.protobuf", 406, "", ""},
		{"table", resource, "application/json;as=Table;g=meta.k8s.io;v=v1", 200, "application/json", `"kind":"Table"`},
		{"table of one", resource + "/talos-worker-aaa-v1.13.6", "application/json;as=Table;g=meta.k8s.io;v=v1", 200, "application/json", `"kind":"Table"`},
		{"metadata", resource, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", 200, "application/json", `"kind":"PartialObjectMetadataList"`},
		{"metadata of one", resource + "/talos-worker-aaa-v1.13.6", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", 200, "application/json", `"kind":"PartialObjectMetadata"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, body := f.request(t, test.path, http.Header{"Accept": {test.accept}})
			if res.StatusCode != test.status || !strings.HasPrefix(res.Header.Get("Content-Type"), test.contentType) || !bytes.Contains(body, []byte(test.contains)) {
				t.Errorf("%d %s %.300s", res.StatusCode, res.Header.Get("Content-Type"), body)
			}
		})
	}
}

func TestLargeAnswersAreCompressed(t *testing.T) {
	many := map[string]string{}
	for i := range 300 {
		many[fmt.Sprintf("talos-worker-aaa-v1.13.%d", i)] = "Pending"
	}
	f := start(t, many)
	// The header is set by hand, so that the transport leaves the body as it is.
	res, body := f.request(t, resource, http.Header{"Accept-Encoding": {"gzip"}})
	if got := res.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("encoding %q", got)
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var list v1alpha1.WorkerImageList
	if err := json.NewDecoder(reader).Decode(&list); err != nil || len(list.Items) != len(many) {
		t.Errorf("%d images of %d: %v", len(list.Items), len(many), err)
	}
}

func TestOpenAPIModelNamesHaveNoSlash(t *testing.T) {
	f := start(t, nil)
	for _, path := range []string{"/openapi/v2", "/openapi/v3/apis/images.cozystack.io/v1alpha1"} {
		res, body := f.request(t, path, nil)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", path, res.StatusCode)
		}
		if bytes.Contains(body, []byte("~1")) {
			t.Errorf("%s refers to a model whose name has a slash", path)
		}
		var document struct {
			Definitions map[string]any
			Components  struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(body, &document); err != nil {
			t.Fatal(err)
		}
		models := document.Definitions
		if models == nil {
			models = document.Components.Schemas
		}
		if models["io.cozystack.images.v1alpha1.WorkerImage"] == nil {
			t.Errorf("%s has no model of a WorkerImage", path)
		}
		for name := range models {
			if strings.Contains(name, "/") {
				t.Errorf("%s: model %s", path, name)
			}
		}
	}
}

func TestAStreamingListEndsItsBeginning(t *testing.T) {
	f := start(t, three)
	for _, test := range []struct {
		selector string
		want     int
	}{{"", 3}, {"spec.version=v9.9.9", 0}} {
		ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
		defer cancel()
		w, err := f.client.ImagesV1alpha1().WorkerImages().Watch(ctx, metav1.ListOptions{
			SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
			FieldSelector: test.selector,
		})
		if err != nil {
			t.Fatal(err)
		}
		added := 0
		for event := range w.ResultChan() {
			if event.Type == watch.Bookmark {
				if event.Object.(*v1alpha1.WorkerImage).Annotations[metav1.InitialEventsAnnotationKey] != "true" {
					t.Errorf("a bookmark that does not end the beginning: %v", event.Object)
				}
				break
			}
			added++
		}
		w.Stop()
		if added != test.want {
			t.Errorf("selector %q: %d initial events, want %d", test.selector, added, test.want)
		}
	}
	_, err := f.client.ImagesV1alpha1().WorkerImages().Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	if !apierrors.IsInvalid(err) {
		t.Errorf("sendInitialEvents without resourceVersionMatch: %v", err)
	}
}

func TestAnEditOfTheSnapshotReachesAWatch(t *testing.T) {
	f := start(t, three)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	list, err := f.client.ImagesV1alpha1().WorkerImages().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.client.ImagesV1alpha1().WorkerImages().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.write(t, map[string]string{
		"talos-worker-aaa-v1.13.6": "Failed",
		"talos-worker-bbb-v1.13.6": "Pending",
		"talos-worker-ccc-v1.13.6": "Pending",
	})
	want := map[string]bool{
		"MODIFIED talos-worker-aaa-v1.13.6 Failed": true,
		"DELETED talos-worker-bbb-v1.14.0 Failed":  true,
		"ADDED talos-worker-ccc-v1.13.6 Pending":   true,
	}
	for event := range w.ResultChan() {
		image, ok := event.Object.(*v1alpha1.WorkerImage)
		if !ok {
			t.Fatalf("%s %v", event.Type, event.Object)
		}
		got := fmt.Sprintf("%s %s %s", event.Type, image.Name, image.Status.Phase)
		if !want[got] {
			t.Fatalf("unexpected event %s, still waiting for %v", got, want)
		}
		if delete(want, got); len(want) == 0 {
			return
		}
	}
	t.Errorf("the watch ended before %v", want)
}

func TestInformers(t *testing.T) {
	f := start(t, three)
	factory := externalversions.NewSharedInformerFactory(f.client, 0)
	informer := factory.Images().V1alpha1().WorkerImages()
	synced := informer.Informer().HasSynced
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("the informer did not sync")
	}
	f.write(t, map[string]string{"talos-worker-ccc-v1.13.6": "Pending"})
	eventually(t, "the informer follows", func(context.Context) (bool, error) {
		store := informer.Informer().GetStore().ListKeys()
		return slices.Equal(store, []string{"talos-worker-ccc-v1.13.6"}), nil
	})

	client, err := metadata.NewForConfig(f.config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("workerimages")).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("as metadata: %v %v", list, err)
	}
}

func TestACallerWithoutTheTokenIsTurnedAway(t *testing.T) {
	f := start(t, nil)
	f.config.BearerToken = "guess"
	res, _ := f.request(t, resource, nil)
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", res.StatusCode)
	}
	f.config.BearerToken = ""
	res, _ = f.request(t, resource, nil)
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("no token: %d", res.StatusCode)
	}
}
