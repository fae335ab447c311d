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

package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
)

const (
	goldens   = "cozy-public"
	goldA     = "talos-worker-aaa-v1.13.6"
	goldB     = "talos-worker-bbb-v1.13.6"
	poolA     = "k1-md0"
	diskPoolA = "kubernetes-k1-md0"
)

var (
	catalogName = types.NamespacedName{Namespace: goldens, Name: "worker-image-catalog"}

	platform = golden.ID{SchematicID: "aaa", Version: "v1.13.6"}
	start    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// object is what sources hold.
type object interface {
	metav1.Object
	runtime.Object
}

type mutation func(map[string]any)

func set(value any, path ...string) mutation {
	return func(o map[string]any) {
		if err := unstructured.SetNestedField(o, value, path...); err != nil {
			panic(err)
		}
	}
}

func manifest(apiVersion, kind, namespace, name string, mutations ...mutation) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{}}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID(kind + "/" + namespace + "/" + name))
	u.SetCreationTimestamp(metav1.NewTime(start))
	for _, mutate := range mutations {
		mutate(u.Object)
	}
	return u
}

func dataVolumeObject(namespace, name string, mutations ...mutation) *unstructured.Unstructured {
	return manifest("cdi.kubevirt.io/v1beta1", "DataVolume", namespace, name, mutations...)
}

// goldenObject is a golden that is ready once its claim is there.
func goldenObject(name string, mutations ...mutation) *unstructured.Unstructured {
	return dataVolumeObject(goldens, name, append([]mutation{
		set("http://factory.example/image.raw.xz", "spec", "source", "http", "url"),
		set("replicated", "spec", "storage", "storageClassName"),
		set("6Gi", "spec", "storage", "resources", "requests", "storage"),
		phase("Succeeded"),
	}, mutations...)...)
}

// diskObject is a worker disk of a pool, cloned from a golden.
func diskObject(namespace, name, golden, pool string, mutations ...mutation) *unstructured.Unstructured {
	return dataVolumeObject(namespace, name, append([]mutation{
		set(goldens, "spec", "source", "pvc", "namespace"),
		set(golden, "spec", "source", "pvc", "name"),
		set(golden, "metadata", "annotations", "kubernetes-worker-image.cozystack.io/golden"),
		set(pool, "metadata", "annotations", "kubernetes-worker-image.cozystack.io/pool"),
		phase("Succeeded"),
	}, mutations...)...)
}

func phase(phase string) mutation       { return set(phase, "status", "phase") }
func progress(percent string) mutation  { return set(percent, "status", "progress") }
func claimNamed(name string) mutation   { return set(name, "status", "claimName") }
func classInSpec(class string) mutation { return set(class, "spec", "storage", "storageClassName") }

// poolObject is a pool that pins an image.
func poolObject(namespace, name string, image golden.ID, mutations ...mutation) *unstructured.Unstructured {
	return manifest("apps.cozystack.io/v1alpha1", "KubernetesNodes", namespace, name, append([]mutation{
		set("k1", "spec", "cluster"),
		set(image.SchematicID, "spec", "osImage", "builtin", "schematicID"),
		set(image.Version, "spec", "osImage", "builtin", "version"),
		set("replicated", "spec", "storageClass"),
	}, mutations...)...)
}

func imageID(name string) golden.ID {
	id, ok := golden.ParseName(name)
	if !ok {
		panic(name)
	}
	return id
}

// claimObject is a bound claim that the DataVolume of its name controls.
func claimObject(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      name,
			UID:       types.UID("PersistentVolumeClaim/" + namespace + "/" + name),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "cdi.kubevirt.io/v1beta1",
				Kind:       "DataVolume",
				Name:       name,
				UID:        types.UID("DataVolume/" + namespace + "/" + name),
				Controller: ptr.To(true),
			}},
		},
		Spec:   corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(class)},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func classObject(name string, annotations ...string) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start), Annotations: map[string]string{},
	}}
	for _, a := range annotations {
		class.Annotations[a] = "true"
	}
	return class
}

func profileObject(class, strategy string) *unstructured.Unstructured {
	return manifest("cdi.kubevirt.io/v1beta1", "StorageProfile", "", class, set(strategy, "status", "cloneStrategy"))
}

func cdiObject(name, override string) *unstructured.Unstructured {
	return manifest("cdi.kubevirt.io/v1beta1", "CDI", "", name, set(override, "spec", "cloneStrategyOverride"))
}

// catalogObject is the ConfigMap of the catalog.
func catalogObject(document string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: catalogName.Namespace, Name: catalogName.Name, UID: "catalog"},
		Data:       map[string]string{"catalog.yaml": document},
	}
}

// fakeSource is the API of one kind.
type fakeSource struct {
	streams bool // whether lists may be streamed

	mu       sync.Mutex
	version  int
	objects  map[types.NamespacedName]object
	watches  []*watch.FakeWatcher
	listErr  error
	watchErr error
	lists    int
	// blocked keeps lists and watches waiting until it is closed.
	blocked chan struct{}
	// noBookmarks leaves out the end of streamed lists.
	noBookmarks bool
}

