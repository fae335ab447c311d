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
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

const catalogEntries = group + "/catalogentries"

// marks are what the names of each tenant's objects contain, and nobody else's do.
var marks = map[string][]string{
	"tenant-a": {"tenant-a", "prod-"},
	"tenant-b": {"tenant-b", "staging-"},
	"tenant-c": {"tenant-c", "lab-"},
}

// as is the platform as a tenant meets it. What only the administrator may do is still the administrator's.
func (p *platform) as(t *testing.T, tenant string) *platform {
	t.Helper()
	config, err := p.UserConfig(tenant)
	if err != nil {
		t.Fatal(err)
	}
	own := *p
	if own.http, err = rest.HTTPClientFor(config); err != nil {
		t.Fatal(err)
	}
	own.kubectl.kubeconfig = p.State().Kubeconfigs[tenant]
	own.kubectl.cache = filepath.Join(p.Dir, "kubectl-cache-"+tenant)
	return &own
}

// mayReadEntries lets tenants read catalog entries until the test ends, which the roles that are handed out do not.
func (p *platform) mayReadEntries(t *testing.T, tenants ...string) {
	t.Helper()
	for _, tenant := range tenants {
		p.create(t, clusterRoleBindings, binding("ClusterRoleBinding", "", "entries-"+tenant, "workerimages-view", tenant))
		own := p.as(t, tenant)
		await(t, "the right to read entries", func(ctx context.Context) error {
			a, err := own.tryToAsk(ctx, catalogEntries, http.Header{"Accept": {asJSON}})
			if err == nil && a.status != http.StatusOK {
				err = errors.New(string(a.body))
			}
			return err
		})
	}
}

// checkSeen checks that a text names pools of the tenants that are given, and nothing of the others.
func checkSeen(t *testing.T, what, text string, tenants ...string) {
	t.Helper()
	for tenant, words := range marks {
		for _, word := range words {
			if sees := slices.Contains(tenants, tenant); strings.Contains(text, word) && !sees {
				t.Errorf("%s says %q:\n%s", what, word, text)
			} else if !strings.Contains(text, word) && sees {
				t.Errorf("%s does not say %q:\n%s", what, word, text)
			}
		}
	}
}

// Guards: the caller's view of every verb that reads, on the wire.
func TestATenantSeesItsOwnPoolsAndNothingOfAnother(t *testing.T) {
	p := settledPlatform(t)
	everybody := []string{"tenant-a", "tenant-b", "tenant-c"}
	p.mayReadEntries(t, everybody...)
	for _, resource := range []string{workerImages, catalogEntries} {
		for _, request := range []struct {
			path, accept string
			silent       bool
		}{
			{path: "/" + defaultSample, accept: asJSON},
			{path: "/" + defaultSample, accept: asYAML},
			{path: "/" + defaultSample + "?includeObject=Object", accept: asTable},
			{path: "/" + defaultSample, accept: asMetadata, silent: true},
			{accept: asJSON},
			{accept: asYAML},
			{accept: asTable, silent: true},
			{path: "?includeObject=Object", accept: asTable},
			{accept: asMetadataList, silent: true},
			{path: "?limit=1&fieldSelector=metadata.name=" + defaultSample, accept: asJSON},
		} {
			what := resource + request.path + " as " + request.accept
			for _, tenant := range everybody {
				a := p.as(t, tenant).ask(t, resource+request.path, request.accept)
				equal(t, a.status, http.StatusOK)
				if request.silent {
					checkSeen(t, what, string(a.body))
				} else {
					checkSeen(t, what, string(a.body), tenant)
				}
			}
			if a := p.ask(t, resource+request.path, request.accept); !request.silent {
				checkSeen(t, what, string(a.body), everybody...)
			}
		}
	}
}

// Guards: the caller's view, as kubectl shows it.
func TestATenantsKubectlSaysNothingOfAnother(t *testing.T) {
	p := settledPlatform(t)
	p.mayReadEntries(t, "tenant-a", "tenant-b")
	for _, tenant := range []string{"tenant-a", "tenant-b"} {
		k := p.as(t, tenant).kubectl
		for _, args := range [][]string{
			{"get", "workerimages", "-o", "yaml"},
			{"get", "catalogentries", "-o", "yaml"},
			{"get", "workerimage", defaultSample, "-o", "json"},
			{"describe", "workerimage", defaultSample},
		} {
			checkSeen(t, strings.Join(args, " "), k.run(t, args...), tenant)
		}
		for _, args := range [][]string{
			{"get", "workerimages", "-o", "wide"},
			{"get", "options", "-n", tenant, "-o", "jsonpath={.items[*].spec}"},
		} {
			checkSeen(t, strings.Join(args, " "), k.run(t, args...))
		}
		cells := strings.Fields(linesOf(k.run(t, "get", "workerimage", defaultSample))[1])
		equal(t, cells[6], "1")
		watched := k.follow(t, "get", "workerimages", "-o", "yaml", "--watch").until(t, "the last image",
			func(line string) bool { return strings.Contains(line, "name: "+unpublishedSample) })
		checkSeen(t, "the watch", strings.Join(watched, "\n"), tenant)
	}
}

