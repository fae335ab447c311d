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
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// conformance is upstream's suite: each of its functions is run, or says why it does not apply.
var conformance = []struct {
	function string
	run      func(context.Context, *testing.T, *fixture)
	why      string
}{
	{function: "RunTestCreate", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCreate(ctx, t, f.Storage, f.holds)
	}},
	{function: "RunTestCreateWithKeyExist", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCreateWithKeyExist(ctx, t, f.Storage)
	}},
	{function: "RunTestGet", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGet(ctx, t, f.Storage)
	}},
	{function: "RunTestUnconditionalDelete", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestUnconditionalDelete(ctx, t, f.Storage)
	}},
	{function: "RunTestConditionalDelete", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestConditionalDelete(ctx, t, f.Storage)
	}},
	{function: "RunTestDeleteWithSuggestion", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithSuggestion(ctx, t, f.Storage)
	}},
	{function: "RunTestDeleteWithSuggestionAndConflict", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithSuggestionAndConflict(ctx, t, f.Storage)
	}},
	{function: "RunTestDeleteWithConflict", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithConflict(ctx, t, f.Storage)
	}},
	{function: "RunTestDeleteWithSuggestionOfDeletedObject", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithSuggestionOfDeletedObject(ctx, t, f.Storage)
	}},
	{function: "RunTestValidateDeletionWithSuggestion", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestValidateDeletionWithSuggestion(ctx, t, f.Storage)
	}},
	{function: "RunTestValidateDeletionWithOnlySuggestionValid", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestValidateDeletionWithOnlySuggestionValid(ctx, t, f.Storage)
	}},
	{function: "RunTestPreconditionalDeleteWithSuggestion", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestPreconditionalDeleteWithSuggestion(ctx, t, f.Storage)
	}},
	{function: "RunTestPreconditionalDeleteWithOnlySuggestionPass", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass(ctx, t, f.Storage)
	}},
	{function: "RunTestList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestList(ctx, t, f.Storage, f.compact, false, nil)
	}},
	{function: "RunTestConsistentList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestConsistentList(ctx, t, f.Storage, f.increaseVersion, false, true, false)
	}},
	{function: "RunTestGetListNonRecursive", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, f.increaseVersion, f.Storage)
	}},
	{function: "RunTestGetListRecursivePrefix", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListRecursivePrefix(ctx, t, f.Storage)
	}},
	{function: "RunTestListContinuation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuation(ctx, t, f.Storage, noCalls)
	}},
	{function: "RunTestListPaginationRareObject", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, f.Storage, noCalls)
	}},
	{function: "RunTestListContinuationWithFilter", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, f.Storage, noCalls)
	}},
	{function: "RunTestListInconsistentContinuation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, f.Storage, f.compact)
	}},
	{function: "RunTestListResourceVersionMatch", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, f)
	}},
	{function: "RunTestListPaging", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListPaging(ctx, t, f.Storage)
	}},
	{function: "RunTestNamespaceScopedList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestNamespaceScopedList(ctx, t, f.Storage)
	}},
	{function: "RunTestGuaranteedUpdateWithConflict", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdateWithConflict(ctx, t, f.Storage)
	}},
	{function: "RunTestGuaranteedUpdateWithSuggestionAndConflict", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict(ctx, t, f.Storage)
	}},
	{function: "RunTestStats", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestStats(ctx, t, countOnly{f.Storage}, codec(t), identity.NewEncryptCheckTransformer(), false)
	}},
	{function: "RunTestCompactRevision", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCompactRevision(ctx, t, f.Storage, f.increaseVersion, f.compact)
	}},
	{function: "RunTestKeySchema", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestKeySchema(ctx, t, f.Storage)
	}},
	{function: "RunTestWatch", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatch(ctx, t, f.Storage)
	}},
	{function: "RunTestWatchFromZero", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchFromZero(ctx, t, f.Storage, f.compact)
	}},
	{function: "RunTestDeleteTriggerWatch", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteTriggerWatch(ctx, t, f.Storage)
	}},
	{function: "RunTestWatchFromNonZero", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchFromNonZero(ctx, t, f.Storage)
	}},
	{function: "RunTestDelayedWatchDelivery", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDelayedWatchDelivery(ctx, t, f.Storage)
	}},
	{function: "RunTestWatchContextCancel", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchContextCancel(ctx, t, f.Storage)
	}},
	{function: "RunTestWatcherTimeout", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatcherTimeout(ctx, t, f.Storage)
	}},
	{function: "RunTestWatchDeleteEventObjectHaveLatestRV", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV(ctx, t, f.Storage)
	}},
	{function: "RunTestWatchInitializationSignal", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchInitializationSignal(ctx, t, f.Storage)
	}},
	{function: "RunOptionalTestProgressNotify", run: func(ctx context.Context, t *testing.T, f *fixture) {
		f.bookmarkPeriod = time.Millisecond
		storagetesting.RunOptionalTestProgressNotify(ctx, t, f.Storage, f.increaseVersion)
	}},
	{function: "RunTestClusterScopedWatch", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestClusterScopedWatch(ctx, t, f.Storage)
	}},
	{function: "RunTestNamespaceScopedWatch", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestNamespaceScopedWatch(ctx, t, f.Storage)
	}},
	{function: "RunTestWatchDispatchBookmarkEvents", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, f.Storage, true)
	}},
	{function: "RunTestOptionalWatchBookmarksWithCorrectResourceVersion", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, f.Storage)
	}},
	{function: "RunSendInitialEventsBackwardCompatibility", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunSendInitialEventsBackwardCompatibility(ctx, t, f.Storage)
	}},
	{function: "RunWatchSemantics", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunWatchSemantics(ctx, t, f.Storage)
	}},
	{function: "RunWatchSemanticInitialEventsExtended", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunWatchSemanticInitialEventsExtended(ctx, t, f.Storage)
	}},
	{function: "RunWatchListMatchSingle", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunWatchListMatchSingle(ctx, t, f.Storage)
	}},

	{function: "RunTestCreateWithTTL", why: "objects have no time to live"},
	{function: "RunTestGuaranteedUpdateWithTTL", why: "objects have no time to live"},
	{function: "RunTestGuaranteedUpdate", why: "one of its rows needs stored bytes that are outdated though their content is not"},
	{function: "RunTestGuaranteedUpdateChecksStoredData", why: "objects are not stored as bytes, which could differ with equal content"},
	{function: "RunTestTransformationFailure", why: "nothing is encoded on the way in, so nothing fails to decode on the way out"},
	{function: "RunTestGetListWithErrorAggregation", why: "no object can be corrupt"},
	{function: "RunTestGetListWithoutErrorAggregation", why: "no object can be corrupt"},
	{function: "RunTestDeleteExpectedTransformOrDecodeError", why: "no object can be corrupt"},
	{function: "RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError", why: "no object can be corrupt"},
	{function: "RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", why: "no object can be corrupt"},
	{function: "RunTestWatchError", why: "no object can be corrupt"},
	{function: "RunTestWatchWithUnsafeDelete", why: "no object can be corrupt"},
	{function: "RunWatchErrorIsBlockingFurtherEvents", why: "no object can be corrupt"},
	{function: "RunBenchmarkWriteThroughput", why: "a benchmark: writes are the backend's"},
	{function: "RunBenchmarkStoreList", why: "a benchmark of indexes, which this storage has none of"},
	{function: "RunBenchmarkStoreStats", why: "a benchmark of sizes that etcd reports"},
}

