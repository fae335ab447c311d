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
	"encoding/base64"
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

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
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
	if own.wire, err = wire.NewClient(config); err != nil {
		t.Fatal(err)
	}
	own.kubectl.kubeconfig = p.State().Kubeconfigs[tenant]
	own.kubectl.cache = filepath.Join(p.Dir, "kubectl-cache-"+tenant)
	return &own
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
	for _, resource := range []string{workerImages, catalogEntries} {
		for _, request := range []struct {
			path, accept string
			silent       bool
		}{
			{path: "/" + defaultSample, accept: wire.JSON},
			{path: "/" + defaultSample, accept: wire.YAML},
			{path: "/" + defaultSample + "?includeObject=Object", accept: wire.Table},
			{path: "/" + defaultSample, accept: wire.Metadata, silent: true},
			{accept: wire.JSON},
			{accept: wire.YAML},
			{accept: wire.Table, silent: true},
			{path: "?includeObject=Object", accept: wire.Table},
			{accept: wire.MetadataList, silent: true},
			{path: "?limit=1&fieldSelector=metadata.name=" + defaultSample, accept: wire.JSON},
		} {
			what := resource + request.path + " as " + request.accept
			for _, tenant := range everybody {
				a := p.as(t, tenant).wire.Get(t, resource+request.path, request.accept)
				equal(t, a.Status, http.StatusOK)
				if request.silent {
					checkSeen(t, what, string(a.Body))
				} else {
					checkSeen(t, what, string(a.Body), tenant)
				}
			}
			if a := p.wire.Get(t, resource+request.path, request.accept); !request.silent {
				checkSeen(t, what, string(a.Body), everybody...)
			}
		}
	}
}

// Guards: the caller's view, as kubectl shows it.
func TestATenantsKubectlSaysNothingOfAnother(t *testing.T) {
	p := settledPlatform(t)
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

// Guards: that an entry is hidden with the pools that it is there for, on the wire.
func TestAnEntryInATenantsWordsIsNotThereForAnother(t *testing.T) {
	p := settledPlatform(t)
	a, b := p.as(t, "tenant-a"), p.as(t, "tenant-b")
	own, common := objects.NameOf("staging-words"), objects.NameOf("anybodys-words")
	var before metav1.List
	a.wire.Get(t, catalogEntries, wire.JSON).Decode(t, &before)
	events := a.wire.Watch(t, catalogEntries+"?watch=1&resourceVersion="+before.ResourceVersion, wire.JSON)

	p.Create(t, objects.Pools, objects.NewPool("tenant-b", "staging", "own", "replicated", "staging-words"))
	p.Create(t, objects.Pools, objects.NewPool("tenant-b", "staging", "common", "replicated", "anybodys-words"))
	for _, name := range []string{own, common} {
		await.For(t, "the entry "+name, func(ctx context.Context) error {
			answer, err := b.wire.Try(ctx, http.MethodGet, catalogEntries+"/"+name, wire.Accepting(wire.JSON), "")
			if err == nil && !strings.Contains(string(answer.Body), "tenant-b") {
				err = errors.New(string(answer.Body))
			}
			return err
		})
	}
	for _, accept := range []string{wire.JSON, wire.YAML, wire.Table, wire.Metadata} {
		absent := strings.ReplaceAll(own, "words", "never")
		answer, none := a.wire.Get(t, catalogEntries+"/"+own, accept), a.wire.Get(t, catalogEntries+"/"+absent, accept)
		equal(t, answer.Status, http.StatusNotFound)
		equal(t, string(answer.Body), strings.ReplaceAll(string(none.Body), absent, own))
	}
	for query, accept := range map[string]string{"": wire.JSON, "?resourceVersion=0": wire.YAML, "?includeObject=Object": wire.Table} {
		checkSeen(t, "the list"+query, string(a.wire.Get(t, catalogEntries+query, accept).Body), "tenant-a")
	}
	checkSeen(t, "the list of metadata", string(a.wire.Get(t, catalogEntries, wire.MetadataList).Body))
	checkPages(t, a, []string{own, common})

	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "prod", "common", "replicated", "anybodys-words"))
	expect := func(want watch.EventType) {
		t.Helper()
		f := events.Next(t)
		if f.Type != want || f.Metadata(t).Name != common {
			t.Errorf("got %s %s, want %s of %s", f.Type, f.Raw, want, common)
		}
		checkSeen(t, "the event", string(f.Raw), "tenant-a")
	}
	expect(watch.Added)
	p.Remove(t, objects.Pools, "tenant-a", "prod-common")
	expect(watch.Deleted)
	equal(t, a.wire.Get(t, catalogEntries+"/"+common, wire.JSON).Status, http.StatusNotFound)
}

