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
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/conformance"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// The goldens of the suite: large ones, and others whose imports begin and fail as the clauses need it.
var (
	conformingLarge  = []string{"conform-a", "conform-b", "conform-c"}
	conformingDriven = []string{"conform-d", "conform-e"}
)

func TestConformance(t *testing.T) {
	p := quietPlatform(t)
	config := conformance.Config{REST: p.RESTConfig(), Kubectl: p.kubectl.conformance, Complete: true}

	t.Run("of nothing", func(t *testing.T) {
		config := config
		config.Resources = []conformance.Resource{conformance.WorkerImages(), conformance.CatalogEntries()}
		conformance.Run(t, config)
	})
	p.createConforming(t)
	config.Resources = p.drivenResources(t)
	conformance.Run(t, config)
}

// A clause that kube-apiserver does not keep for a kind of its own is wrong.
func TestABuiltInKindConforms(t *testing.T) {
	p := quietPlatform(t)
	for _, name := range conformingLarge {
		large := objects.New("v1", "ConfigMap", "default", name)
		large.Object["data"] = map[string]any{"large": strings.Repeat("x", 50_000)}
		p.Create(t, objects.ConfigMaps, large)
	}
	builtIn := conformance.BuiltIn(objects.ConfigMaps, "ConfigMap", "default")
	builtIn.Driver = p.labelDriver(t, builtIn)
	conformance.Run(t, conformance.Config{
		REST:      p.RESTConfig(),
		Resources: []conformance.Resource{builtIn},
		Kubectl:   p.kubectl.conformance,
		Complete:  true,
	})
}

// conformance runs kubectl for the suite.
func (k kubectl) conformance(ctx context.Context, args ...string) (string, error) {
	said, log, err := k.try(ctx, "", args...)
	if err != nil {
		err = fmt.Errorf("kubectl %v: %w: %s", args, err, log)
	}
	return said, err
}

func (p *platform) labelDriver(t *testing.T, r conformance.Resource) *conformance.Driver {
	t.Helper()
	driver, err := conformance.LabelDriver(t.Context(), p.RESTConfig(), r)
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

// createConforming makes goldens that pools ask for, some of them so large that their list is compressed.
func (p *platform) createConforming(t *testing.T) {
	t.Helper()
	for _, schematic := range slices.Concat(conformingLarge, conformingDriven) {
		p.createGolden(t, objects.NewGolden(schematic))
		p.Create(t, objects.Pools, objects.NewPool("tenant-a", schematic, "md0", "replicated", schematic))
	}
	for _, schematic := range slices.Concat(conformingLarge, conformingDriven) {
		p.awaitImage(t, objects.NameOf(schematic), "used", func(image *v1alpha1.WorkerImage) bool { return image.Status.PoolCount == 1 })
	}
	for _, schematic := range conformingLarge {
		p.Patch(t, conformance.WorkerImages().GroupVersionResource, "", objects.NameOf(schematic),
			fmt.Sprintf(`{"metadata":{"annotations":{"large":%q}}}`, strings.Repeat("x", 50_000)))
	}
}

// drivenResources have drivers that the suite does not have by itself: what is not written through the API of a resource
// is driven by the import of a golden.
func (p *platform) drivenResources(t *testing.T) []conformance.Resource {
	t.Helper()
	driven := conformingDriven[0]
	name := objects.NameOf(driven)
	images, entries, options := conformance.WorkerImages(), conformance.CatalogEntries(), conformance.Options("default")
	images.Driver = p.labelDriver(t, images)
	images.Driver.Churn = p.churnImports
	entries.Driver = &conformance.Driver{
		Name:     name,
		Selector: "fieldSelector=status.phase=Importing",
		Churn:    p.churnImports,
		Set: func(ctx context.Context, importing bool) error {
			return p.setImporting(ctx, driven, importing, func(phase string) error { return p.showsPhase(ctx, entries, name, phase) })
		},
	}
	options.Driver = &conformance.Driver{
		Name: offeredSchematics,
		Set: func(ctx context.Context, importing bool) error {
			return p.setImporting(ctx, driven, importing, func(string) error { return p.showsOffer(ctx, options, driven, importing) })
		},
	}
	return []conformance.Resource{images, entries, options}
}

// setImporting has the import of a golden go on or fail, and waits until that shows.
func (p *platform) setImporting(ctx context.Context, schematic string, importing bool, shows func(phase string) error) error {
	cdiPhase, phase := "Failed", "Failed"
	if importing {
		cdiPhase, phase = "ImportInProgress", "Importing"
	}
	if err := p.setPhase(ctx, schematic, cdiPhase); err != nil {
		return err
	}
	return await.Poll(ctx, func(context.Context) error { return shows(phase) })
}

func (p *platform) setPhase(ctx context.Context, schematic, phase string) error {
	patch := fmt.Sprintf(`{"status":{"phase":%q}}`, phase)
	_, err := p.Resource(objects.DataVolumes, objects.Goldens).Patch(ctx, objects.NameOf(schematic), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

func (p *platform) showsPhase(ctx context.Context, r conformance.Resource, name, want string) error {
	entry, err := p.Resource(r.GroupVersionResource, r.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	phase, _, err := unstructured.NestedString(entry.Object, "status", "phase")
	if err == nil && phase != want {
		err = fmt.Errorf("its phase is %s", phase)
	}
	return err
}

// offeredSchematics is the Option that changes with the import of a golden. It is not the first.
const offeredSchematics = "workerimage-schematic"

// showsOffer expects that a schematic is offered, or that it is not.
func (p *platform) showsOffer(ctx context.Context, r conformance.Resource, schematic string, want bool) error {
	option, err := p.Resource(r.GroupVersionResource, r.Namespace).Get(ctx, offeredSchematics, metav1.GetOptions{})
	if err != nil {
		return err
	}
	items, _, err := unstructured.NestedSlice(option.Object, "spec", "items")
	if err != nil {
		return err
	}
	offered := slices.ContainsFunc(items, func(item any) bool {
		choice, ok := item.(map[string]any)
		return ok && choice["value"] == schematic
	})
	if offered != want {
		return fmt.Errorf("%s is offered: %v", schematic, offered)
	}
	return nil
}

// churnImports has imports begin and fail many times, and leaves them failed.
func (p *platform) churnImports(ctx context.Context) error {
	const times = 100
	var running sync.WaitGroup
	failures := make(chan error, len(conformingDriven))
	for _, schematic := range conformingDriven {
		running.Go(func() {
			for range times {
				for _, phase := range []string{"ImportInProgress", "Failed"} {
					if err := p.setPhase(ctx, schematic, phase); err != nil {
						failures <- err
						return
					}
				}
			}
		})
	}
	running.Wait()
	close(failures)
	return <-failures
}
