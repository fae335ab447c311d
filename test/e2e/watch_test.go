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
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

func TestAStreamingListEndsItsBeginning(t *testing.T) {
	p := quietPlatform(t)
	for _, situation := range []struct {
		name     string
		goldens  []string
		selector string
		want     int
	}{
		{"without a golden", nil, "", 0},
		{"with three", []string{"begin-a", "begin-b", "begin-c"}, "", 3},
		{"with a selector that matches none", []string{"begin-a", "begin-b", "begin-c"}, "&fieldSelector=metadata.name=x", 0},
	} {
		t.Run(situation.name, func(t *testing.T) {
			for _, schematic := range situation.goldens {
				p.createGolden(t, objects.NewGolden(schematic))
				p.awaitImage(t, objects.NameOf(schematic), "there", exists)
			}
			var list v1alpha1.WorkerImageList
			p.wire.Get(t, workerImages, wire.JSON).Decode(t, &list)
			began := time.Now()
			events := p.watch(t, streamed+situation.selector, wire.JSON)
			for range situation.want {
				equal(t, events.Next(t).Type, watch.Added)
			}
			f := events.Next(t)
			if took := time.Since(began); took > tooLong {
				t.Errorf("the beginning took %v", took)
			}
			equal(t, f.Type, watch.Bookmark)
			end := f.Metadata(t)
			equal(t, end.Annotations, map[string]string{initialEventsEnd: "true"})
			equal(t, end.ResourceVersion, list.ResourceVersion)
		})
	}
	t.Run("is refused when it does not say how old it may be", func(t *testing.T) {
		a := p.wire.Get(t, workerImages+"?watch=1&sendInitialEvents=true&allowWatchBookmarks=true", wire.JSON)
		equal(t, a.Status, http.StatusUnprocessableEntity)
	})
}

// Every step changes an input and shows in one field. An event too many, of this step or of the one before, is the next
// step's first.
func TestEachVisibleChangeIsOneEvent(t *testing.T) {
	p := quietPlatform(t)
	const schematic = "stepwise"
	name := objects.NameOf(schematic)
	golden := p.createGolden(t, objects.NewGolden(schematic))
	p.Create(t, objects.Claims, objects.NewClaim(schematic, golden.GetUID()))
	p.Create(t, objects.Pools, objects.NewPool("tenant-a", "stepwise", "md0", "", schematic))
	p.Create(t, objects.StorageClasses, objects.NewClass("stepwise-unmarked"))
	unrelated := objects.NewClaim("x", "")
	unrelated.SetName("unrelated")
	p.Create(t, objects.Claims, unrelated)
	before := p.awaitImage(t, name, "joined", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.Claim != nil && image.Status.PoolCount == 1
	})
	events := p.watch(t, "&resourceVersion="+before.ResourceVersion, wire.JSON)

	for _, step := range []struct {
		name   string
		do     func()
		shows  func(*v1alpha1.WorkerImage) any
		expect any
	}{
		{"the claim is bound", func() {
			p.Patch(t, objects.Claims, objects.Goldens, name, `{"status":{"phase":"Bound"}}`, "status")
		}, func(image *v1alpha1.WorkerImage) any { return string(image.Status.Claim.Phase) }, "Bound"},
		{"a class becomes the default", func() {
			p.Patch(t, objects.StorageClasses, "", "stepwise-unmarked", `{"metadata":{"annotations":{"`+objects.DefaultClass+`":"true"}}}`)
		}, func(image *v1alpha1.WorkerImage) any {
			return poolOf(image, "tenant-a", "stepwise-md0").StorageClass.Name
		}, "stepwise-unmarked"},
		{"a pool is made", func() {
			p.Create(t, objects.Pools, objects.NewPool("tenant-b", "stepwise", "md1", "replicated", schematic))
		}, func(image *v1alpha1.WorkerImage) any { return image.Status.PoolCount }, int32(2)},
		{"a worker disk is made", func() {
			p.Create(t, objects.DataVolumes, objects.NewDisk("tenant-b", "stepwise", "md1", "x", schematic))
		}, func(image *v1alpha1.WorkerImage) any { return poolOf(image, "tenant-b", "stepwise-md1").Disks.Cloning }, int32(1)},
		{"it is cloned", func() {
			p.Patch(t, objects.DataVolumes, "tenant-b", "disk-system-kubernetes-stepwise-md1-x", `{"status":{"phase":"Succeeded"}}`, "status")
		}, func(image *v1alpha1.WorkerImage) any { return poolOf(image, "tenant-b", "stepwise-md1").Disks.Cloned }, int32(1)},
		{"it is deleted", func() {
			p.Remove(t, objects.DataVolumes, "tenant-b", "disk-system-kubernetes-stepwise-md1-x")
		}, func(image *v1alpha1.WorkerImage) any { return poolOf(image, "tenant-b", "stepwise-md1").Disks.Cloned }, int32(0)},
		{"the pool is deleted", func() {
			p.Remove(t, objects.Pools, "tenant-b", "stepwise-md1")
		}, func(image *v1alpha1.WorkerImage) any { return image.Status.PoolCount }, int32(1)},
		{"the import begins after changes that concern no image", func() {
			p.Patch(t, objects.Claims, objects.Goldens, "unrelated", `{"metadata":{"labels":{"a":"b"}}}`)
			p.Patch(t, objects.Claims, objects.Goldens, name, `{"metadata":{"labels":{"a":"b"}}}`)
			p.Patch(t, objects.DataVolumes, objects.Goldens, name, `{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"}}}`)
			p.Patch(t, objects.DataVolumes, objects.Goldens, name, `{"status":{"phase":"ImportInProgress"}}`, "status")
		}, func(image *v1alpha1.WorkerImage) any { return image.Status.Phase }, v1alpha1.WorkerImageImporting},
	} {
		t.Run(step.name, func(t *testing.T) {
			if was := step.shows(before); was == step.expect {
				t.Fatalf("it shows already: %v", was)
			}
			step.do()
			f := events.Next(t)
			equal(t, f.Type, watch.Modified)
			after := f.Image(t)
			if got := step.shows(after); got != step.expect {
				t.Errorf("got %v, want %v: %s", got, step.expect, cmp.Diff(before.Status, after.Status))
			}
			if version(t, after.ResourceVersion) <= version(t, before.ResourceVersion) {
				t.Errorf("version %s comes after %s", after.ResourceVersion, before.ResourceVersion)
			}
			before = after
		})
	}
}

