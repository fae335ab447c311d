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
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

// logged is what the log says of a step. The stack is the test's own, and nobody else moves anything.
type logged struct {
	step string
	do   func(*testing.T)
	// want are the lines, each once and in any order, by what follows their source.
	want []string
	// amid is true where the libraries that the server is made from say things of their own.
	amid bool
}

// Guards: what the server logs at the verbosity that it is shipped with.
func TestTheLogSaysWhatMattersAndNothingElse(t *testing.T) {
	p := newPlatform(t, startStack(t, stack.Options{KindsOnly: true}))
	steps := slices.Concat(startOfTheServer(), p.writesOfImages(), p.changesOfTheCatalog(), p.troubleWithASource(), p.restAndEnd())
	begins := make([]int, len(steps)+1)
	for i, step := range steps {
		if i > 0 {
			begins[i] = len(p.serverLog(t))
		}
		step.do(t)
		await.For(t, "the log to say that "+step.step, func(context.Context) error {
			return missing(step.want, saidIn(p.serverLog(t)[begins[i]:]))
		})
	}
	whole := p.serverLog(t)
	begins[len(steps)] = len(whole)
	for i, step := range steps {
		step.check(t, saidIn(whole[begins[i]:begins[i+1]]))
	}
}

func startOfTheServer() []logged {
	return []logged{
		{"the server starts", func(*testing.T) {}, []string{
			`"Starting" version="`,
			`"The source can be read" source="catalog" objects=0`,
			`"The source can be read" source="cdis" objects=0`,
			`"The source can be read" source="datavolumes" objects=0`,
			`"The source can be read" source="kubernetesnodes" objects=0`,
			`"The source can be read" source="persistentvolumeclaims" objects=0`,
			`"The source can be read" source="storageclasses" objects=0`,
			`"The source can be read" source="storageprofiles" objects=0`,
			`"Read the catalog" configMap="cozy-public/worker-image-catalog" isThere=false entries=0 rejected=0`,
			`"All that is there has been published" images=0 entries=0`,
			`"Changed the serving certificate" secret="cozy-system/workerimage-apiserver-serving"`,
			`"Using a serving certificate" secret="cozy-system/workerimage-apiserver-serving"`,
			`"Told clients whom to trust" apiService="v1alpha1.images.cozystack.io"`,
		}, true},
	}
}

func (p *platform) writesOfImages() []logged {
	const noted = "noted"
	pool := objects.NewPool("tenant-a", "noted", "md0", "replicated", noted)
	return []logged{
		{"a catalog appears", func(t *testing.T) {
			p.Create(t, objects.StorageClasses, objects.NewClass("replicated"))
			p.Create(t, objects.ConfigMaps, newCatalog("storageClass: replicated\nimages:\n- {schematicID: noted, version: "+objects.Release+"}\n"))
			p.awaitPhase(t, noted, v1alpha1.CatalogEntryAvailable)
		}, []string{`"Read the catalog" configMap="cozy-public/worker-image-catalog" isThere=true entries=1 rejected=0`}, false},
		{"an image is created", func(t *testing.T) { p.createImage(t, noted) }, []string{
			`"Created the DataVolume of an image" image="` + objects.NameOf(noted) + `" user="admin"`,
		}, false},
		{"an image is labelled", func(t *testing.T) { p.label(t, objects.NameOf(noted)) }, nil, false},
		{"a delete is refused", func(t *testing.T) {
			p.Create(t, objects.Pools, pool)
			p.awaitImage(t, objects.NameOf(noted), "in use", func(image *v1alpha1.WorkerImage) bool {
				return condition(image, v1alpha1.ConditionDeletable).Status == metav1.ConditionFalse
			})
			for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
				if err := p.images.Delete(t.Context(), objects.NameOf(noted), metav1.DeleteOptions{DryRun: dryRun}); !apierrors.IsConflict(err) {
					t.Errorf("the delete is answered %v", err)
				}
			}
		}, []string{`"Refused to delete an image" image="` + objects.NameOf(noted) + `" reason="InUse" user="admin"`}, false},
		{"an image is deleted", func(t *testing.T) {
			p.Remove(t, objects.Pools, pool.GetNamespace(), pool.GetName())
			p.awaitImage(t, objects.NameOf(noted), "deletable", func(image *v1alpha1.WorkerImage) bool {
				return condition(image, v1alpha1.ConditionDeletable).Status == metav1.ConditionTrue
			})
			p.retire(t, objects.NameOf(noted))
		}, []string{`"Deleted the golden of an image" image="` + objects.NameOf(noted) + `" user="admin"`}, false},
	}
}

