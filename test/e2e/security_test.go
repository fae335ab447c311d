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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// Guards: what docs/security.md says that the server may do.
func TestThePageHoldsEveryRightOfTheServer(t *testing.T) {
	documented := sets.New[right]()
	for _, row := range securityTable(t, "where", "group", "resources", "object", "verbs", "what for") {
		namespace := row[0]
		if namespace == "cluster" {
			namespace = ""
		}
		for _, resource := range list(row[2]) {
			for _, verb := range list(row[4]) {
				documented.Insert(right{group: row[1], resource: resource, verb: verb, namespace: namespace, name: row[3]})
			}
		}
	}
	checkDocumented(t, documented, sets.New(readInstalled(t, filepath.Join(root, stack.HistoryRights)).rights...))
}

// handedOut is a right of a role that is made for people.
type handedOut struct{ role, resource, verb string }

// Guards: what docs/security.md says that is handed out.
func TestThePageHoldsEveryRoleThatIsHandedOut(t *testing.T) {
	documented, role := sets.New[handedOut](), ""
	for _, row := range securityTable(t, "role", "resources", "verbs", "who has it") {
		if row[0] != "" {
			role = row[0]
		}
		for _, resource := range list(row[1]) {
			for _, verb := range list(row[2]) {
				documented.Insert(handedOut{role, resource, verb})
			}
		}
	}
	shipped := sets.New[handedOut]()
	for name, rights := range rolesForPeople(t) {
		for _, r := range rights {
			shipped.Insert(handedOut{name, r.resource, r.verb})
		}
	}
	checkDocumented(t, documented, shipped)
}

func checkDocumented[T comparable](t *testing.T, documented, shipped sets.Set[T]) {
	t.Helper()
	for wrong := range documented.Difference(shipped) {
		t.Errorf("documented, and not so: %+v", wrong)
	}
	for missing := range shipped.Difference(documented) {
		t.Errorf("not documented: %+v", missing)
	}
}

// A verb that nothing serves would be thought to give something.
func TestTheRolesForPeopleHoldNothingThatIsNotServed(t *testing.T) {
	p := quietPlatform(t)
	served := sets.New[right]()
	for _, version := range []schema.GroupVersion{catalogEntryKind.GroupVersion(), objects.Pools.GroupVersion()} {
		resources, err := p.kube.Discovery().ServerResourcesForGroupVersion(version.String())
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range resources.APIResources {
			for _, verb := range resource.Verbs {
				served.Insert(right{group: version.Group, resource: resource.Name, verb: verb})
			}
		}
	}
	all := sets.New[string]()
	for name, rights := range rolesForPeople(t) {
		for _, r := range rights {
			all.Insert(r.resource + " " + r.verb)
			if !served.Has(r) {
				t.Errorf("%s may %v, which is not served", name, r)
			}
		}
	}
	for r := range served {
		if r.group == catalogEntryKind.Group && !all.Has(r.resource+" "+r.verb) {
			t.Errorf("nobody may %v", r)
		}
	}
}

// rolesForPeople are the rights of each role by its name.
func rolesForPeople(t *testing.T) map[string][]right {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "artifacts", "deploy", "roles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string][]right{}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			roles[role.Name] = append(roles[role.Name], rightsOf(rule)...)
		}
	}
	if len(roles) == 0 {
		t.Fatal("there is no role")
	}
	return roles
}

// securityTable returns the rows of the tables in docs/security.md that have this head.
func securityTable(t *testing.T, head ...string) [][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	inside := false
	for line := range strings.Lines(strings.ReplaceAll(string(content), "`", "")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 3 {
			inside = false
			continue
		}
		cells = cells[1 : len(cells)-1]
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case slices.Equal(cells, head):
			inside = true
		case inside && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("docs/security.md has no table of %v", head)
	}
	return rows
}

// list returns what stands in a cell.
func list(cell string) []string { return strings.Split(cell, ", ") }
