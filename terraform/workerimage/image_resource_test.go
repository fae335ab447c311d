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

package workerimage_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/imagestest"
)

const (
	made     = "workerimage_worker_image.this"
	madeName = "talos-worker-gpu-v1.13.6"
)

// image is a resource with more arguments, separated by ", ".
func image(version, arguments string) string {
	return fmt.Sprintf("\nresource \"workerimage_worker_image\" \"this\" {\nschematic_id = \"gpu\"\nversion = %q\n%s\n}\n", version, lines(arguments))
}

func plans(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: checks}
}

func TestAnImageIsMadeLabelledReplacedAndDeleted(t *testing.T) {
	server := imagestest.NewServer(t)
	const next = "talos-worker-gpu-v1.13.7"
	run(t, server,
		resource.TestStep{
			Config: image("v1.13.6", `labels = { team = "a", tier = "1" }`),
			ConfigPlanChecks: plans(
				plancheck.ExpectResourceAction(made, plancheck.ResourceActionCreate),
				plancheck.ExpectKnownValue(made, tfjsonpath.New("name"), knownvalue.StringExact(madeName)),
				plancheck.ExpectUnknownValue(made, tfjsonpath.New("uid")),
				plancheck.ExpectUnknownValue(made, tfjsonpath.New("status"))),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr(made, "status.phase", "Pending"),
				resource.TestCheckResourceAttr(made, "retain_on_delete", "false")),
		},
		resource.TestStep{
			PreConfig: func() { label(server, "argocd", "x") },
			Config:    image("v1.13.6", `labels = { team = "b" }, annotations = { note = "n" }`),
			ConfigPlanChecks: plans(
				plancheck.ExpectResourceAction(made, plancheck.ResourceActionUpdate),
				plancheck.ExpectKnownValue(made, tfjsonpath.New("name"), knownvalue.StringExact(madeName)),
				plancheck.ExpectKnownValue(made, tfjsonpath.New("uid"), knownvalue.NotNull())),
			Check: resource.ComposeAggregateTestCheckFunc(
				resource.TestCheckResourceAttr(made, "labels.%", "1"),
				func(*terraform.State) error {
					return equal(map[string]string{"team": "b", "argocd": "x"}, server.Image(madeName).Labels)
				},
				func(*terraform.State) error {
					return equal(map[string]string{"note": "n"}, server.Image(madeName).Annotations)
				}),
		},
		resource.TestStep{
			PreConfig:        func() { label(server, "team", "somebody else") },
			Config:           image("v1.13.6", `labels = { team = "b" }`),
			ConfigPlanChecks: plans(plancheck.ExpectResourceAction(made, plancheck.ResourceActionUpdate)),
			Check: func(*terraform.State) error {
				return equal(map[string]string{"team": "b", "argocd": "x"}, server.Image(madeName).Labels)
			},
		},
		resource.TestStep{
			Config: image("v1.13.7", ""),
			ConfigPlanChecks: plans(
				plancheck.ExpectResourceAction(made, plancheck.ResourceActionDestroyBeforeCreate),
				plancheck.ExpectKnownValue(made, tfjsonpath.New("name"), knownvalue.StringExact(next)),
				plancheck.ExpectUnknownValue(made, tfjsonpath.New("uid"))),
			Check: func(*terraform.State) error { return gone(server, madeName) },
		})
	if err := gone(server, next); err != nil {
		t.Error(err)
	}
}

func TestAStatusThatMovesChangesNoPlan(t *testing.T) {
	server := imagestest.NewServer(t)
	run(t, server,
		resource.TestStep{Config: image("v1.13.6", "")},
		resource.TestStep{
			PreConfig:        func() { move(server, imagestest.Importing(40)) },
			Config:           image("v1.13.6", ""),
			ConfigPlanChecks: plans(plancheck.ExpectEmptyPlan()),
			Check:            resource.TestCheckResourceAttr(made, "status.progress", "40"),
		},
		resource.TestStep{
			PreConfig:    func() { move(server, imagestest.Importing(90)) },
			RefreshState: true,
			Check:        resource.TestCheckResourceAttr(made, "status.progress", "90"),
		})
}