func TestConformance(t *testing.T) {
	for _, c := range conformance {
		if c.run == nil {
			continue
		}
		t.Run(c.function, func(t *testing.T) {
			f := newFixture(t)
			c.run(t.Context(), t, f)
		})
	}
}

func TestEveryConformanceFunctionIsRunOrExcused(t *testing.T) {
	known := map[string]bool{}
	for _, c := range conformance {
		if (c.run == nil) == (c.why == "") {
			t.Errorf("%s must be run, or have a reason not to be", c.function)
		}
		known[c.function] = true
	}
	for _, name := range exportedRunFunctions(t, "k8s.io/apiserver/pkg/storage/testing") {
		if !known[name] {
			t.Errorf("%s is neither run nor excused", name)
		}
		delete(known, name)
	}
	for name := range known {
		t.Errorf("%s does not exist", name)
	}
}

func exportedRunFunctions(t *testing.T, pkg string) (names []string) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(string(bytes.TrimSpace(out)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Run") {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// fixture is a storage of pods whose backend writes to the log at once.
type fixture struct {
	*Storage
	log *Log
}

func newFixture(t testing.TB, change ...func(*LogOptions, *Options)) *fixture {
	t.Helper()
	logOptions := LogOptions{First: 1, Attrs: podAttrs}
	options := Options{
		Resource: schema.GroupResource{Resource: "pods"},
		Prefix:   "/pods/",
		NewFunc:  func() runtime.Object { return &example.Pod{} },
	}
	for _, c := range change {
		c(&logOptions, &options)
	}
	options.Log = NewLog(logOptions)
	options.Log.counterBits = 63 // the suite takes the largest int64 for a version that is still to come
	options.Log.SetReady(true)
	if options.Backend == nil {
		options.Backend = atOnce{options.Log}
	}
	return &fixture{Storage: New(options), log: options.Log}
}

func podAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not a pod", obj)
	}
	return labels.Set(pod.Labels), fields.Set{
		"metadata.name":      pod.Name,
		"metadata.namespace": pod.Namespace,
		"spec.nodeName":      pod.Spec.NodeName,
	}, nil
}