// checkPages reads a list page by page, and checks that no page and no token has any of the names.
func checkPages(t *testing.T, p *platform, names []string) {
	t.Helper()
	next := ""
	for page := 0; page == 0 || next != ""; page++ {
		answer := p.wire.Get(t, catalogEntries+"?limit=1&continue="+next, wire.JSON)
		var list metav1.List
		answer.Decode(t, &list)
		next = list.Continue
		token, err := base64.RawURLEncoding.DecodeString(next)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(string(token)+string(answer.Body), name) {
				t.Errorf("page %d is %s, and the token is %s", page, answer.Body, token)
			}
		}
	}
}

// Guards: that a change which a caller cannot see is dropped.
func TestAChangeInAnotherTenantsPoolSendsNothing(t *testing.T) {
	p := settledPlatform(t)
	events := p.as(t, "tenant-a").watch(t, "&fieldSelector=metadata.name="+nvidiaSample, wire.JSON)
	equal(t, events.Next(t).Type, watch.Added)
	p.Create(t, objects.Pools, objects.NewPool("tenant-b", "staging", "unseen", "replicated", "gpu-nvidia"))
	p.awaitImage(t, nvidiaSample, "used by another pool", func(image *v1alpha1.WorkerImage) bool {
		return poolOf(image, "tenant-b", "staging-unseen").Name != ""
	})
	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "prod", "seen", "replicated", "gpu-nvidia"))
	f := events.Next(t)
	equal(t, f.Type, watch.Modified)
	checkSeen(t, "the event", string(f.Raw), "tenant-a")
	if poolOf(f.Image(t), "tenant-a", "prod-seen").Name == "" {
		t.Errorf("an event came before the change that the tenant sees: %s", f.Raw)
	}
}

// Guards: that a watch ends when its caller's access changes.
func TestAWatchFollowsAccessThatIsGrantedAndRevoked(t *testing.T) {
	p := settledPlatform(t)
	tenant := p.as(t, "tenant-a")
	const selected = "&fieldSelector=metadata.name=" + defaultSample
	expectEnd := func(events *wire.Watch) {
		t.Helper()
		f := events.Next(t)
		var status metav1.Status
		f.Decode(t, &status)
		equal(t, f.Type, watch.Error)
		equal(t, status.Code, http.StatusGone)
	}

	events := tenant.watch(t, selected, wire.JSON)
	checkSeen(t, "the watch", string(events.Next(t).Raw), "tenant-a")
	p.Create(t, objects.RoleBindings, objects.NewBinding("RoleBinding", "tenant-b", "guest", "tenant-base", "tenant-a"))
	expectEnd(events)

	events = tenant.watch(t, selected, wire.JSON)
	checkSeen(t, "the watch of a guest", string(events.Next(t).Raw), "tenant-a", "tenant-b")
	p.Remove(t, objects.RoleBindings, "tenant-b", "guest")
	expectEnd(events)
	checkSeen(t, "a list", string(tenant.wire.Get(t, workerImages, wire.JSON).Body), "tenant-a")
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
		role := objects.New("rbac.authorization.k8s.io/v1", "ClusterRole", "", "retire-images")
		role.Object["rules"] = []any{map[string]any{
			"apiGroups": []any{"images.cozystack.io"}, "resources": []any{"workerimages"}, "verbs": []any{"delete"},
		}}
		p.Create(t, objects.ClusterRoles, role)
		p.Create(t, objects.ClusterRoleBindings, objects.NewBinding("ClusterRoleBinding", "", "retire-images", "retire-images", "tenant-a"))
		var refusal string
		await.For(t, "the right to delete", func(ctx context.Context) error {
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
	t.Run("a tenant reads images and catalog entries, and writes neither", func(t *testing.T) {
		tenant := p.as(t, "tenant-a").kubectl
		tenant.run(t, "get", "workerimages,catalogentries")
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			for _, resource := range []string{"workerimages", "catalogentries"} {
				out, _, err := tenant.try(t.Context(), "", "auth", "can-i", verb, resource)
				if err == nil || strings.TrimSpace(out) != "no" {
					t.Errorf("whether it may %s %s: %s, %v", verb, resource, out, err)
				}
			}
		}
	})
	t.Run("an operator sees all and may retire images", func(t *testing.T) {
		p.Create(t, objects.ClusterRoleBindings, objects.NewBinding("ClusterRoleBinding", "", "operators", "workerimages-operator", "operators"))
		operator := func(args ...string) []string {
			return append(args, "--as=olga", "--as-group=operators", "--as-group=system:authenticated")
		}
		await.For(t, "the binding to count", func(ctx context.Context) error {
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
			await.For(t, "the role "+name, func(ctx context.Context) error {
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
		await.For(t, "the role of tenants", func(ctx context.Context) error {
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
