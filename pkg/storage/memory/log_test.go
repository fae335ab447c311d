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

package memory

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

func TestOnlyWhatClientsCanSeePublishes(t *testing.T) {
	at := time.Date(2026, time.June, 1, 12, 0, 0, 0, time.UTC)
	published := func() *volume {
		return &volume{
			ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: map[string]string{"a": "b"}},
			Size:       resource.MustParse("6Gi"),
			Limit:      new(resource.MustParse("8Gi")),
			Imported:   metav1.NewTime(at),
			Renewed:    metav1.NewMicroTime(at),
		}
	}
	for _, row := range []struct {
		name   string
		change func(*volume)
		want   bool
	}{
		{"nothing", func(*volume) {}, false},
		{"its version", func(v *volume) { v.ResourceVersion = "7" }, false},
		{"its kind", func(v *volume) { v.Kind = "Volume" }, false},
		{"an empty map for none", func(v *volume) { v.Annotations = map[string]string{} }, false},
		{"a quantity that was read", func(v *volume) { _ = v.Size.String() }, false},
		{"a quantity's spelling, which is not kept", func(v *volume) { v.Size = resource.MustParse("6144Mi") }, false},
		{"a time zone", func(v *volume) { v.Imported = metav1.NewTime(at.In(time.FixedZone("x", 3600))) }, false},
		{"less than a second", func(v *volume) { v.Imported = metav1.NewTime(at.Add(time.Millisecond)) }, false},
		{"less than a microsecond", func(v *volume) { v.Renewed = metav1.NewMicroTime(at.Add(time.Nanosecond)) }, false},
		{"a label", func(v *volume) { v.Labels["a"] = "c" }, true},
		{"the format of a quantity", func(v *volume) { v.Size = resource.MustParse("6442450944") }, true},
		{"a quantity behind a pointer", func(v *volume) { v.Limit = new(resource.MustParse("9Gi")) }, true},
		{"a second", func(v *volume) { v.Imported = metav1.NewTime(at.Add(time.Second)) }, true},
		{"a microsecond", func(v *volume) { v.Renewed = metav1.NewMicroTime(at.Add(time.Microsecond)) }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			log := NewLog(LogOptions{First: 1, Attrs: volumeAttrs})
			apply(t, log, "/volumes/v", published())
			changed := published()
			row.change(changed)
			got, err := log.Apply("/volumes/v", changed)
			if err != nil {
				t.Fatal(err)
			}
			if got != row.want || log.ResourceVersion() != map[bool]uint64{false: 2, true: 3}[row.want] {
				t.Errorf("changed: %t, version %d", got, log.ResourceVersion())
			}
		})
	}
}

func TestEveryChangeMovesTheVersionByOne(t *testing.T) {
	f := newFixture(t)
	for i, step := range []struct {
		change func() (bool, error)
		want   bool
	}{
		{func() (bool, error) { return f.log.Apply(podKey("a"), newPod("a", "1")) }, true},
		{func() (bool, error) { return f.log.Apply(podKey("b"), newPod("b", "1")) }, true},
		{func() (bool, error) { return f.log.Apply(podKey("a"), newPod("a", "2")) }, true},
		{func() (bool, error) { return f.log.Apply(podKey("a"), newPod("a", "2")) }, false},
		{func() (bool, error) { return f.log.Remove(podKey("b")) }, true},
		{func() (bool, error) { return f.log.Remove(podKey("b")) }, false},
		{func() (bool, error) { return f.log.Remove(podKey("a")) }, true},
	} {
		before := f.log.ResourceVersion()
		changed, err := step.change()
		if err != nil || changed != step.want {
			t.Fatalf("step %d: changed %t, %v", i, changed, err)
		}
		if moved := f.log.ResourceVersion() - before; moved != map[bool]uint64{true: 1}[step.want] {
			t.Errorf("step %d: the version moved by %d", i, moved)
		}
	}
	if obj, rv := f.log.Get(podKey("a")); obj != nil || rv != f.log.first+5 {
		t.Errorf("at last: %v at %d", obj, rv)
	}
}

func TestWhatCannotBePublishedChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	log := NewLog(LogOptions{First: 1, Attrs: func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, broken }})
	if changed, err := log.Apply("/pods/a", newPod("a", "1")); changed || !errors.Is(err, broken) {
		t.Errorf("without attributes: changed %t, %v", changed, err)
	}
	log.attrs = func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil }
	if changed, err := log.Apply("/pods/a", &metav1.Status{}); changed || err == nil {
		t.Errorf("without metadata: changed %t, %v", changed, err)
	}
	if stats := log.Stats(); stats.ResourceVersion != 1 || stats.Objects != 0 || stats.Events != 0 {
		t.Errorf("left behind: %+v", stats)
	}
}

func TestAnotherUIDIsAnotherObject(t *testing.T) {
	f := newFixture(t)
	first, second := newPod("a", "1"), newPod("a", "2")
	first.UID, second.UID = types.UID("1"), types.UID("2")
	apply(t, f.log, podKey("a"), first)
	apply(t, f.log, podKey("a"), second)
	events, _, _, err := f.log.since(f.log.first, make([]*event, 0, 10))
	if err != nil || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if events[1].cur != nil || events[2].prev != nil {
		t.Error("the object was not removed and added")
	}
}

func TestTheRingKeepsTheNewestEvents(t *testing.T) {
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.Window = 3 })
	for i := range 5 {
		f.set(t, "a", strconv.Itoa(i))
	}
	stats := f.log.Stats()
	if stats.Events != 3 || stats.Window != 3 || stats.CompactedResourceVersion != f.log.first+2 {
		t.Errorf("%+v", stats)
	}
	if _, _, _, err := f.log.since(f.log.first+1, nil); !apierrors.IsResourceExpired(err) {
		t.Errorf("from before the oldest event: %v", err)
	}
	events, _, _, err := f.log.since(f.log.first+2, make([]*event, 0, 10))
	if err != nil || len(events) != 3 || events[0].rv != f.log.first+3 {
		t.Errorf("from the oldest event: %v, %v", events, err)
	}
	if got := f.CompactRevision(); got != int64(f.log.first+2) {
		t.Errorf("compacted at %d", got)
	}
}

func TestTheRingIsBoundedInBytes(t *testing.T) {
	const bound = 64 << 10
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.Window, l.WindowBytes = 1000, bound })
	for i := range 100 {
		pod := newPod("a", strconv.Itoa(i))
		pod.Annotations = map[string]string{"ballast": string(make([]byte, 4<<10))}
		apply(t, f.log, podKey("a"), pod)
		if got := f.log.Stats().EventBytes; got > bound {
			t.Fatalf("%d bytes after %d events", got, i+1)
		}
	}
	if events := f.log.Stats().Events; events < 10 || events > 16 {
		t.Errorf("%d events of 4 KiB are kept in 64 KiB", events)
	}
}

func TestTheNewestEventIsKeptWhateverItsSize(t *testing.T) {
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.WindowBytes = 1 })
	f.set(t, "a", "1")
	before := f.log.ResourceVersion()
	f.set(t, "a", "2")
	if events, _, _, err := f.log.since(before, make([]*event, 0, 10)); err != nil || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestEncodingsCountAsLongAsTheyAreKept(t *testing.T) {
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.Window = 1 })
	f.set(t, "a", "1")
	e := f.log.ring.at(0)
	before := f.log.Stats().EventBytes
	encodeWith(t, codec(t), e.shared)
	if f.log.Stats().EventBytes <= before {
		t.Error("an encoding takes nothing")
	}
	f.set(t, "b", "1")
	if got := f.log.Stats().EventBytes; got != 0 {
		t.Errorf("%d bytes are left of an event that is gone", got)
	}
	encodeWith(t, codec(t), e.shared)
	if got := f.log.Stats().EventBytes; got != 0 {
		t.Errorf("%d bytes are kept for an event that is gone", got)
	}
}

