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

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

const (
	catalogName = "worker-image-catalog"
	catalogKey  = "catalog.yaml"
	// webhookServer serves the webhooks of CDI.
	webhookServer = "cdi-apiserver"
)

var (
	catalogEntryKind = schema.GroupVersionResource{Group: "images.cozystack.io", Version: "v1alpha1", Resource: "catalogentries"}
)

// declare adds images of some schematics to the catalog until the test ends, and takes those away that the test has left.
func (p *platform) declare(t *testing.T, schematics ...string) {
	t.Helper()
	entries := make([]string, 0, len(schematics))
	for _, schematic := range schematics {
		entries = append(entries, fmt.Sprintf("{schematicID: %s, version: %s}", schematic, objects.Release))
	}
	p.declareEntries(t, entries...)
	for _, schematic := range schematics {
		p.awaitPhase(t, schematic, v1alpha1.CatalogEntryAvailable)
		t.Cleanup(func() { p.Remove(t, objects.DataVolumes, objects.Goldens, objects.NameOf(schematic)) })
	}
}

// declareEntries adds entries to the catalog until the test ends.
func (p *platform) declareEntries(t *testing.T, entries ...string) {
	t.Helper()
	document := p.catalog(t)
	head, rest, found := strings.Cut(document, "images:\n")
	if !found {
		t.Fatalf("the catalog declares nothing:\n%s", document)
	}
	p.setCatalog(t, head+"images:\n- "+strings.Join(entries, "\n- ")+"\n"+rest)
}

func (p *platform) catalog(t *testing.T) string {
	t.Helper()
	object, err := p.Resource(objects.ConfigMaps, objects.Goldens).Get(t.Context(), catalogName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	document, _, err := unstructured.NestedString(object.Object, "data", catalogKey)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// setCatalog replaces the catalog until the test ends.
func (p *platform) setCatalog(t *testing.T, document string) {
	t.Helper()
	before := p.catalog(t)
	p.writeCatalog(t, document)
	t.Cleanup(func() { p.writeCatalog(t, before) })
}

func (p *platform) writeCatalog(t *testing.T, document string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{catalogKey: document}})
	if err != nil {
		t.Fatal(err)
	}
	p.Patch(t, objects.ConfigMaps, objects.Goldens, catalogName, string(patch))
}

// awaitPhase waits until the catalog entry of a schematic is in a phase.
func (p *platform) awaitPhase(t *testing.T, schematic string, phase v1alpha1.CatalogEntryPhase) {
	t.Helper()
	await.For(t, fmt.Sprintf("the entry of %s to be %s", schematic, phase), func(ctx context.Context) error {
		entry, err := p.Resource(catalogEntryKind, "").Get(ctx, objects.NameOf(schematic), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(entry.Object, "status", "phase"); got != string(phase) {
			return fmt.Errorf("its phase is %s", got)
		}
		return nil
	})
}

// newImage is what a user creates. The name follows from the spec.
func newImage(schematic string) *v1alpha1.WorkerImage {
	return &v1alpha1.WorkerImage{Spec: v1alpha1.WorkerImageSpec{SchematicID: schematic, Version: objects.Release}}
}

// createImage has an image imported, once nothing is left of one that was there before: CDI may make a claim for a
// DataVolume that has just been deleted.
func (p *platform) createImage(t *testing.T, schematic string) *v1alpha1.WorkerImage {
	t.Helper()
	var image *v1alpha1.WorkerImage
	await.For(t, objects.NameOf(schematic)+" to be created", func(ctx context.Context) error {
		created, err := p.images.Create(ctx, newImage(schematic), metav1.CreateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		image = created
		return err
	})
	return image
}

// imageManifest is a WorkerImage as it stands in a file.
func imageManifest(schematic, metadata string) string {
	return fmt.Sprintf("{apiVersion: images.cozystack.io/v1alpha1, kind: WorkerImage, metadata: {%s}, spec: {schematicID: %s, version: %s}}",
		metadata, schematic, objects.Release)
}

// named is the metadata of a manifest with a name and labels.
func named(schematic, labels string) string {
	return fmt.Sprintf("name: %s, labels: {%s}", objects.NameOf(schematic), labels)
}

// post sends a manifest as YAML and does not try again.
func (p *platform) post(t *testing.T, query, manifest string) wire.Answer {
	t.Helper()
	return p.wire.Send(t, http.MethodPost, workerImages+query, http.Header{"Content-Type": {wire.YAML}}, manifest)
}

// message is what an answer that is a Status says.
func message(t *testing.T, a wire.Answer) string {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(a.Body, &status); err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
	return status.Message
}

// exists tells whether there is an object.
func (p *platform) exists(t *testing.T, resource schema.GroupVersionResource, namespace, name string) bool {
	t.Helper()
	_, err := p.Resource(resource, namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// writers returns who had a write that concerns a schematic answered with a code, as far as the audit log has come. The
// aggregator does not look into what is created: of an image that is created it knows no name.
func (p *platform) writers(t *testing.T, verb, resource, schematic string, code int) []string {
	t.Helper()
	var users []string
	for _, event := range p.audit(t) {
		concerned := event.Object.Name == objects.NameOf(schematic) || event.Object.Name == ""
		if event.Verb == verb && event.Object.Resource == resource && concerned && event.Response.Code == code {
			users = append(users, event.User.Username)
		}
	}
	return users
}
