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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// The stack is the test's own, so that all that its audit log shows of the server is what the server does here. Without
// streamed lists, which need the right to watch only, it lists as it does where they fail.
//
// Guards: each right, and each binding, that the server is installed with.
func TestEveryRightOfTheServerIsUsed(t *testing.T) {
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	p := newPlatform(t, startStack(t, stack.Options{
		KindsOnly:  true,
		Replicas:   2,
		OneHistory: true,
	}))
	p.useGoldens(t)
	p.useClaims(t)
	p.useEvents(t)

	installed := readInstalled(t, filepath.Join(root, stack.HistoryRights))
	unserved := p.unserved(t)
	await.For(t, "every right to be used", func(context.Context) error {
		log, err := readAuditLog(p.Stack, serverUser)
		if err != nil {
			return err
		}
		requests := log.authorizedFor(serverUser)
		var unused []error
		for _, r := range installed.rights {
			if !unserved[r.group+"/"+r.resource] && !slices.ContainsFunc(requests, r.covers) {
				unused = append(unused, fmt.Errorf("not used: %v", r))
			}
		}
		for _, binding := range installed.bindings {
			if !slices.ContainsFunc(requests, binding.allows) {
				unused = append(unused, fmt.Errorf("allows nothing: %s", binding))
			}
		}
		return errors.Join(unused...)
	})
}

// Guards: that what is shown for replicas that share a history is shown for one that does not.
func TestAServerByItselfMayDoNothingElse(t *testing.T) {
	all := readInstalled(t, filepath.Join(root, stack.HistoryRights))
	for _, r := range readInstalled(t, filepath.Join(root, "artifacts", "deploy", "rbac.yaml")).rights {
		if !slices.Contains(all.rights, r) {
			t.Errorf("only a server by itself may %v", r)
		}
	}
}

// useGoldens has the server make, label and retire the DataVolume of an image.
func (p *platform) useGoldens(t *testing.T) {
	t.Helper()
	p.Create(t, objects.StorageClasses, objects.NewClass("replicated"))
	p.Create(t, objects.ConfigMaps, newCatalog("storageClass: replicated\nimages:\n- {schematicID: used, version: "+objects.Release+"}\n"))
	p.awaitPhase(t, "used", v1alpha1.CatalogEntryAvailable)
	image := p.createImage(t, "used")
	p.label(t, image.Name)
	p.retire(t, image.Name)
}

func newCatalog(document string) *unstructured.Unstructured {
	return objects.Set(objects.New("v1", "ConfigMap", objects.Goldens, catalogName), map[string]any{catalogKey: document}, "data")
}

// useClaims has it label and retire a claim that is all that is left of a golden.
func (p *platform) useClaims(t *testing.T) {
	t.Helper()
	claim := p.createBoundClaim(t, "left")
	p.label(t, claim)
	p.retire(t, claim)
}

// createBoundClaim makes a golden that is Ready though nobody fills claims here, and returns its name.
func (p *platform) createBoundClaim(t *testing.T, schematic string) string {
	t.Helper()
	claim := objects.NewClaim(schematic, "")
	claim.SetAnnotations(map[string]string{"cdi.kubevirt.io/storage.populatedFor": objects.NameOf(schematic)})
	p.Create(t, objects.Claims, claim)
	p.Patch(t, objects.Claims, objects.Goldens, claim.GetName(), `{"status":{"phase":"Bound"}}`, "status")
	p.awaitReady(t, claim.GetName())
	return claim.GetName()
}

// useEvents has it say again, in the Event that said so before, that a text is no catalog.
func (p *platform) useEvents(t *testing.T) {
	t.Helper()
	good := p.catalog(t)
	await.For(t, "an Event that is told again", func(ctx context.Context) error {
		p.writeCatalog(t, "images: none")
		p.writeCatalog(t, good)
		list, err := p.kube.CoreV1().Events(objects.Goldens).List(ctx, metav1.ListOptions{FieldSelector: "reason=CatalogInvalid"})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(event corev1.Event) bool { return event.Count > 1 }) {
			return fmt.Errorf("none of %d is", len(list.Items))
		}
		return nil
	})
}

func (p *platform) label(t *testing.T, image string) {
	t.Helper()
	if _, err := p.images.Patch(t.Context(), image, types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p *platform) retire(t *testing.T, image string) {
	t.Helper()
	if err := p.images.Delete(t.Context(), image, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// unserved are the resources that the server reads where they are served, and that are not here.
func (p *platform) unserved(t *testing.T) map[string]bool {
	t.Helper()
	const group = "admissionregistration.k8s.io"
	served, err := p.kube.Discovery().ServerResourcesForGroupVersion(group + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{group + "/mutatingadmissionpolicies": true, group + "/mutatingadmissionpolicybindings": true}
	for _, resource := range served.APIResources {
		delete(found, group+"/"+resource.Name)
	}
	return found
}

// right is one thing that a rule allows.
type right struct {
	group, resource, verb string
	// namespace is where it does; empty stands for the cluster.
	namespace string
	// name is that of the one object; empty stands for all.
	name string
}

func (r right) String() string {
	object := auditedObject{Namespace: r.namespace, Group: r.group, Resource: r.resource, Name: r.name}
	return fmt.Sprintf("%s %v", r.verb, object)
}

// covers is true if a request needs this right.
func (r right) covers(event auditEvent) bool {
	o := event.Object
	return r.verb == event.Verb && r.group == o.Group && r.resource == o.Resource && o.Subresource == "" &&
		r.namespace == o.Namespace && (r.name == "" || r.name == o.Name)
}

// roleBinding is how the log of requests names what allows one.
type roleBinding string

func (b roleBinding) allows(event auditEvent) bool {
	return strings.Contains(event.Annotations.Reason, "allowed by "+string(b)+" ")
}

// installed is what the server is given.
type installed struct {
	rights   []right
	bindings []roleBinding
}

func readInstalled(t *testing.T, file string) installed {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found installed
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		// A ClusterRole has the same fields, and no namespace.
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		switch role.Kind {
		case "ClusterRole", "Role":
			for _, rule := range role.Rules {
				found.rights = append(found.rights, rightsIn(role.Namespace, rule)...)
			}
		case "ClusterRoleBinding":
			found.bindings = append(found.bindings, roleBinding(fmt.Sprintf("%s %q", role.Kind, role.Name)))
		case "RoleBinding":
			found.bindings = append(found.bindings, roleBinding(fmt.Sprintf("%s %q", role.Kind, role.Name+"/"+role.Namespace)))
		}
	}
	if len(found.rights) == 0 || len(found.bindings) == 0 {
		t.Fatalf("%s grants nothing", file)
	}
	return found
}

// rightsOf are those of a rule of a ClusterRole.
func rightsOf(rule rbacv1.PolicyRule) []right { return rightsIn("", rule) }

func rightsIn(namespace string, rule rbacv1.PolicyRule) []right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var rights []right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights = append(rights, right{group: group, resource: resource, verb: verb, namespace: namespace, name: name})
				}
			}
		}
	}
	return rights
}
