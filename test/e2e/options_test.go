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

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/options"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

const optionsOfTenantA = group + "/namespaces/tenant-a/options"

// onlyOptions is the platform as somebody meets it who may read options in tenant-a, and nothing else that is not
// everybody's.
func (p *platform) onlyOptions(t *testing.T) *platform {
	t.Helper()
	p.Create(t, objects.RoleBindings, objects.NewBinding("RoleBinding", "tenant-a", "forms", "workerimages-options", "forms"))
	config, err := clientcmd.LoadFromFile(p.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = "form", []string{"forms", "system:authenticated"}
	}
	own := *p
	own.kubectl.kubeconfig, own.kubectl.cache = filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "cache")
	if err := clientcmd.WriteToFile(*config, own.kubectl.kubeconfig); err != nil {
		t.Fatal(err)
	}
	client, err := clientcmd.BuildConfigFromFlags("", own.kubectl.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if own.wire, err = wire.NewClient(client); err != nil {
		t.Fatal(err)
	}
	await.For(t, "the binding to be in force", func(ctx context.Context) error {
		a, err := own.wire.Try(ctx, http.MethodGet, optionsOfTenantA, wire.Accepting(wire.JSON), "")
		if err == nil && a.Status != http.StatusOK {
			err = errors.New(string(a.Body))
		}
		return err
	})
	return &own
}

// Guards: that an offer takes no right but the one to options in one namespace.
func TestWhoMayReadOptionsInOneNamespaceIsOfferedImages(t *testing.T) {
	form := settledPlatform(t).onlyOptions(t)
	t.Run("and may read nothing that the offer is made of", func(t *testing.T) {
		for _, path := range []string{
			"/apis/cdi.kubevirt.io/v1beta1/namespaces/cozy-public/datavolumes",
			"/apis/cdi.kubevirt.io/v1beta1/namespaces/tenant-a/datavolumes",
			"/api/v1/namespaces/cozy-public/persistentvolumeclaims",
			"/apis/apps.cozystack.io/v1alpha1/namespaces/tenant-a/kubernetesnodeses",
		} {
			if a := form.wire.Get(t, path, wire.JSON); a.Status != http.StatusForbidden {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
	})
	t.Run("and is refused in another namespace, and in all of them", func(t *testing.T) {
		for _, path := range []string{"/namespaces/tenant-b/options", "/namespaces/cozy-public/options", "/options", "/options?watch=1"} {
			if a := form.wire.Get(t, group+path, wire.JSON); a.Status != http.StatusForbidden {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
	})
	t.Run("as a table", func(t *testing.T) {
		lines := linesOf(form.kubectl.run(t, "get", "options", "-n", "tenant-a"))
		equal(t, strings.Fields(lines[0]), []string{"NAME", "ITEMS", "DEFAULT"})
		equal(t, firstCells(lines[1:]), []string{options.Images, options.Schematics, options.Versions})
	})
	t.Run("as objects", func(t *testing.T) {
		var option *v1alpha1.Option
		await.For(t, "an offer of all that is ready", func(context.Context) error {
			text := form.kubectl.run(t, "get", "option", options.Images, "-n", "tenant-a", "-o", "yaml")
			option = &v1alpha1.Option{}
			if err := yaml.UnmarshalStrict([]byte(text), option); err != nil {
				return err
			}
			var ready []string
			for _, item := range option.Spec.Items {
				// One sample takes a minute to import, and is Ready or not by now.
				if !strings.Contains(item.Label, "importing") && item.Value != slowSample {
					ready = append(ready, item.Value)
				}
			}
			if !slices.Equal(ready, []string{defaultSample, edgeSample, nvidiaSample}) {
				return fmt.Errorf("ready are %v", ready)
			}
			return nil
		})
		equal(t, option.Namespace, "tenant-a")
		for _, item := range option.Spec.Items {
			equal(t, item.Default, item.Value == defaultSample)
			if item.Value == classlessSample {
				t.Errorf("an image is offered that has no class: %+v", item)
			}
		}
		equal(t, option.Spec.Items[0].Label, "v1.13.6 · ce4c980550dd")
	})
}

// Guards: that the offer of a namespace is watched like any resource, through the aggregator.
func TestAnOfferFollowsAnImport(t *testing.T) {
	p := quietPlatform(t)
	form := p.onlyOptions(t)
	const schematic = "offered"
	name := objects.NameOf(schematic)
	offers := form.kubectl.follow(t, "get", "option", options.Images, "-n", "tenant-a", "--watch",
		"-o", `jsonpath={.metadata.namespace}:{.spec.items[*].label}{"\n"}`)
	says := func(label string) func(string) bool {
		return func(line string) bool { return line == "tenant-a:"+label }
	}
	offers.until(t, "the first offer", says(""))

	golden := p.createGolden(t, objects.NewGolden(schematic))
	p.Patch(t, objects.DataVolumes, objects.Goldens, name, `{"status":{"phase":"ImportInProgress","progress":"12.5%"}}`, "status")
	offers.until(t, "an offer of an image that is being imported", says("v1.13.6 · offered (importing)"))
	p.Create(t, objects.Claims, objects.NewClaim(schematic, golden.GetUID()))
	p.Patch(t, objects.Claims, objects.Goldens, name, `{"status":{"phase":"Bound"}}`, "status")
	p.Patch(t, objects.DataVolumes, objects.Goldens, name, `{"status":{"phase":"ImportInProgress","progress":"99.9%"}}`, "status")
	p.awaitImage(t, name, "nearly there", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.Progress != nil && *image.Status.Progress == 99
	})
	p.Patch(t, objects.DataVolumes, objects.Goldens, name, `{"status":{"phase":"Succeeded","progress":"100.0%"}}`, "status")
	lines := offers.until(t, "an offer of an image that is ready", says("v1.13.6 · offered"))
	if len(lines) != 1 {
		t.Errorf("progress made offers: %q", lines)
	}
	p.Remove(t, objects.DataVolumes, objects.Goldens, name)
	p.Remove(t, objects.Claims, objects.Goldens, name)
	offers.until(t, "an offer without it", says(""))
}

// Guards: that cozystack-api can offer what is offered here.
func TestAnotherServerOffersTheSame(t *testing.T) {
	p := settledPlatform(t)
	client, err := dynamic.NewForConfig(p.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{options.Images, options.Schematics, options.Versions} {
		await.For(t, "one offer of "+source, func(ctx context.Context) error {
			items, err := options.New(client).Items(ctx, source)
			if err != nil {
				return err
			}
			provided := make([]v1alpha1.OptionItem, 0, len(items))
			for _, item := range items {
				provided = append(provided, v1alpha1.OptionItem(item))
			}
			var served v1alpha1.Option
			p.wire.Get(t, optionsOfTenantA+"/"+source, wire.JSON).Decode(t, &served)
			if diff := cmp.Diff(served.Spec.Items, provided); diff != "" || len(provided) == 0 {
				return fmt.Errorf("(-served +provided): %s", diff)
			}
			return nil
		})
	}
}
