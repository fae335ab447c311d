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

package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// defaultWatches are more than an HTTP/2 connection has streams.
const defaultWatches = 1000

// Config says what is held against the contract.
type Config struct {
	// REST reaches the cluster as a user who may read the resources, and make the changes of their drivers.
	REST *rest.Config
	// Resources are all of one group, and are gone through in this order.
	Resources []Resource
	// Kubectl runs kubectl on the cluster and returns what it prints; nil where there is none.
	Kubectl func(ctx context.Context, args ...string) (string, error)
	// Watches is how many are open at once while discovery answers; 1,000 unless told otherwise.
	Watches int
	// Complete fails every clause that cannot be put to the test.
	Complete bool
}

// Resource is what the clauses are put to.
type Resource struct {
	schema.GroupVersionResource
	Kind string
	// Namespace is where it is asked for; empty for objects of the cluster.
	Namespace string
	// Epochs tells that a resourceVersion says which server issued it, and is expired for every other.
	Epochs bool
	// Except are clauses that are not for this resource whatever the cluster, and why.
	Except map[string]string
	// Driver makes changes; nil where nobody can.
	Driver *Driver
}

// group is where the resource's version of its group is served.
func (r Resource) group() string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.Group + "/" + r.Version
}

// path is where the resource is served.
func (r Resource) path() string {
	if r.Namespace == "" {
		return r.group() + "/" + r.GroupVersionResource.Resource
	}
	return r.group() + "/namespaces/" + r.Namespace + "/" + r.GroupVersionResource.Resource
}

// Driver moves an object to and fro between two states.
type Driver struct {
	// Name is the object's.
	Name string
	// Selector is the part of a query that selects the object in the one state and not in the other; empty if there is none.
	Selector string
	// Set moves the object to the state that Selector selects, or to the other, and returns when that can be read.
	Set func(ctx context.Context, selected bool) error
	// Churn makes many changes. It is called until the server has forgotten how things were; Set is, if it is nil.
	Churn func(ctx context.Context) error
}

// clause is a sentence of the contract, and how to find out whether it is kept.
type clause struct {
	name string
	// needs are asked in turn for why the clause cannot be put to the test.
	needs []need
	check func(t *testing.T, s *subject)
}

// need returns what is missing, and nothing if it is there.
type need func(ctx context.Context, s *subject) lack

// lack is why a clause cannot be put to a resource.
type lack struct {
	reason string
	// byNature is true where no other cluster could change that.
	byNature bool
}

// Run puts the clauses to the resources of the configuration, as tests that are named resource/clause. What they have in
// common is tested as group/clause.
func Run(t *testing.T, config Config) {
	t.Helper()
	uncompressed := rest.CopyConfig(config.REST)
	uncompressed.DisableCompression = true
	client, err := wire.NewClient(uncompressed)
	if err != nil {
		t.Fatal(err)
	}
	config.Watches = cmp.Or(config.Watches, defaultWatches)
	run := &runner{config: config, client: client}
	var subjects []*subject
	for _, resource := range config.Resources {
		subjects = append(subjects, newSubject(t, client, config, resource))
	}
	for _, s := range subjects {
		t.Run(s.GroupVersionResource.Resource, func(t *testing.T) {
			for _, c := range s.clauses() {
				run.resource(t, s, c)
			}
		})
	}
	if slices.ContainsFunc(subjects, func(s *subject) bool { return s.size > 0 }) {
		t.Run("group", func(t *testing.T) { run.group(t, subjects) })
	}
	t.Log(run.summary())
}

// runner counts what became of the clauses.
type runner struct {
	config Config
	client *wire.Client

	mu     sync.Mutex
	put    int
	notPut []string
	// foreign are those that are not for the resource.
	foreign []string
}

func (r *runner) resource(t *testing.T, s *subject, c clause) {
	t.Run(c.name, func(t *testing.T) {
		if reason, ok := s.Except[c.name]; ok {
			r.inapplicable(t, lack{reason, true})
			return
		}
		for _, need := range c.needs {
			if lack := need(t.Context(), s); lack.reason != "" {
				r.inapplicable(t, lack)
				return
			}
		}
		r.count()
		c.check(t, s)
	})
}

// inapplicable says why a clause is not put to the test.
func (r *runner) inapplicable(t *testing.T, l lack) {
	t.Helper()
	line := fmt.Sprintf("%s: %s", t.Name(), l.reason)
	switch {
	case l.byNature:
		r.note(&r.foreign, line)
		t.Logf("not a clause for this resource: %s", l.reason)
	case r.config.Complete:
		r.note(&r.notPut, line)
		t.Errorf("not applicable: %s", l.reason)
	default:
		r.note(&r.notPut, line)
		t.Logf("not applicable: %s", l.reason)
	}
}

func (r *runner) note(to *[]string, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*to = append(*to, line)
}

func (r *runner) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put++
}