func (p *platform) changesOfTheCatalog() []logged {
	return []logged{
		{"the catalog becomes none", func(t *testing.T) { p.writeCatalog(t, "images: none") }, []string{
			`"The catalog has a fault" configMap="cozy-public/worker-image-catalog" reason="CatalogInvalid" message="`,
		}, false},
		{"the catalog is one again", func(t *testing.T) { p.writeCatalog(t, "images: []") }, []string{
			`"Read the catalog" configMap="cozy-public/worker-image-catalog" isThere=true entries=0 rejected=0`,
		}, false},
	}
}

func (p *platform) troubleWithASource() []logged {
	var taken []*unstructured.Unstructured
	return []logged{
		{"a source fails, and cannot be read any more", func(t *testing.T) { taken = p.takeKinds(t, objects.Pools.Group) }, []string{
			`"Cannot read from the source, will try again" source="kubernetesnodes" err="`,
			`"The source cannot be read any more" err="`,
		}, false},
		{"it can be read again", func(t *testing.T) { p.giveKinds(t, taken) }, []string{`"The source can be read" source="kubernetesnodes" objects=0`}, false},
	}
}

func (p *platform) restAndEnd() []logged {
	return []logged{
		{"all is well", p.rest, nil, false},
		{"the server is told to end", func(t *testing.T) {
			if err := p.Processes().Stop(cluster.ServerName); err != nil {
				t.Fatal(err)
			}
		}, []string{`"Stopped"`}, true},
	}
}

// rest is what goes on where nothing is wrong: images are read, and the disks of workers come and go.
func (p *platform) rest(t *testing.T) {
	t.Helper()
	const requests, disks = 200, 25
	claim := p.createBoundClaim(t, "resting")
	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "resting", "md0", "replicated", "resting"))
	tenant := p.as(t, "tenant-a")
	for i := range requests / 4 {
		p.wire.Get(t, workerImages, wire.JSON)
		tenant.wire.Get(t, workerImages+"/"+claim, wire.JSON)
		tenant.wire.Get(t, fmt.Sprintf("%s/no-such-image-%d", workerImages, i), wire.JSON)
		tenant.watch(t, "", wire.JSON).Stop()
	}
	cloning := func(want int32) {
		t.Helper()
		p.awaitImage(t, claim, fmt.Sprintf("cloned to %d disks", want), func(image *v1alpha1.WorkerImage) bool {
			return poolOf(image, "tenant-a", "resting-md0").Disks.Cloning == want
		})
	}
	for i := range disks {
		disk := objects.NewDisk("tenant-a", "resting", "md0", fmt.Sprint(i), "resting")
		if _, err := p.Resource(objects.DataVolumes, "tenant-a").Create(t.Context(), disk, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cloning(disks)
	if err := p.Resource(objects.DataVolumes, "tenant-a").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	cloning(0)
}

func (p *platform) serverLog(t *testing.T) string {
	t.Helper()
	log, err := p.ServerLog()
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// header is what a line begins with.
var header = regexp.MustCompile(`^[IWEF]\d{4} [0-9:.]+ +\d+ ([a-z0-9_]+\.go):\d+\] `)

// saidIn returns what the lines of a log say. On a busy machine the libraries explain, in some lines each, what took a
// request so long; that is of no interest here.
func saidIn(log string) []string {
	var said []string
	explains := false
	for line := range strings.Lines(log) {
		if match := header.FindStringSubmatch(line); match != nil {
			explains = match[1] == "trace.go"
		}
		if !explains {
			said = append(said, strings.TrimSpace(header.ReplaceAllString(line, "")))
		}
	}
	return said
}

// missing returns an error that names each line that has not been said.
func missing(want, said []string) error {
	var errs []error
	for _, line := range want {
		if count(said, line) == 0 {
			errs = append(errs, fmt.Errorf("nothing says %s", line))
		}
	}
	return errors.Join(errs...)
}

func count(said []string, line string) int {
	n := 0
	for _, s := range said {
		if strings.HasPrefix(s, line) {
			n++
		}
	}
	return n
}

func (l logged) check(t *testing.T, said []string) {
	t.Helper()
	for _, line := range l.want {
		if n := count(said, line); n != 1 {
			t.Errorf("when %s, %d lines say %s", l.step, n, line)
		}
	}
	for _, s := range said {
		if !l.amid && !slices.ContainsFunc(l.want, func(line string) bool { return strings.HasPrefix(s, line) }) {
			t.Errorf("when %s, the log says %s", l.step, s)
		}
	}
}