func TestAnImageThatIsGoneIsMadeAgain(t *testing.T) {
	for name, vanish := range map[string]func(*imagestest.Server){
		"deleted": func(server *imagestest.Server) { server.Remove(madeName) },
		"being deleted": func(server *imagestest.Server) {
			move(server, imagestest.In(v1alpha1.WorkerImageTerminating, "Terminating", ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := imagestest.NewServer(t)
			run(t, server,
				resource.TestStep{Config: image("v1.13.6", "")},
				resource.TestStep{
					PreConfig:          func() { vanish(server) },
					Config:             image("v1.13.6", ""),
					PlanOnly:           true,
					ExpectNonEmptyPlan: true,
					ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{
						plancheck.ExpectResourceAction(made, plancheck.ResourceActionCreate)}},
				},
				resource.TestStep{
					PreConfig: func() {
						if server.Image(madeName) != nil {
							server.Remove(madeName)
						}
					},
					Config: image("v1.13.6", ""),
				})
		})
	}
}

func TestAnImageIsImported(t *testing.T) {
	server := imagestest.NewServer(t, imagestest.Image("gpu", "v1.13.6"))
	label(server, "argocd", "x")
	run(t, server,
		resource.TestStep{
			Config: image("v1.13.6", ""), ResourceName: made, ImportState: true, ImportStateId: madeName, ImportStatePersist: true,
		},
		resource.TestStep{
			Config:           image("v1.13.6", ""),
			ConfigPlanChecks: plans(plancheck.ExpectEmptyPlan()),
			Check:            resource.TestCheckResourceAttr(made, "status.phase", "Ready"),
		})
}

func TestAnImportOfNothingIsAnError(t *testing.T) {
	run(t, imagestest.NewServer(t), resource.TestStep{
		Config: image("v1.13.6", ""), ResourceName: made, ImportState: true, ImportStateId: madeName,
		ExpectError: says("Cannot import non-existent remote object"),
	})
}

func TestAnImageInUseIsKeptAndSaysWhoUsesIt(t *testing.T) {
	server := imagestest.NewServer(t)
	inUse := func(image *v1alpha1.WorkerImage) {
		image.Status.Conditions = append(image.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDeletable, Status: metav1.ConditionFalse,
			Message: "At least one pool asks for the image. Used by tenant-a/k1-md0. Move the pools to another image first."})
	}
	run(t, server,
		resource.TestStep{Config: image("v1.13.6", "")},
		resource.TestStep{
			PreConfig:   func() { move(server, inUse) },
			Config:      image("v1.13.6", ""),
			Destroy:     true,
			ExpectError: says("Used by tenant-a/k1-md0. Move the pools to another image first."),
		},
		resource.TestStep{
			Config:      image("v1.13.6", ""),
			Destroy:     true,
			ExpectError: says("set retain_on_delete = true, apply, and destroy again"),
		},
		resource.TestStep{Config: image("v1.13.6", "retain_on_delete = true")},
		resource.TestStep{Config: image("v1.13.6", "retain_on_delete = true"), Destroy: true})
	if server.Image(madeName) == nil {
		t.Error("the image is gone")
	}
}

func TestARefusalToMakeAnImageHelps(t *testing.T) {
	for name, test := range map[string]struct {
		server *imagestest.Server
		config string
		says   string
	}{
		"it exists":        {imagestest.NewServer(t, imagestest.Image("gpu", "v1.13.6")), image("v1.13.6", ""), "Import it to manage it here: tofu import ADDRESS talos-worker-gpu-v1.13.6"},
		"half a version":   {imagestest.NewServer(t), image("v1.13", ""), "must be a full Talos release, such as v1.13.6"},
		"a timeout of ten": {imagestest.NewServer(t), image("v1.13.6", `timeouts = { create = "ten" }`), "Invalid Attribute Value Time Duration"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, test.server, resource.TestStep{Config: test.config, ExpectError: says(test.says)})
		})
	}
}

// move changes an image that the server has, as the cluster does.
func move(server *imagestest.Server, option imagestest.Option) {
	image := server.Image(madeName)
	option(image)
	server.Put(image)
}

func label(server *imagestest.Server, key, value string) {
	image := server.Image(madeName)
	if image.Labels == nil {
		image.Labels = map[string]string{}
	}
	image.Labels[key] = value
	server.Put(image)
}

func gone(server *imagestest.Server, name string) error {
	if server.Image(name) != nil {
		return fmt.Errorf("%s is still there", name)
	}
	return nil
}