func (f *fixture) holds(_ context.Context, t *testing.T, key string) {
	t.Helper()
	if obj, _ := f.log.Get(key); obj == nil {
		t.Errorf("the log does not have %s", key)
	}
}

// increaseVersion makes an event that nobody lists or watches.
func (f *fixture) increaseVersion(_ context.Context, t *testing.T) int64 {
	t.Helper()
	rv := f.log.ResourceVersion()
	apply(t, f.log, "/other/x", &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"after": strconv.FormatUint(rv, 10)}}})
	return int64(rv + 1)
}

// compact forgets what is not newer than rv, after an event of its own, as the compaction of etcd.
func (f *fixture) compact(ctx context.Context, t *testing.T, rv string) {
	t.Helper()
	f.increaseVersion(ctx, t)
	f.log.compactTo(parse(t, rv))
}

// UpdatePrefixTransformer makes the fixture an InterfaceWithPrefixTransformer: nothing is ever transformed.
func (f *fixture) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	modify(storagetesting.NewPrefixTransformer(nil, false))
	return func() {}
}

// countOnly leaves out sizes: upstream compares them with what etcd stores.
type countOnly struct{ *Storage }

func (s countOnly) Stats(ctx context.Context) (storage.Stats, error) {
	stats, err := s.Storage.Stats(ctx)
	stats.EstimatedAverageObjectSizeBytes = 0
	return stats, err
}

func codec(t testing.TB) runtime.Codec {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := errors.Join(example.AddToScheme(scheme), examplev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return serializer.NewCodecFactory(scheme).LegacyCodec(examplev1.SchemeGroupVersion)
}

func noCalls(*testing.T, uint64, uint64) {}

// atOnce is a backend whose writes are in the log when it returns.
type atOnce struct{ log *Log }

func (b atOnce) Create(_ context.Context, key string, obj runtime.Object) (Visible, error) {
	_, err := b.log.Apply(key, obj)
	return visibleAtOnce, err
}

func (b atOnce) Update(_ context.Context, key string, old, obj runtime.Object) (Visible, error) {
	if err := b.check(key, old); err != nil {
		return nil, err
	}
	_, err := b.log.Apply(key, obj)
	return visibleAtOnce, err
}

func (b atOnce) Delete(_ context.Context, key string, old runtime.Object) (Visible, error) {
	if err := b.check(key, old); err != nil {
		return nil, err
	}
	_, err := b.log.Remove(key)
	return visibleAtOnce, err
}

func (b atOnce) check(key string, old runtime.Object) error {
	if obj, _ := b.log.Get(key); obj != old {
		return conflict(key)
	}
	return nil
}

func visibleAtOnce(runtime.Object) bool { return true }

func conflict(key string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, key, fmt.Errorf("it has changed"))
}

// compactTo forgets the events up to rv.
func (l *Log) compactTo(rv uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.ring.len > 0 && l.ring.at(0).rv <= rv {
		l.ring.evict()
	}
	l.compacted = max(l.compacted, min(rv, l.rv))
}

func apply(t testing.TB, l *Log, key string, obj runtime.Object) {
	t.Helper()
	if _, err := l.Apply(key, obj); err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, rv string) uint64 {
	t.Helper()
	parsed, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
