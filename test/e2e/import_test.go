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
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/wire"
)

func TestAnImportIsFollowedLive(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	name := objects.NameOf(steady)
	printed := p.kubectl.follow(t, "get", "workerimages", "--watch")
	printed.until(t, "the header", func(line string) bool { return strings.HasPrefix(line, "NAME") })
	events := p.watch(t, "&fieldSelector=metadata.name="+name, wire.JSON)

	golden := objects.NewGolden(steady)
	manifest, err := json.Marshal(golden)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Remove(t, objects.DataVolumes, objects.Goldens, name) })
	p.kubectl.apply(t, string(manifest))
	p.awaitImage(t, name, "there", exists)
	var waits sync.WaitGroup
	for _, what := range []string{"condition=Ready", "jsonpath={.status.phase}=Ready"} {
		waits.Go(func() {
			if _, stderr, err := p.kubectl.try(t.Context(), "", "wait", "--for="+what, "--timeout="+await.Patience.String(), "workerimage/"+name); err != nil {
				t.Errorf("kubectl wait --for=%s: %v\n%s", what, err, stderr)
			}
		})
	}
	checkPrintedImport(t, name, printed.until(t, name+" to be Ready", func(line string) bool { return isRow(line, name, "Ready") }))
	checkImportEvents(t, p, untilReady(t, events))
	waits.Wait()
}

func isRow(line, name, phase string) bool {
	cells := strings.Fields(line)
	return len(cells) > 2 && cells[0] == name && cells[2] == phase
}

// checkPrintedImport holds the rows of one image against what an import looks like.
func checkPrintedImport(t *testing.T, name string, lines []string) {
	t.Helper()
	var phases []string
	var progress []int
	for _, line := range lines {
		cells := strings.Fields(line)
		if len(cells) < 4 || cells[0] != name {
			continue
		}
		phases = append(phases, cells[2])
		if percent, found := strings.CutSuffix(cells[3], "%"); found && cells[2] == "Importing" {
			value, err := strconv.Atoi(percent)
			if err != nil {
				t.Errorf("the progress is no whole percentage: %s", line)
			}
			progress = append(progress, value)
		}
	}
	if diff := cmp.Diff([]string{"Pending", "Importing", "Ready"}, slices.Compact(phases)); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if steps := slices.Compact(slices.Clone(progress)); len(steps) < 3 || !slices.IsSorted(steps) {
		t.Errorf("the progress does not rise in steps: %v", progress)
	}
}

// untilReady returns the events up to the one that says Ready.
func untilReady(t *testing.T, events *wire.Watch) []wire.Event {
	t.Helper()
	var frames []wire.Event
	for {
		f := events.Next(t)
		frames = append(frames, f)
		if f.Image(t).Status.Phase == v1alpha1.WorkerImageReady {
			return frames
		}
	}
}

// checkImportEvents holds every event of an import against what is promised of each.
func checkImportEvents(t *testing.T, p *platform, frames []wire.Event) {
	t.Helper()
	first := frames[0].Image(t)
	golden, err := p.Resource(objects.DataVolumes, objects.Goldens).Get(t.Context(), first.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkIdentity(t, first, golden)
	for i, f := range frames {
		if want := eventType(i); f.Type != want {
			t.Errorf("event %d is %s, want %s", i, f.Type, want)
		}
		checkShape(t, f)
		if i == 0 {
			continue
		}
		checkStep(t, frames[i-1], f)
	}
}

func eventType(i int) watch.EventType {
	if i == 0 {
		return watch.Added
	}
	return watch.Modified
}

// checkIdentity makes sure that an image is nobody but itself.
func checkIdentity(t *testing.T, image *v1alpha1.WorkerImage, golden *unstructured.Unstructured) {
	t.Helper()
	if image.UID == "" || image.UID == golden.GetUID() {
		t.Errorf("the uid is %q, that of the golden %q", image.UID, golden.GetUID())
	}
	if created := golden.GetCreationTimestamp(); !image.CreationTimestamp.Equal(&created) {
		t.Errorf("created %v, the golden %v", image.CreationTimestamp, created)
	}
}

// checkShape looks at one event by itself: nothing of the golden's metadata shows, and what clients wait for is there.
func checkShape(t *testing.T, f wire.Event) {
	t.Helper()
	var object struct {
		Metadata map[string]any `json:"metadata"`
	}
	f.Decode(t, &object)
	want := []string{"creationTimestamp", "generation", "name", "resourceVersion", "uid"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(object.Metadata))); diff != "" {
		t.Errorf("fields of the metadata (-want +got):\n%s", diff)
	}
	if strings.Contains(string(f.Raw), "cdi.kubevirt.io") {
		t.Errorf("there is something of CDI's own in %s", f.Raw)
	}
	image := f.Image(t)
	if image.Generation != 1 || image.Status.ObservedGeneration != 1 {
		t.Errorf("generation %d, observed %d, want 1", image.Generation, image.Status.ObservedGeneration)
	}
	ready := condition(image, v1alpha1.ConditionReady)
	if (ready.Status == metav1.ConditionTrue) != (image.Status.Phase == v1alpha1.WorkerImageReady) {
		t.Errorf("Ready is %q in phase %s", ready.Status, image.Status.Phase)
	}
}

