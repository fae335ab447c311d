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
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
			// The suite takes 1 for a version of the past and the largest int64 for one still to come.
			f := newFixture(t, func(l *LogOptions, _ *Options) { l.First = 1 })
			f.log.counterBits = 63
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
	return serializer.NewCodecFactory(exampleScheme(t)).LegacyCodec(examplev1.SchemeGroupVersion)
}

func exampleScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	if err := errors.Join(example.AddToScheme(scheme), examplev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func noCalls(*testing.T, uint64, uint64) {}
