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

package terraform

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

const address = "workerimage_worker_image.this"

// resource is a configuration with one image, and an output with its name.
func resource(schematic, arguments string) string {
	return fmt.Sprintf(`
resource "workerimage_worker_image" "this" {
  schematic_id = %q
  version      = %q
  %s
}

output "name" {
  value = workerimage_worker_image.this.name
}
`, schematic, objects.Release, arguments)
}

// TestTheLifeOfAnImage goes through it in order.
func TestTheLifeOfAnImage(t *testing.T) {
	p := newPlatform(t)
	const schematic = "tofu-life"
	name := objects.NameOf(schematic)
	w := newWorkspace(t, p, resource(schematic, `labels = { team = "a" }`))

	w.planSays(t, fmt.Sprintf(`name               = %q`, name))
	w.apply(t)
	if got := w.output(t, "name"); got != name {
		t.Errorf("the output is %v", got)
	}
	w.planIsEmpty(t)
	first := p.awaitReady(t, name)
	if diff := cmp.Diff(map[string]string{"team": "a"}, first.Labels); diff != "" {
		t.Errorf("labels, -want +got:\n%s", diff)
	}

	t.Run("a status that moved changes no plan, and a refresh takes it over", func(t *testing.T) {
		w.planIsEmpty(t)
		w.run(t, "refresh")
		if phase, _ := w.status(t, address); phase != "Ready" {
			t.Errorf("the state says %s", phase)
		}
		w.planIsEmpty(t)
	})
	t.Run("a label that changes is changed in place", func(t *testing.T) {
		w.write(t, resource(schematic, `labels = { team = "b" }`))
		w.planSays(t, "0 to add, 1 to change, 0 to destroy")
		w.apply(t)
		w.planIsEmpty(t)
		image := p.awaitReady(t, name)
		if image.Labels["team"] != "b" || image.UID != first.UID {
			t.Errorf("labels are %v, the uid is %s, was %s", image.Labels, image.UID, first.UID)
		}
	})
	t.Run("what was deleted outside is made again", func(t *testing.T) {
		p.kubectl(t, "", "delete", "workerimage", name)
		w.planSays(t, "1 to add, 0 to change, 0 to destroy")
		w.apply(t)
		w.planIsEmpty(t)
		if again := p.awaitReady(t, name); again.UID == first.UID {
			t.Error("it is the same image")
		}
	})
	t.Run("what is made twice says how to import it", func(t *testing.T) {
		other := newWorkspace(t, p, resource(schematic, ""))
		other.refused(t, "tofu import ADDRESS "+name, "apply", "-auto-approve")
	})
	t.Run("what is imported has an empty plan", func(t *testing.T) {
		other := newWorkspace(t, p, resource(schematic, ""))
		other.run(t, "import", address, name)
		other.planIsEmpty(t)
	})
	t.Run("what is in use is not destroyed, and can be left", func(t *testing.T) {
		p.createPool(t, "tofu-life", schematic)
		p.await(t, name, "in use", inUse)
		w.refused(t, "Used by tenant-a/tofu-life", "destroy", "-auto-approve")
		w.write(t, resource(schematic, `retain_on_delete = true`))
		w.apply(t)
		w.run(t, "destroy", "-auto-approve")
		p.awaitReady(t, name)
	})
	t.Run("what nobody uses is destroyed, and gone by then", func(t *testing.T) {
		p.deletePool(t, "tofu-life")
		w.write(t, resource(schematic, ""))
		w.run(t, "import", address, name)
		w.run(t, "destroy", "-auto-approve")
		p.await(t, name, "gone", gone)
	})
}

func TestAnImageThatIsReplacedIsMadeOnceTheOldOneIsGone(t *testing.T) {
	p := newPlatform(t)
	w := newWorkspace(t, p, resource("tofu-again", ""))
	w.apply(t)
	before := p.awaitReady(t, objects.NameOf("tofu-again"))
	w.run(t, "apply", "-auto-approve", "-replace="+address)
	if after := p.awaitReady(t, objects.NameOf("tofu-again")); after.UID == before.UID {
		t.Error("it is the same image")
	}
	w.run(t, "destroy", "-auto-approve")
}

func TestAnImageThatNobodyDeclaresIsRefusedWithTheNearest(t *testing.T) {
	w := newWorkspace(t, newPlatform(t), resource("tofu-lief", ""))
	w.refused(t, "tofu-life", "apply", "-auto-approve")
}

// TestAnImportChangesNoPlan plans twice while an import runs, on a resource and a data source that both show it.
func TestAnImportChangesNoPlan(t *testing.T) {
	p := newPlatform(t)
	const schematic = "slow-tofu"
	name := objects.NameOf(schematic)
	w := newWorkspace(t, p, resource(schematic, "")+`
data "workerimage_worker_image" "this" {
  name       = workerimage_worker_image.this.name
  depends_on = [workerimage_worker_image.this]
}

output "version" {
  value = data.workerimage_worker_image.this.version
}
`)
	w.apply(t)
	begun := p.await(t, name, "on its way", advancedFrom(0))
	w.planIsEmpty(t)
	further := p.await(t, name, "further on its way", advancedFrom(*begun.Status.Progress))
	w.planIsEmpty(t)
	if still := p.await(t, name, "there", func(image *v1alpha1.WorkerImage) bool { return image != nil }); still.Status.Phase != v1alpha1.WorkerImageImporting {
		t.Fatalf("the import is over: %s", still.Status.Phase)
	}
	w.run(t, "refresh")
	if phase, progress := w.status(t, address); phase != "Importing" || progress.(float64) < float64(*further.Status.Progress) {
		t.Errorf("the state says %s, %v", phase, progress)
	}
	w.planIsEmpty(t)
	w.run(t, "destroy", "-auto-approve")
}
