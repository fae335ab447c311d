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
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"
)

const (
	// DefaultBookmarkPeriod is how often a watcher that asked for bookmarks gets one.
	DefaultBookmarkPeriod = time.Minute
	// DefaultWriteTimeout is how long a write waits until the log shows it.
	DefaultWriteTimeout = 10 * time.Second
)

// Options configure a Storage.
type Options struct {
	Log *Log
	// Backend carries out writes. Without one the resource is read only.
	Backend Backend
	// Resource names the resource in errors.
	Resource schema.GroupResource
	// Prefix is what all keys of the resource start with.
	Prefix string
	// NewFunc returns an empty object of the resource's type.
	NewFunc        func() runtime.Object
	BookmarkPeriod time.Duration
	WriteTimeout   time.Duration
	Clock          clock.Clock
}

// Storage implements storage.Interface on a Log.
type Storage struct {
	log            *Log
	backend        Backend
	resource       schema.GroupResource
	prefix         string
	newFunc        func() runtime.Object
	bookmarkPeriod time.Duration
	writeTimeout   time.Duration
	clock          clock.Clock
	versioner      storage.APIObjectVersioner

	encodedMu sync.Mutex
	encoded   *EncodedList // the last that was asked for
}

var _ storage.Interface = &Storage{}

// New returns a Storage on the log of the options.
func New(opts Options) *Storage {
	if opts.BookmarkPeriod <= 0 {
		opts.BookmarkPeriod = DefaultBookmarkPeriod
	}
	if opts.WriteTimeout <= 0 {
		opts.WriteTimeout = DefaultWriteTimeout
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	return &Storage{
		log:      opts.Log,
		backend:  opts.Backend,
		resource: opts.Resource,
		// Closed by a slash, so that /workerimages is not a prefix of /workerimagesx/a.
		prefix:         strings.TrimSuffix(opts.Prefix, "/") + "/",
		newFunc:        opts.NewFunc,
		bookmarkPeriod: opts.BookmarkPeriod,
		writeTimeout:   opts.WriteTimeout,
		clock:          opts.Clock,
	}
}

// Versioner implements storage.Interface.
func (s *Storage) Versioner() storage.Versioner { return s.versioner }

// Get implements storage.Interface.
func (s *Storage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := s.prepare(key, false)
	if err != nil {
		return err
	}
	rv, err := s.parseVersion(opts.ResourceVersion)
	if err != nil {
		return err
	}
	if err := s.awaitVersion(ctx, rv); err != nil {
		return err
	}
	e, now, _ := s.log.get(key)
	switch {
	case e != nil:
		// The registry works on what it gets, for dry-run and for deletion.
		return setInto(out, e.obj.DeepCopyObject())
	case opts.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	default:
		return storage.NewKeyNotFoundError(key, int64(now))
	}
}

// GetList implements storage.Interface.
func (s *Storage) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	key, err := s.prepare(key, opts.Recursive)
	if err != nil {
		return err
	}
	at, start, err := storage.ValidateListOptions(key, s.versioner, opts)
	if err != nil {
		return err
	}
	rv, err := s.parseVersion(opts.ResourceVersion)
	if err != nil {
		return err
	}
	if err := s.awaitVersion(ctx, rv); err != nil {
		return err
	}
	entries, now, err := s.log.snapshot(key, start, uint64(at))
	if err != nil {
		if start != "" && apierrors.IsResourceExpired(err) {
			return errContinueExpired(start, key)
		}
		return err
	}
	if !opts.Recursive {
		entries = withKey(entries, key)
	}
	page := selectPage(entries, opts.Predicate)
	if err := setItems(listObj, page.selected); err != nil {
		return err
	}
	token, remaining, err := storage.PrepareContinueToken(page.last, key, int64(now), int64(len(entries)), page.more, opts)
	if err != nil {
		return err
	}
	opts.Predicate.SetShardInfoOnList(listObj)
	return s.versioner.UpdateList(listObj, now, token, remaining)
}

// Stats implements storage.Interface.
func (s *Storage) Stats(context.Context) (storage.Stats, error) {
	stats := s.log.Stats()
	out := storage.Stats{ObjectCount: int64(stats.Objects)}
	if stats.Objects > 0 {
		out.EstimatedAverageObjectSizeBytes = stats.ObjectBytes / int64(stats.Objects)
	}
	return out, nil
}

