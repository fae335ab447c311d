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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// right is one thing that a rule allows.
type right struct {
	group, resource, verb string
}

func (r right) String() string { return fmt.Sprintf("%s %s in group %q", r.verb, r.resource, r.group) }

// covers is true if a request needs this right.
func (r right) covers(event auditEvent) bool {
	o := event.Object
	// A list is what a reader falls back to where lists are not streamed.
	verb := r.verb == event.Verb || r.verb == "list" && event.isStreamedList()
	return verb && r.group == o.Group && r.resource == o.Resource
}

// That the rights are enough is shown by the server's log, which holds no refusal when the run ends.
func TestTheServerReadsAllThatItMayReadInTheCluster(t *testing.T) {
	p := realPlatform(t)
	p.awaitReady(t, nvidiaSample)
	requests := p.audit(t).by(serverUser)
	for _, r := range grantedRights(t) {
		if !slices.ContainsFunc(requests, r.covers) {
			t.Errorf("not used: %v", r)
		}
	}
}

// grantedRights are those of the server's ClusterRoles, and to the Secret with its certificate. What it may do in the namespace of the goldens depends on what it is
// asked for.
func grantedRights(t *testing.T) []right {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "artifacts", "deploy", "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rights []right
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" && !strings.HasSuffix(role.Name, ":serving") {
			continue
		}
		for _, rule := range role.Rules {
			rights = append(rights, rightsOf(rule)...)
		}
	}
	if len(rights) == 0 {
		t.Fatal("the manifests grant nothing")
	}
	return rights
}

func rightsOf(rule rbacv1.PolicyRule) []right {
	var rights []right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, right{group, resource, verb})
			}
		}
	}
	return rights
}
