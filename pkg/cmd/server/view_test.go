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
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	authenticationunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationunion "k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/rest"
)

const (
	// Both tenants use the first image, tenant-b alone the second and a third that is not there, and nobody a
	// fourth. The fifth is there only for a pool of tenant-b, in its words, and the last is declared.
	usedByBoth = "talos-worker-aaa-v1.13.6"
	usedByB    = "talos-worker-bbb-v1.13.6"
	missedByB  = "talos-worker-ccc-v1.13.6"
	unused     = "talos-worker-ddd-v1.13.6"
	wantedByB  = "talos-worker-tenant-b-wants-v1.13.6"
	available  = "talos-worker-zzz-v1.13.6"

	tenantsCatalog = `
storageClass: replicated
images:
- {schematicID: aaa, version: v1.13.6}
- {schematicID: ccc, version: v1.13.6}
- {schematicID: zzz, version: v1.13.6}
`
)

// poolOf is a pool and a worker disk of a tenant. Everything that is the tenant's has its letter in its name.
func poolOf(tenant, schematic, diskPhase string) string {
	return fmt.Sprintf(`---
apiVersion: apps.cozystack.io/v1alpha1
kind: KubernetesNodes
metadata: {namespace: %[1]s, name: %[1]s-pool-%[2]s}
spec: {cluster: %[1]s-cluster, osImage: {builtin: {schematicID: %[2]s, version: v1.13.6}}}
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataVolume
metadata:
  namespace: %[1]s
  name: %[1]s-disk-%[2]s
  annotations:
    kubernetes-worker-image.cozystack.io/pool: kubernetes-%[1]s-pool-%[2]s
    kubernetes-worker-image.cozystack.io/golden: talos-worker-%[2]s-v1.13.6
spec: {source: {pvc: {namespace: cozy-public, name: talos-worker-%[2]s-v1.13.6}}}
status: {phase: %[3]s}
`, tenant, schematic, diskPhase)
}

// startWithTenants runs a server that knows tenant-a and tenant-b besides the operator. A tenant may do
// everything with images and catalog entries, and get pools in its own namespace.
func startWithTenants(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{folder: t.TempDir()}
	for file, content := range map[string]string{
		"classes.yaml": "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: replicated}\nprovisioner: example.org\n",
		"catalog.yaml": configMap(tenantsCatalog),
		"goldens.yaml": dataVolumes(map[string]string{usedByBoth: "Succeeded", usedByB: "Succeeded", unused: "Pending"}),
		"pools-a.yaml": poolOf("tenant-a", "aaa", "Succeeded"),
		"pools-b.yaml": poolOf("tenant-b", "aaa", "Succeeded") + poolOf("tenant-b", "bbb", "Succeeded") +
			poolOf("tenant-b", "ccc", "Pending") + poolOf("tenant-b", "tenant-b-wants", "Pending"),
	} {
		f.put(t, file, content)
	}
	f.serveWith(t, runWithTenants)
	return f
}