func (r *runner) summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out strings.Builder
	fmt.Fprintf(&out, "%d clauses were put to the test, %d could not be, %d are not for the resource.", r.put, len(r.notPut), len(r.foreign))
	for _, line := range r.notPut {
		out.WriteString("\n  not put to the test: " + line)
	}
	for _, line := range r.foreign {
		out.WriteString("\n  not for the resource: " + line)
	}
	return out.String()
}

// subject is a resource that clauses are put to.
type subject struct {
	Resource
	client  *wire.Client
	kubectl func(ctx context.Context, args ...string) (string, error)
	path    string
	verbs   sets.Set[string]
	// size is how many objects there are.
	size int
	// past is how things were before the first clause.
	past past
	// forget makes the server forget the past, once.
	forget func(ctx context.Context) error
}

func newSubject(t *testing.T, client *wire.Client, config Config, resource Resource) *subject {
	t.Helper()
	s := &subject{Resource: resource, client: client, kubectl: config.Kubectl, path: resource.path()}
	var discovered metav1.APIResourceList
	client.Get(t, s.group(), wire.JSON).Decode(t, &discovered)
	for _, r := range discovered.APIResources {
		if r.Name == resource.GroupVersionResource.Resource {
			s.verbs = sets.New(r.Verbs...)
		}
	}
	if s.verbs == nil {
		t.Fatalf("%s is not served", resource.GroupVersionResource)
	}
	for name := range s.Except {
		if !slices.ContainsFunc(allClauses(), func(c clause) bool { return c.name == name }) {
			t.Errorf("no clause is named %q", name)
		}
	}
	s.size = len(s.list(t, "").Items)
	s.past = s.remember(t)
	s.forget = onceFor(s.churnAway)
	return s
}

// onceFor returns f, which is called once and gives everybody its result.
func onceFor(f func(context.Context) error) func(context.Context) error {
	var once sync.Once
	var err error
	return func(ctx context.Context) error {
		once.Do(func() { err = f(ctx) })
		return err
	}
}

// clauses are those that hold for as many objects as there are.
func (s *subject) clauses() []clause {
	if s.size == 0 {
		return emptyClauses()
	}
	return allClauses()
}

func allClauses() []clause {
	return slices.Concat(readClauses(), watchClauses(), changeClauses(), selectClauses(), formatClauses(), requestClauses(), historyClauses())
}

// What clauses need.

func objects(count int) need {
	return func(_ context.Context, s *subject) lack {
		if s.size < count {
			return lack{reason: fmt.Sprintf("there are %d objects, and it takes %d", s.size, count)}
		}
		return lack{}
	}
}

func changes(_ context.Context, s *subject) lack {
	if s.Driver == nil {
		return lack{reason: "nobody here can change an object of this resource"}
	}
	return lack{}
}

func selection(ctx context.Context, s *subject) lack {
	if s.Driver != nil && s.Driver.Selector == "" {
		return lack{reason: "no selector tells the states of an object apart"}
	}
	return changes(ctx, s)
}

func explained(_ context.Context, s *subject) lack {
	if s.kubectl == nil {
		return lack{reason: "there is no kubectl"}
	}
	return lack{}
}

// forgotten has the server forget the past first.
func forgotten(ctx context.Context, s *subject) lack {
	if err := s.forget(ctx); err != nil {
		return lack{reason: err.Error()}
	}
	return lack{}
}

func epochs(_ context.Context, s *subject) lack {
	if !s.Epochs {
		return lack{"its resourceVersions do not say who issued them", true}
	}
	return lack{}
}

func verb(verb string) need {
	return func(_ context.Context, s *subject) lack {
		if !s.verbs.Has(verb) {
			return lack{"it does not know the verb " + verb, true}
		}
		return lack{}
	}
}

func without(verb string) need {
	return func(_ context.Context, s *subject) lack {
		if s.verbs.Has(verb) {
			return lack{"it knows the verb " + verb, true}
		}
		return lack{}
	}
}

// set drives the object of the driver, and at the end of the test back to the state that is not selected.
func (s *subject) set(t *testing.T, selected bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	if err := s.Driver.Set(ctx, selected); err != nil {
		t.Fatalf("change %s: %v", s.Driver.Name, err)
	}
}

// settle drives the object to the state that is not selected, from which clauses begin.
func (s *subject) settle(t *testing.T) {
	t.Helper()
	s.set(t, false)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), await.Patience)
		defer cancel()
		if err := s.Driver.Set(ctx, false); err != nil {
			t.Errorf("change %s back: %v", s.Driver.Name, err)
		}
	})
}

// first is the name of an object.
func (s *subject) first(t *testing.T) string {
	t.Helper()
	items := s.list(t, "").Items
	if len(items) == 0 {
		t.Fatal("all objects are gone")
	}
	return items[0].GetName()
}

// object is the path of an object.
func (s *subject) object(name string) string { return s.path + "/" + name }

func (s *subject) ask(t *testing.T, query string) wire.Answer {
	t.Helper()
	return s.client.Get(t, s.path+"?"+query, wire.JSON)
}

// list returns what a good answer lists.
func (s *subject) list(t *testing.T, query string) *list {
	t.Helper()
	return s.ask(t, query).List(t)
}
