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
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	imagesclient "github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned/typed/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

var (
	policies       = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	policyBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)

func (p *platform) imagesAs(t *testing.T, tenant string) imagesclient.WorkerImageInterface {
	t.Helper()
	config, err := p.UserConfig(tenant)
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.ImagesV1alpha1().WorkerImages()
}

// The server's own account may make goldens, and lends that to nobody.
func TestWhoMayOnlyReadImagesWritesNone(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "coveted")
	images := p.imagesAs(t, "tenant-a")
	_, err := images.Create(t.Context(), newImage("coveted"), metav1.CreateOptions{})
	checkForbidden(t, "create", err)
	_, err = images.Create(t.Context(), newImage("coveted"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	checkForbidden(t, "create, dry run", err)
	p.createImage(t, "coveted")
	_, err = images.Patch(t.Context(), objects.NameOf("coveted"), types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`), metav1.PatchOptions{})
	checkForbidden(t, "patch", err)
	checkForbidden(t, "delete", images.Delete(t.Context(), objects.NameOf("coveted"), metav1.DeleteOptions{}))
	checkForbidden(t, "deletecollection", images.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}

func checkForbidden(t *testing.T, verb string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: got %v", verb, err)
	}
}

func TestTheAuditLogNamesTheUser(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "granted")
	role := objects.New("rbac.authorization.k8s.io/v1", "ClusterRole", "", "workerimage-writer")
	role.Object["rules"] = []any{map[string]any{
		"apiGroups": []any{"images.cozystack.io"}, "resources": []any{"workerimages"}, "verbs": []any{"create", "delete"},
	}}
	p.Create(t, objects.ClusterRoles, role)
	binding := objects.New("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "workerimage-writer")
	binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "workerimage-writer"}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "tenant-c"}}
	p.Create(t, objects.ClusterRoleBindings, binding)

	images := p.imagesAs(t, "tenant-c")
	await.For(t, "the right to count", func(ctx context.Context) error {
		_, err := images.Create(ctx, newImage("granted"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if _, err := images.Create(t.Context(), newImage("granted"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := images.Delete(t.Context(), objects.NameOf("granted"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await.For(t, "the audit log to tell of both", func(context.Context) error {
		if users := p.writers(t, "create", "workerimages", "granted", http.StatusCreated); !slices.Contains(users, "tenant-c") {
			return fmt.Errorf("created by %v", users)
		}
		if users := p.writers(t, "delete", "workerimages", "granted", http.StatusOK); !slices.Equal(users, []string{"tenant-c"}) {
			return fmt.Errorf("deleted by %v", users)
		}
		if users := p.writers(t, "create", "datavolumes", "granted", http.StatusCreated); !slices.Contains(users, serverUser) || slices.Contains(users, "tenant-c") {
			return fmt.Errorf("the DataVolume was made by %v", users)
		}
		return nil
	})
}

func TestPoliciesOfTheClusterHold(t *testing.T) {
	p := realPlatform(t)
	p.declare(t, "governed")
	policy := objects.New("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "images-have-a-team")
	policy.Object["spec"] = map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{"images.cozystack.io"}, "apiVersions": []any{"v1alpha1"}, "resources": []any{"workerimages"},
			"operations": []any{"CREATE", "UPDATE"},
		}}},
		"validations": []any{map[string]any{
			"expression": "object.spec.schematicID != 'governed' || has(object.metadata.labels) && 'team' in object.metadata.labels",
			"message":    "an image needs the label team",
		}},
	}
	p.Create(t, policies, policy)
	binding := objects.New("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", "images-have-a-team")
	binding.Object["spec"] = map[string]any{"policyName": "images-have-a-team", "validationActions": []any{"Deny"}}
	p.Create(t, policyBindings, binding)

	await.For(t, "the policy to be known", func(ctx context.Context) error {
		_, err := p.images.Create(ctx, newImage("governed"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return denied(err)
	})
	_, err := p.images.Create(t.Context(), newImage("governed"), metav1.CreateOptions{})
	if err := denied(err); err != nil {
		t.Error(err)
	}
	if p.exists(t, objects.DataVolumes, objects.Goldens, objects.NameOf("governed")) {
		t.Error("a DataVolume was made")
	}

	obedient := newImage("governed")
	obedient.Labels = map[string]string{"team": "a"}
	begin := time.Now()
	if _, err := p.images.Create(t.Context(), obedient, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it takes %v", took)
	}
	_, err = p.images.Patch(t.Context(), objects.NameOf("governed"), types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
	if err := denied(err); err != nil {
		t.Error(err)
	}
	if team := p.image(t, "governed").Labels["team"]; team != "a" {
		t.Errorf("the label is %q", team)
	}
}

// denied returns nil for a refusal by the policy.
func denied(err error) error {
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "an image needs the label team") {
		return nil
	}
	return fmt.Errorf("not denied: %w", err)
}