var _ cache.ListerWatcherWithContext = &fakeSource{}

func (f *fakeSource) IsWatchListSemanticsUnSupported() bool { return !f.streams }

func (f *fakeSource) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listErr != nil {
		return nil, f.listErr
	}
	f.lists++
	list := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}}
	for _, o := range f.objects {
		list.Items = append(list.Items, o.DeepCopyObject())
	}
	return list, nil
}

func (f *fakeSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchErr != nil {
		return nil, f.watchErr
	}
	w := watch.NewFakeWithChanSize(100000, false)
	f.watches = append(f.watches, w)
	if !ptr.Deref(options.SendInitialEvents, false) {
		return w, nil
	}
	f.lists++
	for _, o := range f.objects {
		w.Add(o.DeepCopyObject())
	}
	if f.noBookmarks {
		return w, nil
	}
	w.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(f.version),
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}})
	return w, nil
}

func (f *fakeSource) wait(ctx context.Context) error {
	if f.blocked == nil {
		return nil
	}
	select {
	case <-f.blocked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put makes objects the current ones of their names.
func (f *fakeSource) put(objects ...object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objects {
		event := watch.Added
		if _, ok := f.objects[nameOf(o)]; ok {
			event = watch.Modified
		}
		f.send(event, o)
		f.objects[nameOf(o)] = o
	}
}

func (f *fakeSource) remove(objects ...object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objects {
		delete(f.objects, nameOf(o))
		f.send(watch.Deleted, o)
	}
}

func (f *fakeSource) send(event watch.EventType, o object) {
	f.version++
	o.SetResourceVersion(strconv.Itoa(f.version))
	for _, w := range f.watches {
		if !w.IsStopped() {
			w.Action(event, o.DeepCopyObject())
		}
	}
}

// fail makes lists and watches fail from now on, and ends the watches that run.
func (f *fakeSource) fail(err error) {
	f.mu.Lock()
	f.listErr, f.watchErr = err, err
	f.mu.Unlock()
	f.endWatches()
}

func (f *fakeSource) recover() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listErr, f.watchErr = nil, nil
}

func (f *fakeSource) endWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watches {
		w.Stop()
	}
	f.watches = nil
}

// expireWatches ends the watches that run, so that a list must follow.
func (f *fakeSource) expireWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watches {
		if !w.IsStopped() {
			w.Error(ptr.To(apierrors.NewResourceExpired("too old").Status()))
		}
	}
	f.watches = nil
}

// forget changes what lists return without telling the watches.
func (f *fakeSource) forget(objects ...object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range objects {
		delete(f.objects, nameOf(o))
	}
	f.version++
}

func (f *fakeSource) listed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lists
}

func nameOf(o object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// publications is a Publisher that remembers.
type publications struct {
	mu      sync.Mutex
	ready   bool
	images  map[string]*images.WorkerImage
	log     []string
	entries map[string]*images.CatalogEntry
	// entryLog is that of the catalog entries.
	entryLog []string
	// optionLog is that of the options.
	optionLog []string
	reports   []string
	err       error
	// optionErr is what options are refused with, and only they.
	optionErr error
	// repeated are the names that were published as they were.
	repeated []string
}

func (p *publications) report(_ context.Context, r CatalogReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isThere := r.UID != ""
	p.reports = append(p.reports, fmt.Sprintf("there: %t, a catalog: %t, entries: %d, rejected: %d",
		isThere, r.Err == "", len(r.Catalog.Entries), len(r.Catalog.Rejected)))
}

// takeReports is take for reports about the catalog.
func (p *publications) takeReports() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	reports := p.reports
	p.reports = nil
	return reports
}

func (p *publications) PublishOption(option *images.Option) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(p.err, p.optionErr); err != nil {
		return err
	}
	labels := make([]string, 0, len(option.Spec.Items))
	for _, item := range option.Spec.Items {
		labels = append(labels, item.Label)
	}
	p.optionLog = append(p.optionLog, fmt.Sprintf("%s/%s: %s", option.Namespace, option.Name, strings.Join(labels, ", ")))
	return nil
}

func (p *publications) PublishEntry(name string, entry *images.CatalogEntry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if entry == nil {
		delete(p.entries, name)
		p.entryLog = append(p.entryLog, name+" gone")
		return nil
	}
	if last := p.entries[name]; last != nil && cmp.Equal(last, entry) {
		p.repeated = append(p.repeated, name)
	}
	p.entries[name] = entry
	p.entryLog = append(p.entryLog, fmt.Sprintf("%s %s", name, entry.Status.Phase))
	return nil
}

func (p *publications) PublishImage(name string, image *images.WorkerImage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	if image == nil {
		delete(p.images, name)
		p.log = append(p.log, name+" gone")
		return nil
	}
	if last := p.images[name]; last != nil && cmp.Equal(last, image) {
		p.repeated = append(p.repeated, name)
	}
	p.images[name] = image
	p.log = append(p.log, fmt.Sprintf("%s %s", name, image.Status.Phase))
	return nil
}

