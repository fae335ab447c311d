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
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	baseversion "k8s.io/component-base/version"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

var (
	mutatingPolicies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}
	mutatingBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"}
)

// What this suite says is said of the Kubernetes that it was asked to run on: without a word, of the one that the server
// is built against.
func TestTheControlPlaneIsTheOneAskedFor(t *testing.T) {
	p := quietPlatform(t)
	want := "v" + cmp.Or(os.Getenv("STACK_KUBERNETES"), baseversion.DefaultKubeBinaryVersion) + "."
	var got struct {
		ClientVersion, ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(p.kubectl.run(t, "version", "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.ServerVersion.GitVersion, want) || !strings.HasPrefix(got.ClientVersion.GitVersion, want) {
		t.Errorf("kube-apiserver is %s and kubectl %s, want %sx", got.ServerVersion.GitVersion, got.ClientVersion.GitVersion, want)
	}
}

// A client that waits for a kind which is not there says so in the log, for as long as it runs.
func TestTheServerWaitsForNoKindThatIsNotServed(t *testing.T) {
	p := quietPlatform(t)
	log, err := p.ServerLog()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "could not find the requested resource") {
			t.Errorf("the log says: %s", line)
		}
	}
	p.checkReady(t)
}

// Kubernetes serves mutating policies since 1.36. Where it does not, writes are as before.
func TestMutatingPoliciesHoldWhereTheClusterServesThem(t *testing.T) {
	p := quietPlatform(t)
	name := objects.NameOf("mutated")
	p.createGolden(t, objects.NewGolden("mutated"))
	p.awaitImage(t, name, "there", exists)
	label := func(ctx context.Context, value string) (*v1alpha1.WorkerImage, error) {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"asked-for":%q}}}`, value)
		return p.images.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	began := time.Now()
	image, err := label(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	within(t, began, soon)
	equal(t, image.Labels["asked-for"], "first")
	if !p.serves(t, mutatingPolicies) {
		return
	}
	policy := objects.New("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "", "images-are-marked")
	policy.Object["spec"] = map[string]any{
		"failurePolicy":      "Fail",
		"reinvocationPolicy": "Never",
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{"images.cozystack.io"}, "apiVersions": []any{"v1alpha1"}, "resources": []any{"workerimages"},
			"operations": []any{"UPDATE"},
		}}},
		"matchConditions": []any{map[string]any{"name": "of-this-test", "expression": "object.spec.schematicID == 'mutated'"}},
		"mutations": []any{map[string]any{
			"patchType":          "ApplyConfiguration",
			"applyConfiguration": map[string]any{"expression": `Object{metadata: Object.metadata{labels: {"marked": "yes"}}}`},
		}},
	}
	p.Create(t, mutatingPolicies, policy)
	binding := objects.New("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", "", "images-are-marked")
	binding.Object["spec"] = map[string]any{"policyName": "images-are-marked"}
	p.Create(t, mutatingBindings, binding)
	attempt := 0
	await.For(t, "the policy to mark the image", func(ctx context.Context) error {
		attempt++
		image, err := label(ctx, fmt.Sprint("attempt-", attempt))
		if err == nil && image.Labels["marked"] != "yes" {
			err = fmt.Errorf("its labels are %v", image.Labels)
		}
		return err
	})
}

// serves says whether the cluster serves a resource.
func (p *platform) serves(t *testing.T, resource schema.GroupVersionResource) bool {
	t.Helper()
	_, err := p.Resource(resource, "").List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// insecureSkipVerify is a field of CDI 1.66, unheardOf one of no CDI.
func TestLabelsOfAnImageLeaveFieldsOfAnotherCDIAlone(t *testing.T) {
	p := quietPlatform(t)
	p.extendDataVolumes(t)
	newer := objects.NewGolden("newer")
	unheard := map[string]any{"nested": []any{map[string]any{"deep": int64(1)}}}
	objects.Set(newer, true, "spec", "source", "http", "insecureSkipVerify")
	objects.Set(newer, unheard, "spec", "unheardOf")
	await.For(t, "the kind to have the fields", func(ctx context.Context) error {
		would, err := p.Resource(objects.DataVolumes, objects.Goldens).Create(ctx, newer, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if _, found, err := unstructured.NestedFieldNoCopy(would.Object, "spec", "unheardOf"); err != nil || !found {
			return cmp.Or(err, errors.New("they are dropped"))
		}
		return nil
	})
	p.createGolden(t, newer)
	p.Patch(t, objects.DataVolumes, objects.Goldens, newer.GetName(), `{"status":{"phase":"Pending","unheardOf":{"text":"x"}}}`, "status")
	p.awaitImage(t, newer.GetName(), "there", exists)
	before := p.dataVolume(t, newer.GetName())

	p.kubectl.run(t, "label", "workerimage", newer.GetName(), "team=a")
	p.kubectl.run(t, "annotate", "workerimage", newer.GetName(), "note=b")
	after := p.dataVolume(t, newer.GetName())
	if after.GetResourceVersion() == before.GetResourceVersion() {
		t.Error("the DataVolume was not written")
	}
	for _, part := range []string{"spec", "status"} {
		if diff := gocmp.Diff(before.Object[part], after.Object[part]); diff != "" {
			t.Errorf("its %s (-before +after):\n%s", part, diff)
		}
	}
	if diff := gocmp.Diff(unheard, after.Object["spec"].(map[string]any)["unheardOf"]); diff != "" {
		t.Errorf("what was given (-given +kept):\n%s", diff)
	}
}

func (p *platform) dataVolume(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := p.Resource(objects.DataVolumes, objects.Goldens).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// extendDataVolumes has the kind keep fields that its CDI does not know, until the test ends.
func (p *platform) extendDataVolumes(t *testing.T) {
	t.Helper()
	const kind = "datavolumes.cdi.kubevirt.io"
	const fields = "/spec/versions/0/schema/openAPIV3Schema/properties"
	added := []string{
		fields + "/spec/properties/source/properties/http/properties/insecureSkipVerify",
		fields + "/spec/properties/unheardOf",
		fields + "/status/properties/unheardOf",
	}
	change := func(operation string, value any) {
		var patch []map[string]any
		for _, path := range added {
			patch = append(patch, map[string]any{"op": operation, "path": path, "value": value})
		}
		encoded, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Resource(objects.Kinds, "").Patch(context.WithoutCancel(t.Context()), kind, types.JSONPatchType, encoded, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change("add", map[string]any{"x-kubernetes-preserve-unknown-fields": true})
	t.Cleanup(func() { change("remove", nil) })
}