// Guards: that questions are about whom a caller acts as.
func TestWhoeverActsAsATenantSeesWhatTheTenantSees(t *testing.T) {
	p := settledPlatform(t)
	p.mayReadEntries(t, "tenant-a")
	for _, args := range [][]string{
		{"get", "workerimage", defaultSample, "-o", "yaml"},
		{"get", "workerimage", defaultSample, "-o", "jsonpath={.status.poolCount}"},
		{"get", "catalogentry", defaultSample, "-o", "yaml"},
	} {
		own := p.as(t, "tenant-a").kubectl.run(t, args...)
		acting := p.kubectl.run(t, append(args, "--as=somebody", "--as-group=tenant-a", "--as-group=system:authenticated")...)
		equal(t, acting, own)
	}
}

// Guards: that a change which a caller cannot see is dropped.
func TestAChangeInAnotherTenantsPoolSendsNothing(t *testing.T) {
	p := settledPlatform(t)
	events := p.as(t, "tenant-a").watch(t, "&fieldSelector=metadata.name="+nvidiaSample, asJSON)
	equal(t, events.next(t).Type, watch.Added)
	p.create(t, pools, newPool("tenant-b", "staging", "unseen", "replicated", "gpu-nvidia"))
	p.awaitImage(t, nvidiaSample, "used by another pool", func(image *v1alpha1.WorkerImage) bool {
		return poolOf(image, "tenant-b", "staging-unseen").Name != ""
	})
	p.create(t, pools, newPool("tenant-a", "prod", "seen", "replicated", "gpu-nvidia"))
	f := events.next(t)
	equal(t, f.Type, watch.Modified)
	checkSeen(t, "the event", string(f.Object), "tenant-a")
	if poolOf(f.image(t), "tenant-a", "prod-seen").Name == "" {
		t.Errorf("an event came before the change that the tenant sees: %s", f.Object)
	}
}

// Guards: that a watch ends when its caller's access changes.
func TestAWatchFollowsAccessThatIsGrantedAndRevoked(t *testing.T) {
	p := settledPlatform(t)
	tenant := p.as(t, "tenant-a")
	const selected = "&fieldSelector=metadata.name=" + defaultSample
	expectEnd := func(events *stream) {
		t.Helper()
		f := events.next(t)
		var status metav1.Status
		f.decode(t, &status)
		equal(t, f.Type, watch.Error)
		equal(t, status.Code, http.StatusGone)
	}

	events := tenant.watch(t, selected, asJSON)
	checkSeen(t, "the watch", string(events.next(t).Object), "tenant-a")
	p.create(t, roleBindings, binding("RoleBinding", "tenant-b", "guest", "tenant-base", "tenant-a"))
	expectEnd(events)

	events = tenant.watch(t, selected, asJSON)
	checkSeen(t, "the watch of a guest", string(events.next(t).Object), "tenant-a", "tenant-b")
	p.remove(t, roleBindings, "tenant-b", "guest")
	expectEnd(events)
	checkSeen(t, "a list", string(tenant.ask(t, workerImages, asJSON).body), "tenant-a")
}