func runWithTenants(ctx context.Context, o *Options) error {
	config, err := o.Config(ctx)
	if err != nil {
		return err
	}
	tokens := map[string]*user.DefaultInfo{}
	for _, name := range []string{"tenant-a", "tenant-b"} {
		tokens[name] = &user.DefaultInfo{Name: "user of " + name, Groups: []string{name}}
	}
	authentication, authorization := &config.Generic.Authentication, &config.Generic.Authorization
	authentication.Authenticator = authenticationunion.New(authentication.Authenticator,
		group.NewAuthenticatedGroupAdder(bearertoken.New(tokenfile.New(tokens))))
	authorization.Authorizer, err = authorizationunion.New(
		authorizationunion.NamedAuthorizer{AuthorizerName: "operator", Authorizer: authorization.Authorizer},
		authorizationunion.NamedAuthorizer{AuthorizerName: "tenants", Authorizer: authorizer.AuthorizerFunc(authorizeTenant)},
	)
	if err != nil {
		return err
	}
	server, err := config.Complete().New()
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func authorizeTenant(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	ownPools := a.GetAPIGroup() == "apps.cozystack.io" && a.GetVerb() == "get" && a.GetNamespace() != "" &&
		slices.Contains(a.GetUser().GetGroups(), a.GetNamespace())
	if ownPools || a.GetAPIGroup() == "images.cozystack.io" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// as is the access of a tenant.
func (f *fixture) as(tenant string) *rest.Config {
	config := rest.CopyConfig(f.config)
	config.BearerToken = tenant
	return config
}

// send sends a request and returns the status and all bytes of the answer, those of a watch until an event that
// contains a text.
func send(t *testing.T, config *rest.Config, c call) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, config.Host+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.accept != "" {
		req.Header.Set("Accept", c.accept)
	}
	if c.contentType != "" {
		req.Header.Set("Content-Type", c.contentType)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if c.until == "" {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	var body strings.Builder
	for reader := bufio.NewReader(res.Body); ; {
		event, err := reader.ReadString('\n')
		if err != nil {
			t.Fatalf("after %s: %v", body.String(), err)
		}
		body.WriteString(event)
		if strings.Contains(event, c.until) {
			return res.StatusCode, body.String()
		}
	}
}

type call struct {
	name, method, path        string
	accept, contentType, body string
	// until is what the last event of a watch contains.
	until string
	want  int
	// silent is true for an answer in which pools are named to nobody.
	silent bool
}

const (
	asTable        = "application/json;as=Table;g=meta.k8s.io;v=v1"
	asMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

// reads are the verbs that read, in every representation.
func reads(resource, name, last string) []call {
	one := resource + "/" + name
	initial := resource + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	return []call{
		{name: "get", path: one},
		{name: "get as YAML", path: one, accept: "application/yaml"},
		{name: "get as a table", path: one, accept: asTable, silent: true},
		{name: "get as a table of objects", path: one + "?includeObject=Object", accept: asTable},
		{name: "get as metadata", path: one, accept: asMetadata, silent: true},
		{name: "list", path: resource},
		{name: "list as YAML", path: resource, accept: "application/yaml"},
		{name: "list as a table", path: resource, accept: asTable, silent: true},
		{name: "list as a table of objects", path: resource + "?includeObject=Object", accept: asTable},
		{name: "list as metadata", path: resource, accept: asMetadataList, silent: true},
		{name: "list of a page", path: resource + "?limit=1"},
		{name: "list from the cache", path: resource + "?resourceVersion=0"},
		{name: "list by a field", path: resource + "?fieldSelector=metadata.name%3D" + name},
		{name: "watch", path: resource + "?watch=1", until: last},
		{name: "watch of one", path: resource + "?watch=1&fieldSelector=metadata.name%3D" + name, until: name},
		{name: "watch as a table", path: resource + "?watch=1", accept: asTable, until: last, silent: true},
		{name: "watch as a table of objects", path: resource + "?watch=1&includeObject=Object", accept: asTable, until: last},
		{name: "watch as metadata", path: resource + "?watch=1", accept: asMetadata, until: last, silent: true},
		{name: "streaming list", path: initial, until: "BOOKMARK"},
		{name: "streaming list as a table of objects", path: initial + "&includeObject=Object", accept: asTable, until: "BOOKMARK"},
	}
}

// writes are the verbs that write, and leave everything but labels as it is.
func writes() []call {
	one := resource + "/" + usedByBoth
	manifest := `{"apiVersion": "images.cozystack.io/v1alpha1", "kind": "WorkerImage", "metadata": {"name": "` + usedByBoth +
		`", "labels": {"a": "b"}}, "spec": {"schematicID": "aaa", "version": "v1.13.6"}}`
	return []call{
		{name: "create what is there", method: http.MethodPost, path: resource, body: manifest, want: http.StatusConflict, silent: true},
		{name: "update", method: http.MethodPut, path: one, body: manifest},
		{name: "update as a table of objects", method: http.MethodPut, path: one + "?includeObject=Object", body: manifest, accept: asTable},
		{name: "dry-run update", method: http.MethodPut, path: one + "?dryRun=All", body: manifest},
		{name: "merge patch", method: http.MethodPatch, path: one, contentType: mergePatch, body: `{"metadata": {"labels": {"a": "c"}}}`},
		{name: "merge patch that changes nothing", method: http.MethodPatch, path: one, contentType: mergePatch, body: `{}`},
		{name: "dry-run merge patch", method: http.MethodPatch, path: one + "?dryRun=All", contentType: mergePatch, body: `{"metadata": {"labels": {"a": "d"}}}`},
		{name: "JSON patch", method: http.MethodPatch, path: one, contentType: jsonPatch, body: `[{"op": "add", "path": "/metadata/labels/a", "value": "e"}]`},
		{name: "a patch of the spec", method: http.MethodPatch, path: one, contentType: mergePatch, body: `{"spec": {"version": "v1"}}`, want: http.StatusUnprocessableEntity, silent: true},
		{name: "apply", method: http.MethodPatch, path: one + "?fieldManager=test&force=true", contentType: applyPatch, body: manifest},
		{name: "delete", method: http.MethodDelete, path: one, want: http.StatusConflict},
		{name: "dry-run delete", method: http.MethodDelete, path: one + "?dryRun=All", want: http.StatusConflict},
		{name: "delete of a collection", method: http.MethodDelete, path: resource + "?fieldSelector=metadata.name%3D" + usedByBoth, want: http.StatusConflict},
	}
}

var tenants = []string{"tenant-a", "tenant-b"}

// Guards: every use of the caller's view in the Stores of both kinds. Whatever goes round it turns this red.
func TestNothingOfATenantReachesAnother(t *testing.T) {
	f := startWithTenants(t)
	for _, c := range slices.Concat(reads(resource, usedByBoth, unused), reads(entries, usedByBoth, available), writes()) {
		c.method, c.want = cmp.Or(c.method, http.MethodGet), cmp.Or(c.want, http.StatusOK)
		t.Run(c.name+" "+path.Base(c.path), func(t *testing.T) {
			for i, tenant := range tenants {
				status, body := send(t, f.as(tenant), c)
				checkView(t, c, status, body, []string{tenant}, []string{tenants[1-i]})
			}
			status, body := send(t, f.config, c)
			checkView(t, c, status, body, tenants, nil)
		})
	}
}

// checkView checks that an answer names what the caller may see, and nothing else.
func checkView(t *testing.T, c call, status int, body string, seen, hidden []string) {
	t.Helper()
	if status != c.want {
		t.Fatalf("%d, want %d: %s", status, c.want, body)
	}
	for _, name := range seen {
		if !c.silent && !strings.Contains(body, name) {
			t.Errorf("who sees %v is not told of %s: %s", seen, name, body)
		}
	}
	for _, name := range hidden {
		if strings.Contains(body, name) {
			t.Errorf("who sees %v is told of %s: %s", seen, name, body)
		}
	}
}

// Guards: the filter of the answers to create and delete.
func TestTheAnswersToCreateAndDeleteAreTheCallersView(t *testing.T) {
	f := startWithTenants(t)
	create := call{method: http.MethodPost, path: resource, body: `{"apiVersion": "images.cozystack.io/v1alpha1", "kind": "WorkerImage",
		"spec": {"schematicID": "ccc", "version": "v1.13.6"}}`, want: http.StatusCreated}
	dryRun := create
	dryRun.path += "?dryRun=All"
	status, body := send(t, f.as("tenant-a"), dryRun)
	checkView(t, dryRun, status, body, nil, []string{"tenant-b"})
	status, body = send(t, f.as("tenant-a"), create)
	checkView(t, create, status, body, nil, []string{"tenant-b"})
	image, err := f.client.ImagesV1alpha1().WorkerImages().Get(t.Context(), missedByB, metav1.GetOptions{})
	if err != nil || image.Status.PoolCount != 1 {
		t.Errorf("the operator sees %v, %v", image, err)
	}
	remove := call{method: http.MethodDelete, path: resource + "/" + unused, want: http.StatusOK}
	status, body = send(t, f.as("tenant-a"), remove)
	checkView(t, remove, status, body, nil, []string{"tenant-b"})
}

// Guards: withoutHidden, and that what is hidden is answered in the same bytes as what is not there.
func TestAnEntryInAnotherTenantsWordsIsNotThere(t *testing.T) {
	f := startWithTenants(t)
	for _, accept := range []string{"application/json", "application/yaml", asTable, asMetadata} {
		t.Run(accept, func(t *testing.T) {
			answer := func(tenant, name string) (int, string) {
				return send(t, f.as(tenant), call{method: http.MethodGet, path: entries + "/" + name, accept: accept})
			}
			status, body := answer("tenant-a", wantedByB)
			absent := strings.ReplaceAll(wantedByB, "wants", "never")
			absentStatus, absentBody := answer("tenant-a", absent)
			if status != http.StatusNotFound || absentStatus != status || body != strings.ReplaceAll(absentBody, absent, wantedByB) {
				t.Errorf("what is hidden: %d %s\nwhat is not there: %d %s", status, body, absentStatus, absentBody)
			}
			if status, body := answer("tenant-b", wantedByB); status != http.StatusOK {
				t.Errorf("who asks for it: %d %s", status, body)
			}
		})
	}
	for _, selector := range []string{"metadata.name%3D" + wantedByB, "spec.schematicID%3Dtenant-b-wants", "status.phase%3DMissing"} {
		c := call{method: http.MethodGet, path: entries + "?fieldSelector=" + selector, want: http.StatusOK}
		status, body := send(t, f.as("tenant-a"), c)
		if checkView(t, c, status, body, nil, nil); !strings.Contains(body, `"items":[]`) {
			t.Errorf("by %s: %s", selector, body)
		}
	}
}

// Guards: cut. A token holds the name after which the next page begins.
func TestNoPageEndsAtAnotherTenantsWords(t *testing.T) {
	f := startWithTenants(t)
	next := ""
	for page := 0; page == 0 || next != ""; page++ {
		status, body := send(t, f.as("tenant-a"), call{method: http.MethodGet, path: entries + "?limit=1&continue=" + next})
		var list struct{ Metadata metav1.ListMeta }
		if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s, %v", status, body, err)
		}
		next = list.Metadata.Continue
		token, err := base64.RawURLEncoding.DecodeString(next)
		if err != nil || strings.Contains(string(token)+body, "tenant-b") || page > 3 {
			t.Errorf("page %d is %s, and the token is %s, %v", page, body, token, err)
		}
	}
}

// Guards: projection.AskedBy, as clients meet it.
func TestThePhaseOfAnEntryIsThatOfThePoolsThatAreSeen(t *testing.T) {
	f := startWithTenants(t)
	for tenant, want := range map[string]string{"tenant-a": "Available", "tenant-b": "Missing"} {
		_, body := send(t, f.as(tenant), call{method: http.MethodGet, path: entries + "/" + missedByB})
		if !strings.Contains(body, `"phase":"`+want+`"`) {
			t.Errorf("to %s it is %s", tenant, body)
		}
		_, none := send(t, f.as(tenant), call{method: http.MethodGet, path: entries + "/" + available})
		same := strings.ReplaceAll(none, "zzz", "ccc")
		if alike := conditionsOf(t, body) == conditionsOf(t, same); !alike {
			t.Errorf("its conditions differ from those of an entry that nobody asks for: %s\n%s", body, none)
		}
	}
}

// conditionsOf returns the conditions of an object, without the times.
func conditionsOf(t *testing.T, object string) string {
	t.Helper()
	var o struct {
		Status struct{ Conditions []metav1.Condition }
	}
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	for i := range o.Status.Conditions {
		o.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return fmt.Sprint(o.Status.Conditions)
}

// Guards: filterHidden, by the bytes that a client is sent.
func TestAnEntryComesAndGoesForWhoeverSeesItsPools(t *testing.T) {
	f := startWithTenants(t)
	const shared = "talos-worker-later-v1.13.6"
	_, listed := send(t, f.as("tenant-a"), call{method: http.MethodGet, path: entries})
	version := listVersion(t, listed)
	a, b := poolOf("tenant-a", "aaa", "Succeeded"), poolOf("tenant-b", "aaa", "Succeeded")
	wait := func(what string, pools int) {
		t.Helper()
		eventually(t, what, func(context.Context) (bool, error) {
			status, body := send(t, f.config, call{method: http.MethodGet, path: entries + "/" + shared})
			return status == http.StatusNotFound && pools == 0 || strings.Contains(body, fmt.Sprintf(`"poolCount":%d,`, pools)), nil
		})
	}
	f.put(t, "pools-b.yaml", b+poolOf("tenant-b", "later", "Pending"))
	wait("tenant-b asks for it", 1)
	f.put(t, "pools-a.yaml", a+poolOf("tenant-a", "later", "Pending"))
	wait("both ask for it", 2)
	f.put(t, "pools-a.yaml", a)
	wait("only tenant-b asks for it", 1)
	f.put(t, "pools-b.yaml", b)
	wait("nobody asks for it", 0)
	f.put(t, "catalog.yaml", configMap(tenantsCatalog+"- {schematicID: later, version: v1.13.6}\n"))

	c := call{method: http.MethodGet, path: entries + "?watch=1&fieldSelector=metadata.name%3D" + shared + "&resourceVersion=" + version,
		until: `"declared":true`, want: http.StatusOK}
	status, body := send(t, f.as("tenant-a"), c)
	checkView(t, c, status, body, []string{"tenant-a"}, []string{"tenant-b"})
	var types []string
	for event := range strings.Lines(body) {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(event), &e); err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	if !slices.Equal(types, []string{"ADDED", "DELETED", "ADDED"}) {
		t.Errorf("%v: %s", types, body)
	}
}

// Guards: that the nearest entries are of the catalog, whatever pools ask for.
func TestARefusedCreateNamesNothingThatAnotherTenantWrote(t *testing.T) {
	f := startWithTenants(t)
	for _, schematic := range []string{"tenant-x-wants", "bbbb", "ccc"} {
		c := call{method: http.MethodPost, path: resource, want: http.StatusUnprocessableEntity,
			body: `{"apiVersion": "images.cozystack.io/v1alpha1", "kind": "WorkerImage", "spec": {"schematicID": "` + schematic + `", "version": "v1.13.7"}}`}
		status, body := send(t, f.as("tenant-a"), c)
		if checkView(t, c, status, body, nil, []string{"tenant-b"}); !strings.Contains(body, "zzz") {
			t.Errorf("it names no entry that is near: %s", body)
		}
	}
}

// Guards: visibleInfo. What a patch tests or copies must not be what is hidden.
func TestAPatchCannotReadWhatIsHidden(t *testing.T) {
	f := startWithTenants(t)
	const hidden, absent = 1, 2
	for name, op := range map[string]string{
		"test":              `{"op": "test", "path": "/status/pools/%d/namespace", "value": "tenant-b"}`,
		"test of the whole": `{"op": "test", "path": "/status/pools/%d", "value": {}}`,
		"copy":              `{"op": "copy", "from": "/status/pools/%d/namespace", "path": "/metadata/labels/a"}`,
		"move":              `{"op": "move", "from": "/status/pools/%d/namespace", "path": "/metadata/labels/a"}`,
		"remove":            `{"op": "remove", "path": "/status/pools/%d"}`,
		"replace":           `{"op": "replace", "path": "/status/pools/%d/namespace", "value": "x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(config *rest.Config, index int) (int, string) {
				return send(t, config, call{method: http.MethodPatch, path: resource + "/" + usedByBoth, contentType: jsonPatch,
					body: `[{"op": "add", "path": "/metadata/labels", "value": {}}, ` + fmt.Sprintf(op, index) + `]`})
			}
			hiddenStatus, hiddenBody := answer(f.as("tenant-a"), hidden)
			absentStatus, absentBody := answer(f.as("tenant-a"), absent)
			same := strings.ReplaceAll(absentBody, fmt.Sprintf("/%d", absent), fmt.Sprintf("/%d", hidden))
			if hiddenStatus < 400 || hiddenStatus != absentStatus || hiddenBody != same {
				t.Errorf("what is hidden: %d %s\nwhat is not there: %d %s", hiddenStatus, hiddenBody, absentStatus, absentBody)
			}
		})
	}
	t.Run("a test of the count", func(t *testing.T) {
		for count, want := range map[int]int{1: http.StatusOK, 2: http.StatusUnprocessableEntity} {
			status, body := send(t, f.as("tenant-a"), call{method: http.MethodPatch, path: resource + "/" + usedByBoth, contentType: jsonPatch,
				body: fmt.Sprintf(`[{"op": "test", "path": "/status/poolCount", "value": %d}]`, count)})
			if status != want {
				t.Errorf("that it is %d: %d %s", count, status, body)
			}
		}
	})
}

// Guards: readsTheSame, by the bytes that a client is sent.
func TestAChangeOfAnotherTenantSendsNothing(t *testing.T) {
	f := startWithTenants(t)
	for _, kind := range []struct{ resource, watched string }{{resource, usedByBoth}, {entries, usedByBoth}} {
		t.Run(path.Base(kind.resource), func(t *testing.T) {
			_, listed := send(t, f.config, call{method: http.MethodGet, path: kind.resource})
			version := listVersion(t, listed)
			f.put(t, "pools-b.yaml", poolOf("tenant-b", "aaa", "Pending"))
			f.awaitPools(t, kind.resource, kind.watched, `"cloning":1`)
			f.put(t, "pools-a.yaml", poolOf("tenant-a", "aaa", "Failed"))
			c := call{method: http.MethodGet, path: kind.resource + "?watch=1&resourceVersion=" + version +
				"&fieldSelector=metadata.name%3D" + kind.watched, until: `"failed":1`, want: http.StatusOK}
			status, body := send(t, f.as("tenant-a"), c)
			checkView(t, c, status, body, []string{"tenant-a"}, []string{"tenant-b"})
			if events := strings.Count(body, "\n"); events != 1 {
				t.Errorf("%d events for one change: %s", events, body)
			}
			f.put(t, "pools-b.yaml", poolOf("tenant-b", "aaa", "Succeeded"))
			f.put(t, "pools-a.yaml", poolOf("tenant-a", "aaa", "Succeeded"))
			f.awaitPools(t, kind.resource, kind.watched, `"cloned":1,"cloning":0,"failed":0`)
		})
	}
}

// awaitPools waits until the operator is shown a text in every pool of an object.
func (f *fixture) awaitPools(t *testing.T, resource, name, text string) {
	t.Helper()
	eventually(t, name+" says "+text, func(context.Context) (bool, error) {
		_, body := send(t, f.config, call{method: http.MethodGet, path: resource + "/" + name})
		return strings.Contains(body, text), nil
	})
}

func listVersion(t *testing.T, list string) string {
	t.Helper()
	var meta struct{ Metadata metav1.ListMeta }
	if err := json.Unmarshal([]byte(list), &meta); err != nil || meta.Metadata.ResourceVersion == "" {
		t.Fatalf("no version in %s: %v", list, err)
	}
	return meta.Metadata.ResourceVersion
}

// Guards: that questions are about whom the operator acts as.
func TestWhoeverActsAsATenantSeesWhatTheTenantSees(t *testing.T) {
	f := startWithTenants(t)
	as := rest.CopyConfig(f.config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"tenant-a"}}
	for _, c := range slices.Concat(reads(resource, usedByBoth, unused), reads(entries, usedByBoth, available)) {
		c.method = http.MethodGet
		t.Run(c.name+" "+path.Base(c.path), func(t *testing.T) {
			_, own := send(t, f.as("tenant-a"), c)
			_, got := send(t, as, c)
			if got != own {
				t.Errorf("got  %s\nwant %s", got, own)
			}
		})
	}
}

// Guards: that no metric has a label whose values tenants choose.
func TestMetricsNameNoTenant(t *testing.T) {
	f := startWithTenants(t)
	for _, c := range slices.Concat(reads(resource, usedByBoth, unused), reads(entries, usedByBoth, available)) {
		c.method = http.MethodGet
		send(t, f.as("tenant-a"), c)
	}
	status, body := send(t, f.config, call{method: http.MethodGet, path: "/metrics"})
	if status != http.StatusOK || !strings.Contains(body, "workerimages") || strings.Contains(body, "tenant-") {
		for line := range strings.Lines(body) {
			if strings.Contains(line, "tenant-") {
				t.Error(line)
			}
		}
		t.Errorf("%d, %d bytes", status, len(body))
	}
}
