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

package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// root is the repository.
const root = "../.."

var (
	workerImages   = schema.GroupVersionResource{Group: "images.cozystack.io", Version: "v1alpha1", Resource: "workerimages"}
	catalogEntries = schema.GroupVersionResource{Group: "images.cozystack.io", Version: "v1alpha1", Resource: "catalogentries"}
)

const (
	catalogName = "worker-image-catalog"
	catalogKey  = "catalog.yaml"
)

// The schematics that tests make images of. Each test has its own, and those that begin with steady are imported for
// some seconds.
var declared = []string{"flux-life", "flux-forced", "flux-used", "steady-flux", "argo-life", "argo-used", "argo-forced", "steady-argo"}

// shared is what outlives a test.
var shared = newEnvironment()

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if err := shared.tearDown(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// environment is the server's program and the stack that runs it. What no test asks for is not made.
type environment struct {
	server func() (path string, err error)
	dir    string
	stack  *stack.Shared
}

func newEnvironment() *environment {
	e := &environment{}
	e.server = sync.OnceValues(e.build)
	e.stack = stack.NewShared(e.start)
	return e
}

func (e *environment) build() (path string, err error) {
	if e.dir, err = os.MkdirTemp("", "gitops-"); err != nil {
		return "", err
	}
	path = filepath.Join(e.dir, "workerimage-apiserver")
	return path, stack.Build(context.Background(), root, "./cmd/workerimage-apiserver", path, []string{"CGO_ENABLED=0"}, "-trimpath")
}

func (e *environment) start() (*stack.Stack, error) {
	server, err := e.server()
	if err != nil {
		return nil, err
	}
	running, err := stack.Start(context.Background(), stack.Options{
		Server:    server,
		Manifests: filepath.Join(root, "artifacts", "deploy"),
		Load:      []string{filepath.Join(root, "artifacts", "samples", "stack")},
	})
	if err != nil {
		return nil, err
	}
	return running, errors.Join(declareImages(running), slowDown(running))
}

func (e *environment) tearDown(failed bool) error {
	return errors.Join(e.stack.End(failed), os.RemoveAll(e.dir))
}

// declareImages adds the images of the tests to the catalog of the samples.
func declareImages(s *stack.Stack) error {
	ctx := context.Background()
	text, err := catalogText(ctx, s)
	if err != nil {
		return err
	}
	for _, schematic := range declared {
		text += fmt.Sprintf("- {schematicID: %s, version: %s}\n", schematic, objects.Release)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]any{catalogKey: text}})
	if err != nil {
		return err
	}
	_, err = s.Resource(objects.ConfigMaps, objects.Goldens).Patch(ctx, catalogName, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// catalogText returns the catalog, which ends with its list of images.
func catalogText(ctx context.Context, s *stack.Stack) (string, error) {
	catalog, err := s.Resource(objects.ConfigMaps, objects.Goldens).Get(ctx, catalogName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(catalog.Object, "data", catalogKey)
	return text, err
}

// slowDown lets some imports take long enough for a test to tell before from after.
func slowDown(s *stack.Stack) error {
	rules, err := nodesim.ReadRules(s.State().SimRules)
	if err != nil {
		return err
	}
	rules.Rules = append([]stack.Rule{{Match: "/image/steady-", Duration: metav1.Duration{Duration: 3 * time.Second}}}, rules.Rules...)
	return s.SetSimRules(rules)
}

// newImage returns what somebody has in a repository.
func newImage(schematic string) *unstructured.Unstructured {
	image := objects.New("images.cozystack.io/v1alpha1", "WorkerImage", "", objects.NameOf(schematic))
	image.Object["spec"] = map[string]any{"schematicID": schematic, "version": objects.Release}
	return image
}

// live returns an object that is there.
func live(t *testing.T, s *stack.Stack, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := s.Resource(resource, "").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// awaitCondition waits for a condition of an image.
func awaitCondition(t *testing.T, s *stack.Stack, name, kind, status string) {
	t.Helper()
	await.For(t, kind+" of "+name, func(ctx context.Context) error {
		image, err := s.Resource(workerImages, "").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := conditionOf(image, kind)["status"]; got != status {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

// conditionOf returns a condition, or an empty one.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// use has a pool ask for an image until the test ends or release is called.
func use(t *testing.T, s *stack.Stack, schematic string) (release func()) {
	t.Helper()
	pool := objects.NewPool("tenant-a", "gitops", schematic, objects.ClassName, schematic)
	s.Create(t, objects.Pools, pool)
	awaitCondition(t, s, objects.NameOf(schematic), "InUse", "True")
	return func() {
		t.Helper()
		s.Remove(t, objects.Pools, pool.GetNamespace(), pool.GetName())
		awaitCondition(t, s, objects.NameOf(schematic), "Deletable", "True")
	}
}