func TestTheVersionOfAListNeverFalls(t *testing.T) {
	p := quietPlatform(t)
	var versions []uint64
	list := func() {
		var list v1alpha1.WorkerImageList
		p.wire.Get(t, workerImages, wire.JSON).Decode(t, &list)
		versions = append(versions, version(t, list.ResourceVersion))
	}
	list()
	for _, schematic := range []string{"oldest", "newest"} {
		p.createGolden(t, objects.NewGolden(schematic))
		p.awaitImage(t, objects.NameOf(schematic), "there", exists)
		list()
	}
	for _, schematic := range []string{"newest", "oldest"} {
		p.Remove(t, objects.DataVolumes, objects.Goldens, objects.NameOf(schematic))
		p.awaitGone(t, objects.NameOf(schematic))
		list()
	}
	if versions[0] == 0 || !slices.IsSorted(versions) || len(slices.Compact(slices.Clone(versions))) != len(versions) {
		t.Errorf("empty, one, two, one and none: %v", versions)
	}
}

func TestAWatchSelects(t *testing.T) {
	p := quietPlatform(t)
	for _, schematic := range []string{"select-a", "select-b", "select-c"} {
		p.createGolden(t, objects.NewGolden(schematic))
		p.awaitImage(t, objects.NameOf(schematic), "there", exists)
	}
	setPhase := func(schematic, phase string) {
		p.Patch(t, objects.DataVolumes, objects.Goldens, objects.NameOf(schematic), fmt.Sprintf(`{"status":{"phase":%q}}`, phase), "status")
	}
	byName := p.watch(t, "&fieldSelector=metadata.name="+objects.NameOf("select-b"), wire.JSON)
	byPhase := p.watch(t, "&fieldSelector=status.phase=Importing", wire.JSON)
	equal(t, byName.Next(t).Image(t).Name, objects.NameOf("select-b"))

	setPhase("select-a", "ImportInProgress")
	p.awaitImage(t, objects.NameOf("select-a"), "Importing", func(image *v1alpha1.WorkerImage) bool { return image.Status.Phase == v1alpha1.WorkerImageImporting })
	setPhase("select-b", "Failed")
	f := byName.Next(t)
	equal(t, f.Type, watch.Modified)
	equal(t, f.Image(t).Name, objects.NameOf("select-b"))

	entering := byPhase.Next(t)
	equal(t, entering.Type, watch.Added)
	equal(t, entering.Image(t).Name, objects.NameOf("select-a"))
	setPhase("select-a", "Failed")
	leaving := byPhase.Next(t)
	equal(t, leaving.Type, watch.Deleted)
	equal(t, leaving.Image(t).Name, objects.NameOf("select-a"))
	equal(t, leaving.Image(t).Status.Phase, v1alpha1.WorkerImageImporting)
	if version(t, leaving.Image(t).ResourceVersion) <= version(t, entering.Image(t).ResourceVersion) {
		t.Errorf("%s leaves with version %s after it entered with %s", leaving.Image(t).Name, leaving.Image(t).ResourceVersion, entering.Image(t).ResourceVersion)
	}
}