// Guards: that a refused deletion says of users that are hidden that there are some.
func TestARefusedDeletionNamesWhatItsCallerSees(t *testing.T) {
	p := settledPlatform(t)
	tenant := p.as(t, "tenant-a").kubectl
	dryRun := []string{"delete", "workerimage", defaultSample, "--dry-run=server"}
	t.Run("without the right to delete", func(t *testing.T) {
		refusal := tenant.refused(t, dryRun...)
		if !strings.Contains(refusal, "Forbidden") || strings.Contains(refusal, "tenant-b") {
			t.Errorf("kubectl says %s", refusal)
		}
	})
	t.Run("with it", func(t *testing.T) {
		role := object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "retire-images")
		role.Object["rules"] = []any{map[string]any{
			"apiGroups": []any{"images.cozystack.io"}, "resources": []any{"workerimages"}, "verbs": []any{"delete"},
		}}
		p.create(t, clusterRoles, role)
		p.create(t, clusterRoleBindings, binding("ClusterRoleBinding", "", "retire-images", "retire-images", "tenant-a"))
		var refusal string
		await(t, "the right to delete", func(ctx context.Context) error {
			_, stderr, err := tenant.try(ctx, "", dryRun...)
			if refusal = stderr; err == nil || strings.Contains(stderr, "Forbidden") {
				return fmt.Errorf("%w: %s", errors.New("not yet"), stderr)
			}
			return nil
		})
		if !strings.Contains(refusal, "Used by tenant-a/prod-md0, and pools that you may not see.") {
			t.Errorf("kubectl says %s", refusal)
		}
		for _, other := range []string{"tenant-b", "tenant-c", "staging", "lab"} {
			if strings.Contains(refusal, other) {
				t.Errorf("kubectl says %s", refusal)
			}
		}
	})
}

// Guards: the roles that are handed out.
func TestTheRolesThatAreHandedOut(t *testing.T) {
	p := settledPlatform(t)
	t.Run("a tenant reads images and no catalog entries, whose names may be another tenant's words", func(t *testing.T) {
		tenant := p.as(t, "tenant-a").kubectl
		tenant.run(t, "get", "workerimages")
		if refusal := tenant.refused(t, "get", "catalogentries"); !strings.Contains(refusal, "Forbidden") {
			t.Errorf("kubectl says %s", refusal)
		}
	})
	t.Run("an operator sees all and may retire images", func(t *testing.T) {
		p.create(t, clusterRoleBindings, binding("ClusterRoleBinding", "", "operators", "workerimages-operator", "operators"))
		operator := func(args ...string) []string {
			return append(args, "--as=olga", "--as-group=operators", "--as-group=system:authenticated")
		}
		await(t, "the binding to count", func(ctx context.Context) error {
			out, _, err := p.kubectl.try(ctx, "", operator("get", "workerimage", defaultSample, "-o", "yaml")...)
			if err == nil && !strings.Contains(out, "tenant-b") {
				err = errors.New("it does not")
			}
			return err
		})
		checkSeen(t, "the operator's view", p.kubectl.run(t, operator("get", "workerimages", "-o", "yaml")...), "tenant-a", "tenant-b", "tenant-c")
		refusal := p.kubectl.refused(t, operator("delete", "workerimage", defaultSample, "--dry-run=server")...)
		for _, user := range []string{"tenant-a/prod-md0", "tenant-b/staging-md0", "tenant-c/lab-md0"} {
			if !strings.Contains(refusal, user) {
				t.Errorf("the refusal does not name %s: %s", user, refusal)
			}
		}
		p.kubectl.run(t, operator("delete", "workerimage", classlessSample, "--dry-run=server")...)
	})
	t.Run("who views, edits or administers the cluster reads and does not write", func(t *testing.T) {
		for _, name := range []string{"view", "edit", "admin"} {
			await(t, "the role "+name, func(ctx context.Context) error {
				role, err := p.kube.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				return checkReadOnly(role.Rules)
			})
		}
	})
	t.Run("a tenant reads the options of its namespace and of no other", func(t *testing.T) {
		k := p.as(t, "tenant-a").kubectl
		await(t, "the role of tenants", func(ctx context.Context) error {
			_, stderr, err := k.try(ctx, "", "get", "options", "-n", "tenant-a")
			if err != nil {
				err = fmt.Errorf("%w: %s", err, stderr)
			}
			return err
		})
		if refusal := k.refused(t, "get", "options", "-n", "tenant-b"); !strings.Contains(refusal, "Forbidden") {
			t.Errorf("kubectl says %s", refusal)
		}
	})
}

// checkReadOnly returns what is wrong with what a role allows in the group of images.
func checkReadOnly(rules []rbacv1.PolicyRule) error {
	readable := map[string]bool{}
	for _, rule := range rules {
		for _, r := range rightsOf(rule) {
			if r.group != "images.cozystack.io" {
				continue
			}
			if !slices.Contains([]string{"get", "list", "watch"}, r.verb) {
				return fmt.Errorf("it may %v", r)
			}
			readable[r.resource+" "+r.verb] = true
		}
	}
	if len(readable) != 3*3 {
		return fmt.Errorf("it may read only %v", readable)
	}
	return nil
}