func (p *publications) Ready() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = true
	p.log = append(p.log, "ready")
	p.optionLog = append(p.optionLog, "ready")
}

// take returns what was published since it was last called.
func (p *publications) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.log
	p.log = nil
	return log
}

// takeEntries is take for catalog entries.
func (p *publications) takeEntries() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.entryLog
	p.entryLog = nil
	return log
}

// takeOptions is take for options.
func (p *publications) takeOptions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.optionLog
	p.optionLog = nil
	return log
}

func (p *publications) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *publications) image(t *testing.T, name string) *images.WorkerImage {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	image := p.images[name]
	if image == nil {
		t.Fatalf("no image %s, only %v", name, slices.Sorted(maps.Keys(p.images)))
	}
	return image
}

func (p *publications) entry(t *testing.T, name string) *images.CatalogEntry {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	entry := p.entries[name]
	if entry == nil {
		t.Fatalf("no catalog entry %s, only %v", name, slices.Sorted(maps.Keys(p.entries)))
	}
	return entry
}

func (p *publications) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// refuseOptions refuses options, and only them.
func (p *publications) refuseOptions(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.optionErr = err
}

// fixture is an Inventory on sources that a test controls.
type fixture struct {
	*Inventory
	t     *testing.T
	clock *clocktesting.FakeClock
	out   *publications

	dataVolumes, claims, classes, profiles, cdis, pools, configMaps *fakeSource
}

// run runs a test against an Inventory that has not started yet.
func run(t *testing.T, test func(*fixture)) {
	t.Helper()
	for name, streams := range map[string]bool{"streamed lists": true, "plain lists": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(newFixture(t, streams)) })
		})
	}
}

func newFixture(t *testing.T, streams bool) *fixture {
	source := func() *fakeSource {
		return &fakeSource{streams: streams, version: 1, objects: map[types.NamespacedName]object{}}
	}
	f := &fixture{
		t:           t,
		clock:       clocktesting.NewFakeClock(start),
		out:         &publications{images: map[string]*images.WorkerImage{}, entries: map[string]*images.CatalogEntry{}},
		dataVolumes: source(), claims: source(), classes: source(), profiles: source(), cdis: source(), pools: source(), configMaps: source(),
	}
	f.Inventory = New(Config{
		Sources: Sources{
			DataVolumes:     f.dataVolumes,
			Claims:          f.claims,
			StorageClasses:  f.classes,
			StorageProfiles: f.profiles,
			CDIs:            f.cdis,
			Pools:           f.pools,
			Catalog:         f.configMaps,
		},
		GoldensNamespace: goldens,
		Platform:         platform,
		Catalog:          catalogName,
		CatalogKey:       "catalog.yaml",
		ReportCatalog:    f.out.report,
		Publisher:        f.out,
		Clock:            f.clock,
	})
	return f
}

// start runs the Inventory until the test ends, and waits until it has nothing left to do.
func (f *fixture) start() {
	ctx, cancel := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	f.settle()
}

// settle waits until the Inventory has nothing left to do.
func (f *fixture) settle() { synctest.Wait() }

// pass lets time pass.
func (f *fixture) pass(d time.Duration) {
	f.settle()
	for end := f.clock.Now().Add(d); f.clock.Now().Before(end); f.settle() {
		f.clock.Step(min(tick, end.Sub(f.clock.Now())))
	}
}

// tick is how far time jumps at once.
const tick = 100 * time.Millisecond

// published is what was published since it was last asked for.
func (f *fixture) published() []string {
	f.settle()
	return f.out.take()
}

// expectEntries is expect for catalog entries.
func (f *fixture) expectEntries(why string, want ...string) {
	f.t.Helper()
	f.settle()
	if diff := cmp.Diff(want, f.out.takeEntries(), cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("%s: %s", why, diff)
	}
}

func (f *fixture) source(name string) SourceHealth {
	f.t.Helper()
	for _, h := range f.Health() {
		if h.Name == name {
			return h
		}
	}
	f.t.Fatalf("no source %s", name)
	return SourceHealth{}
}

// startReady fills in a golden that is ready, with a pool and the classes, and starts.
func (f *fixture) startReady() {
	f.classes.put(classObject("replicated"))
	f.profiles.put(profileObject("replicated", "csi-clone"))
	f.cdis.put(cdiObject("cdi", ""))
	f.dataVolumes.put(goldenObject(goldA))
	f.claims.put(claimObject(goldens, goldA, "replicated"))
	f.pools.put(poolObject("tenant-a", poolA, imageID(goldA)))
	f.start()
	f.pass(publishInterval)
	f.out.take()
	f.out.takeEntries()
	f.out.takeOptions()
}

// condition of an image, as status and reason.
func (f *fixture) condition(image, condition string) string {
	f.t.Helper()
	c := meta.FindStatusCondition(f.out.image(f.t, image).Status.Conditions, condition)
	if c == nil {
		f.t.Fatalf("%s has no condition %s", image, condition)
	}
	return string(c.Status) + " " + c.Reason
}

// expect compares what was published since it was last asked for.
func (f *fixture) expect(why string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.published(), cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("%s: %s", why, diff)
	}
}