func TestProgressWithinOnePercentIsOneEvent(t *testing.T) {
	p := quietPlatform(t)
	const schematic = "creeping"
	p.createGolden(t, objects.NewGolden(schematic))
	p.Patch(t, objects.DataVolumes, objects.Goldens, objects.NameOf(schematic), `{"status":{"phase":"ImportInProgress"}}`, "status")
	before := p.awaitImage(t, objects.NameOf(schematic), "Importing", func(image *v1alpha1.WorkerImage) bool {
		return image.Status.Phase == v1alpha1.WorkerImageImporting
	})
	events := p.watch(t, "&resourceVersion="+before.ResourceVersion, wire.JSON)
	for i := range 100 {
		p.Patch(t, objects.DataVolumes, objects.Goldens, objects.NameOf(schematic), fmt.Sprintf(`{"status":{"progress":"45.%02d%%"}}`, i), "status")
	}
	equal(t, *events.Next(t).Image(t).Status.Progress, int32(45))
	p.Patch(t, objects.DataVolumes, objects.Goldens, objects.NameOf(schematic), `{"status":{"progress":"46.00%"}}`, "status")
	equal(t, *events.Next(t).Image(t).Status.Progress, int32(46))
}

func TestAWatchOfNothingLivesAsLongAsItAskedTo(t *testing.T) {
	t.Parallel()
	p := quietPlatform(t)
	const asked = 20 * time.Second
	began := time.Now()
	events := p.watch(t, fmt.Sprintf("&fieldSelector=metadata.name=nothing&timeoutSeconds=%d", int(asked.Seconds())), wire.JSON)
	f, err := events.Within(await.Patience)
	if !errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v %v", f, err)
	}
	if lived := time.Since(began); lived < asked {
		t.Errorf("it ends after %v", lived)
	}
}

func TestManyWatchesCostTheClusterNothing(t *testing.T) {
	p := quietPlatform(t)
	const count, schematic = 200, "watched"
	name := objects.NameOf(schematic)
	p.createGolden(t, objects.NewGolden(schematic))
	before := p.awaitImage(t, name, "there", exists)
	asked := len(p.audit(t).by(serverUser))
	var all []*wire.Watch
	for range count {
		all = append(all, p.watch(t, "&resourceVersion="+before.ResourceVersion, wire.JSON))
	}
	p.Patch(t, objects.DataVolumes, objects.Goldens, name, `{"status":{"phase":"ImportInProgress"}}`, "status")
	for _, events := range all {
		equal(t, events.Next(t).Image(t).Status.Phase, v1alpha1.WorkerImageImporting)
	}
	if a := p.wire.Get(t, group, wire.JSON); a.Status != http.StatusOK {
		t.Errorf("discovery answers %d with %d watches open", a.Status, count)
	}
	// Admission reads the schemas of the cluster every few seconds, whatever is asked.
	more := slices.DeleteFunc(p.audit(t).by(serverUser)[asked:], func(e auditEvent) bool { return strings.HasPrefix(e.URI, "/openapi/") })
	if len(more) > 0 {
		t.Errorf("the server asked the cluster %d times, for one: %+v", len(more), more[0])
	}
}