func TestAnyKeptVersionCanBeListed(t *testing.T) {
	const events = 60
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.Window = events / 2 })
	want := map[string][]string{}
	for i := range events {
		name := string(rune('a' + (i*7)%11))
		var rv string
		if i%3 == 2 {
			rv = f.remove(t, name)
		} else {
			rv = f.set(t, name, strconv.Itoa(i))
		}
		list, err := f.list(t.Context(), storage.ListOptions{Predicate: selecting()})
		if err != nil || list.ResourceVersion != rv {
			t.Fatalf("%s, %v", list.ResourceVersion, err)
		}
		want[rv] = describeList(list)
	}
	kept := 0
	for rv, want := range want {
		list, err := f.list(t.Context(), storage.ListOptions{Predicate: selecting(), ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if parse(t, rv) < f.log.Stats().CompactedResourceVersion {
			if !apierrors.IsResourceExpired(err) {
				t.Errorf("a forgotten version: %v", err)
			}
			continue
		}
		kept++
		if diff := cmp.Diff(want, describeList(list)); err != nil || diff != "" || list.ResourceVersion != rv {
			t.Errorf("at %s, answered for %s: %v\n%s", rv, list.ResourceVersion, err, diff)
		}
	}
	if kept != events/2+1 && kept != events/2 {
		t.Errorf("%d versions are kept", kept)
	}
}

func TestAnExhaustedCounterStartsAnotherEpoch(t *testing.T) {
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.First = 1 })
	f.log.counterBits = 3
	f.set(t, "a", "1") // 2
	f.set(t, "b", "1") // 3
	for i := 4; i < 8; i++ {
		f.set(t, "b", strconv.Itoa(i))
	}
	if got := f.log.ResourceVersion(); got != 7 {
		t.Fatalf("at %d", got)
	}
	f.set(t, "b", "last")

	next := uint64(1<<identityBits)<<3 | 1
	stats := f.log.Stats()
	if stats.ResourceVersion != next+1 || stats.CompactedResourceVersion != next || stats.Events != 1 || stats.Published != 7 {
		t.Fatalf("%+v", stats)
	}
	if _, _, _, err := f.log.since(7, nil); !apierrors.IsResourceExpired(err) {
		t.Errorf("from the end of the epoch before: %v", err)
	}
	a, _ := f.log.Get(podKey("a"))
	if rv := a.(*example.Pod).ResourceVersion; rv != strconv.FormatUint(next, 10) {
		t.Errorf("an object that did not change is at %s", rv)
	}
	if err := f.log.checkVersion(parse(t, a.(*example.Pod).ResourceVersion)); err != nil {
		t.Errorf("its version is refused: %v", err)
	}
	if changed, err := f.log.Apply(podKey("a"), newPod("a", "1")); changed || err != nil {
		t.Errorf("its content counts as new: %v", err)
	}
	list, err := f.list(t.Context(), storage.ListOptions{Predicate: selecting(), ResourceVersion: strconv.FormatUint(next, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if diff := cmp.Diff([]string{"a=1", "b=7"}, describeList(list)); err != nil || diff != "" {
		t.Errorf("the state that the epoch started with: %v\n%s", err, diff)
	}
}

func TestStatsDescribeTheLog(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	f.set(t, "b", "1")
	f.set(t, "b", "2")
	f.remove(t, "a")
	stats := f.log.Stats()
	b, _ := f.log.Get(podKey("b"))
	want := LogStats{
		Ready: true, Objects: 1, ObjectBytes: settle(b), Window: DefaultWindow, Events: 4, EventBytes: stats.EventBytes,
		ResourceVersion: f.log.first + 4, CompactedResourceVersion: f.log.first, Published: 4,
	}
	if diff := cmp.Diff(want, stats); diff != "" {
		t.Error(diff)
	}
	if two := 2 * stats.ObjectBytes; stats.EventBytes < two*9/10 || stats.EventBytes > two {
		t.Errorf("%d bytes for two replaced objects of about %d", stats.EventBytes, stats.ObjectBytes)
	}
	got, err := f.Storage.Stats(t.Context())
	if want := (storage.Stats{ObjectCount: 1, EstimatedAverageObjectSizeBytes: stats.ObjectBytes}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSizesAreEstimatedFromWhatAnObjectRefersTo(t *testing.T) {
	small := settle(&volume{})
	for name, v := range map[string]*volume{
		"a string":          {ObjectMeta: metav1.ObjectMeta{Name: string(make([]byte, 1000))}},
		"a map":             {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": string(make([]byte, 1000))}}},
		"strings in slices": {ObjectMeta: metav1.ObjectMeta{Finalizers: []string{string(make([]byte, 500)), string(make([]byte, 500))}}},
		"structs in slices": {Replicas: make([]resource.Quantity, 20)},
	} {
		if grown := settle(v) - small; grown < 900 || grown > 2000 {
			t.Errorf("%s of about a thousand bytes counts as %d", name, grown)
		}
	}
	if zone := time.FixedZone("far away", 3600); settle(&volume{Imported: metav1.NewTime(started.In(zone))}) != small {
		t.Error("a time zone counts")
	}
}

func TestSharedObjectsCanBeReadByMany(t *testing.T) {
	log := NewLog(LogOptions{First: 1, Attrs: volumeAttrs})
	apply(t, log, "/volumes/v", &volume{
		Size:     resource.MustParse("6Gi"),
		Limit:    new(resource.MustParse("8Gi")),
		ByPool:   map[string]resource.Quantity{"a": resource.MustParse("1Gi")},
		Replicas: []resource.Quantity{resource.MustParse("2Gi")},
	})
	obj, _ := log.Get("/volumes/v")
	shared := obj.(*volume)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			inMap := shared.ByPool["a"]
			for _, q := range []*resource.Quantity{&shared.Size, shared.Limit, &inMap, &shared.Replicas[0]} {
				if q.String() == "" {
					t.Error("a quantity reads as nothing")
				}
			}
		})
	}
	wg.Wait()
}

func TestReadersGoOnWhileObjectsAreCompared(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	inAttrs, release := make(chan struct{}), make(chan struct{})
	attrs := f.log.attrs
	f.log.attrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		close(inAttrs)
		<-release
		return attrs(obj)
	}
	done := make(chan error)
	go func() {
		_, err := f.log.Apply(podKey("a"), newPod("a", "2"))
		done <- err
	}()
	<-inAttrs
	list, err := f.list(t.Context(), storage.ListOptions{Predicate: selecting()})
	if diff := cmp.Diff([]string{"a=1"}, describeList(list)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestPublishedObjectsHaveNoKind(t *testing.T) {
	f := newFixture(t)
	pod := newPod("a", "1")
	pod.SetGroupVersionKind(schema.GroupVersionKind{Kind: "Pod"})
	apply(t, f.log, podKey("a"), pod)
	if obj, _ := f.log.Get(podKey("a")); obj.GetObjectKind().GroupVersionKind() != (schema.GroupVersionKind{}) {
		t.Errorf("%v", obj.GetObjectKind())
	}
}

func TestRequestsBeforeTheLogIsReadyAreToldToComeBack(t *testing.T) {
	f := newFixture(t, func(l *LogOptions, _ *Options) { l.NotReady = func() string { return "DataVolumes" } })
	f.log.SetReady(false)
	ctx := t.Context()
	_, listErr := f.list(ctx, storage.ListOptions{Predicate: selecting()})
	_, watchErr := f.Watch(ctx, "/pods", storage.ListOptions{Predicate: selecting(), Recursive: true})
	for verb, err := range map[string]error{
		"get":    f.Get(ctx, podKey("a"), storage.GetOptions{}, &example.Pod{}),
		"list":   listErr,
		"watch":  watchErr,
		"create": f.Create(ctx, podKey("a"), newPod("a", "1"), nil, 0),
		"update": f.GuaranteedUpdate(ctx, podKey("a"), &example.Pod{}, true, nil, nil, nil),
		"delete": f.Delete(ctx, podKey("a"), &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}),
	} {
		seconds, retry := apierrors.SuggestsClientDelay(err)
		if !apierrors.IsServiceUnavailable(err) || !retry || seconds != 1 {
			t.Errorf("%s: %v, after %d s", verb, err, seconds)
		}
		if want := "the sources have not been read yet: DataVolumes"; fmt.Sprint(err) != want {
			t.Errorf("%s: %q instead of %q", verb, err, want)
		}
	}
	if err := f.ReadinessCheck(); !errors.Is(err, storage.ErrStorageNotReady) {
		t.Errorf("readiness: %v", err)
	}
	f.log.SetReady(true)
	if err := f.ReadinessCheck(); err != nil {
		t.Errorf("readiness: %v", err)
	}
	if _, err := f.list(ctx, storage.ListOptions{Predicate: selecting()}); err != nil {
		t.Errorf("list of a log that is ready: %v", err)
	}
}
