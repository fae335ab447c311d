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
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
)

// declared is what a catalog says that declares the ready image as it is.
func declared() Declaration {
	return Declaration{Entry: &catalog.Entry{
		ID: id, ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi", StorageClass: "replicated",
	}}
}

// rejection is that of an entry for the ready image.
func rejection(path string) catalog.Rejection {
	return catalog.Rejection{ID: id, Path: path, Message: "is wrong"}
}

func TestCatalogSynced(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*Image)
		status  metav1.ConditionStatus
		reason  string
		message string
		catalog *images.CatalogStatus
	}{
		{
			name:    "an image that the catalog declares as it is",
			change:  func(in *Image) { in.Catalog = declared() },
			status:  metav1.ConditionTrue,
			reason:  ReasonSynced,
			catalog: &images.CatalogStatus{Declared: true},
		},
		{
			name:    "an image that the catalog does not declare stays",
			change:  func(*Image) {},
			status:  metav1.ConditionFalse,
			reason:  ReasonNotDeclared,
			message: "stays until it is deleted",
			catalog: &images.CatalogStatus{},
		},
		{
			name: "an image that differs from its entry names the fields",
			change: func(in *Image) {
				in.Catalog = declared()
				in.Catalog.Entry.Storage, in.Catalog.Entry.StorageClass = "8Gi", "local"
			},
			status:  metav1.ConditionFalse,
			reason:  ReasonDrift,
			message: "in storage, storageClass.",
			catalog: &images.CatalogStatus{Declared: true, Drift: []images.CatalogDrift{
				{Field: "storage", Catalog: "8Gi", Live: "6144Mi"},
				{Field: "storageClass", Catalog: "local", Live: "replicated"},
			}},
		},
		{
			name: "a claim without a DataVolume has drifted from nothing",
			change: func(in *Image) {
				in.Catalog = declared()
				in.Catalog.Entry.Storage = "8Gi"
				in.DataVolume = nil
			},
			status:  metav1.ConditionTrue,
			reason:  ReasonSynced,
			catalog: &images.CatalogStatus{Declared: true},
		},
		{
			name:    "an image whose entry is rejected says which and why",
			change:  func(in *Image) { in.Catalog.Rejections = []catalog.Rejection{rejection("images[3].storage")} },
			status:  metav1.ConditionFalse,
			reason:  ReasonRejected,
			message: "images[3].storage: is wrong",
			catalog: &images.CatalogStatus{Declared: true},
		},
		{
			name: "of many rejections a few are explained",
			change: func(in *Image) {
				for i := range 10 {
					r := rejection("images[3]")
					r.Message = fmt.Sprint("is wrong in ", i)
					in.Catalog.Rejections = append(in.Catalog.Rejections, r)
				}
			},
			status:  metav1.ConditionFalse,
			reason:  ReasonRejected,
			message: "and 7 more",
			catalog: &images.CatalogStatus{Declared: true},
		},
		{
			name: "entries that are rejected for one reason are explained once",
			change: func(in *Image) {
				in.Catalog.Rejections = []catalog.Rejection{rejection("images[3]"), rejection("images[5]")}
			},
			status:  metav1.ConditionFalse,
			reason:  ReasonRejected,
			message: "is rejected: images[3]: is wrong. Correct",
			catalog: &images.CatalogStatus{Declared: true},
		},
		{
			name:    "while the catalog cannot be read nobody knows",
			change:  func(in *Image) { in.Catalog, in.Sources.Catalog = declared(), false },
			status:  metav1.ConditionUnknown,
			reason:  ReasonSourceNotReadable,
			message: "The catalog cannot be read",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := ready()
			test.change(&in)
			got := WorkerImage(in, nil, now).Status
			if diff := cmp.Diff(test.catalog, got.Catalog); diff != "" {
				t.Errorf("unexpected status (-want +got):\n%s", diff)
			}
			c := got.Conditions[3]
			if c.Type != images.ConditionCatalogSynced || c.Status != test.status || c.Reason != test.reason || !strings.Contains(c.Message, test.message) {
				t.Errorf("the fourth condition is %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
			}
			if (c.Status == metav1.ConditionTrue) != (c.Message == "") {
				t.Errorf("%s with the message %q", c.Status, c.Message)
			}
		})
	}
}

func TestDriftNeverHoldsBackAnImage(t *testing.T) {
	in := ready()
	in.Catalog = declared()
	in.Catalog.Entry.Storage = "8Gi"
	got := WorkerImage(in, nil, now).Status
	if got.Phase != images.WorkerImageReady || !meta.IsStatusConditionTrue(got.Conditions, images.ConditionReady) {
		t.Errorf("phase %s, conditions %v", got.Phase, got.Conditions)
	}
}

func TestTheTimeOfCatalogSyncedMovesWithItsStatus(t *testing.T) {
	first := WorkerImage(ready(), nil, now)
	later := metav1.NewTime(now.Add(time.Hour))
	in := ready()
	in.Catalog.Rejections = []catalog.Rejection{rejection("images[0]")}
	second := WorkerImage(in, first, later)
	in.Catalog = declared()
	third := WorkerImage(in, second, later)
	for _, step := range []struct {
		name  string
		image *images.WorkerImage
		want  metav1.Time
	}{
		{"at first, the golden's own", first, made},
		{"another reason moves nothing", second, made},
		{"another status does", third, later},
	} {
		if got := meta.FindStatusCondition(step.image.Status.Conditions, images.ConditionCatalogSynced).LastTransitionTime; got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

func TestCredentialsOfTheCatalogAreNeverShown(t *testing.T) {
	const secret = "hunter2"
	in := ready()
	in.Catalog = declared()
	in.Catalog.Entry.ImageFactoryURL = "https://admin:" + secret + "@mirror.example"
	image := WorkerImage(in, nil, now)
	entry := CatalogEntry(Entry{Image: in, WorkerImage: image}, nil, now)
	for what, object := range map[string]any{"image": image, "entry": entry} {
		shown, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text := string(shown)
		if strings.Contains(text, secret) {
			t.Errorf("the %s shows a password: %s", what, text)
		}
		if !strings.Contains(text, "mirror.example") {
			t.Errorf("the %s does not show the mirror: %s", what, text)
		}
	}
}