// ReadinessCheck implements storage.Interface.
func (s *Storage) ReadinessCheck() error {
	if !s.log.Ready() {
		return storage.ErrStorageNotReady
	}
	return nil
}

// RequestWatchProgress implements storage.Interface. It is for a watch cache, and there is none
// here: a watcher of this storage has nothing to catch up with.
func (s *Storage) RequestWatchProgress(context.Context) error { return nil }

// GetCurrentResourceVersion implements storage.Interface.
func (s *Storage) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return s.log.ResourceVersion(), nil
}

// EnableResourceSizeEstimation implements storage.Interface. Sizes are known without the keys.
func (s *Storage) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision implements storage.Interface.
func (s *Storage) CompactRevision() int64 {
	if compacted := s.log.Stats().CompactedResourceVersion; compacted != s.log.first {
		return int64(compacted)
	}
	return 0
}

// prepare is how every request begins.
func (s *Storage) prepare(key string, recursive bool) (string, error) {
	if err := s.log.checkReady(); err != nil {
		return "", err
	}
	return storage.PrepareKey(s.prefix, key, recursive)
}

func (s *Storage) parseVersion(rv string) (uint64, error) {
	parsed, err := s.versioner.ParseResourceVersion(rv)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	return parsed, nil
}

// awaitVersion returns when the log has rv in its history, or the answer to the request that refers to it.
func (s *Storage) awaitVersion(ctx context.Context, rv uint64) error {
	if s.log.adopts.Load() && rv > s.log.ResourceVersion() {
		// In vain or not, the check finds out.
		_, _ = s.await(ctx, "", s.log.patience, func(*entry) bool { return s.log.ResourceVersion() >= rv })
	}
	return s.log.checkVersion(rv)
}

// errContinueExpired carries a token with which the rest of the list can be read as it is now.
func errContinueExpired(start, prefix string) error {
	token, err := storage.EncodeContinue(start, prefix, -1)
	if err != nil {
		return apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You can start a new list without the continue parameter.")
	}
	expired := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were " +
		"created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	expired.ErrStatus.ListMeta.Continue = token
	return expired
}

// withKey narrows entries that have key as a prefix to the one that has it as its key.
func withKey(entries []*entry, key string) []*entry {
	if len(entries) > 0 && entries[0].key == key {
		return entries[:1]
	}
	return nil
}

type page struct {
	selected []*entry
	last     string // key of the last entry that was looked at
	more     bool   // entries are left to look at
}

func selectPage(entries []*entry, pred storage.SelectionPredicate) page {
	if pred.Limit <= 0 && pred.Empty() {
		return page{selected: entries}
	}
	var p page
	for _, e := range entries {
		if pred.Limit > 0 && int64(len(p.selected)) == pred.Limit {
			p.more = true
			break
		}
		p.last = e.key
		if selects(&pred, e) {
			p.selected = append(p.selected, e)
		}
	}
	return p
}

func selects(pred *storage.SelectionPredicate, e *entry) bool {
	if pred.Empty() {
		return true
	}
	if matches, err := pred.MatchesSharding(e.obj); err != nil || !matches {
		return false
	}
	return (pred.Label == nil || pred.Label.Matches(e.labels)) && (pred.Field == nil || pred.Field.Matches(e.fields))
}

// setItems copies the outermost struct of each object into the items of a list.
func setItems(listObj runtime.Object, entries []*entry) error {
	ptr, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return err
	}
	items, err := conversion.EnforcePtr(ptr)
	if err != nil {
		return err
	}
	if items.Kind() != reflect.Slice {
		return fmt.Errorf("the items of %T are a %s", listObj, items.Kind())
	}
	items.Set(reflect.MakeSlice(items.Type(), len(entries), len(entries)))
	for i, e := range entries {
		items.Index(i).Set(reflect.ValueOf(e.obj).Elem())
	}
	return nil
}

// setInto copies the outermost struct of obj into out.
func setInto(out, obj runtime.Object) error {
	v, err := conversion.EnforcePtr(out)
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(obj).Elem())
	return nil
}