// checkStep compares an event with the one before it.
func checkStep(t *testing.T, before, after wire.Event) {
	t.Helper()
	if a, b := specOf(t, before), specOf(t, after); a != b {
		t.Errorf("the spec changes from %s to %s", a, b)
	}
	a, b := before.Image(t), after.Image(t)
	if a.UID != b.UID {
		t.Errorf("the uid changes from %s to %s", a.UID, b.UID)
	}
	if version(t, a.ResourceVersion) >= version(t, b.ResourceVersion) {
		t.Errorf("version %s is followed by %s", a.ResourceVersion, b.ResourceVersion)
	}
	if cmp.Equal(a.Status, b.Status) {
		t.Errorf("nothing changes with version %s: %s", b.ResourceVersion, after.Raw)
	}
	for _, is := range b.Status.Conditions {
		was := meta.FindStatusCondition(a.Status.Conditions, is.Type)
		if was == nil {
			t.Errorf("condition %s was not there from the beginning", is.Type)
			continue
		}
		if moved := !was.LastTransitionTime.Equal(&is.LastTransitionTime); moved && was.Status == is.Status {
			t.Errorf("the transition time of %s moves and its status does not", is.Type)
		}
	}
}

func specOf(t *testing.T, f wire.Event) string {
	t.Helper()
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	f.Decode(t, &object)
	return string(object.Spec)
}

func version(t *testing.T, resourceVersion string) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(resourceVersion, 10, 63)
	if err != nil {
		t.Fatalf("resourceVersion %q: %v", resourceVersion, err)
	}
	return number
}

// A clone carries a token that lets its bearer read the source for years.
func TestNoTokenOfCDIIsServed(t *testing.T) {
	p := realPlatform(t)
	p.awaitImage(t, defaultSample, "cloned", func(image *v1alpha1.WorkerImage) bool {
		return poolOf(image, "tenant-a", "prod-md0").Disks.Cloned == 2
	})
	tokens := p.tokens(t)
	if len(tokens) == 0 {
		t.Fatal("CDI has written no token, so none could show")
	}
	answers := []wire.Answer{
		p.wire.Get(t, workerImages, wire.JSON),
		p.wire.Get(t, workerImages, wire.YAML),
		p.wire.Get(t, workerImages, wire.MetadataList),
		p.wire.Get(t, workerImages+"?includeObject=Object", wire.Table),
		p.wire.Get(t, workerImages+"/"+defaultSample, wire.JSON),
	}
	for _, a := range answers {
		if len(a.Body) == 0 {
			t.Errorf("an empty answer: %d", a.Status)
		}
		for _, token := range tokens {
			if strings.Contains(string(a.Body), token) {
				t.Errorf("a token is in %s", a.Body)
			}
		}
	}
}

// tokens are the values of all annotations of DataVolumes and claims that are named after a token.
func (p *platform) tokens(t *testing.T) []string {
	t.Helper()
	var tokens []string
	for _, resource := range []schema.GroupVersionResource{objects.DataVolumes, objects.Claims} {
		list, err := p.Resource(resource, "").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range list.Items {
			for key, value := range object.GetAnnotations() {
				if strings.Contains(key, "token") && value != "" {
					tokens = append(tokens, value)
				}
			}
		}
	}
	return tokens
}

func TestAGoldenThatIsMadeAgainIsAnotherImage(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	const schematic = "recreated"
	name := objects.NameOf(schematic)
	before := p.createGolden(t, objects.NewGolden(schematic))
	image := p.awaitReady(t, name)
	events := p.watch(t, "&fieldSelector=metadata.name="+name+"&resourceVersion="+image.ResourceVersion, wire.JSON)

	p.Remove(t, objects.DataVolumes, objects.Goldens, name)
	after, err := p.Resource(objects.DataVolumes, objects.Goldens).Create(t.Context(), objects.NewGolden(schematic), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var deleted *v1alpha1.WorkerImage
	for {
		f := events.Next(t)
		got := f.Image(t)
		switch f.Type {
		case watch.Modified:
			if deleted == nil && got.UID != image.UID {
				t.Fatalf("a new uid without an end and a beginning: %s", f.Raw)
			}
		case watch.Deleted:
			deleted = got
			checkUID(t, "the deleted image", got, image.UID)
		case watch.Added:
			if deleted == nil {
				t.Fatalf("added without having been deleted: %s", f.Raw)
			}
			if got.UID == image.UID || got.UID == before.GetUID() || got.UID == after.GetUID() {
				t.Errorf("the uid of the new image is %s; the old image had %s, the goldens %s and %s", got.UID, image.UID, before.GetUID(), after.GetUID())
			}
			return
		default:
			t.Fatalf("%s %s", f.Type, f.Raw)
		}
	}
}

func checkUID(t *testing.T, what string, image *v1alpha1.WorkerImage, want types.UID) {
	t.Helper()
	if image.UID != want {
		t.Errorf("%s has uid %s, want %s", what, image.UID, want)
	}
}
