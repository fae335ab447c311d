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
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// DefaultGracePeriod is how long a source may fail before it counts as not readable.
const DefaultGracePeriod = 10 * time.Second

// Config is what an Inventory needs. All of it is required, except where it says otherwise.
type Config struct {
	Sources Sources
	// GoldensNamespace is where the goldens are.
	GoldensNamespace string
	// Platform is the image of a pool that pins none.
	Platform golden.ID
	// Catalog is the ConfigMap that holds the catalog, and CatalogKey its key.
	Catalog    types.NamespacedName
	CatalogKey string
	// Publisher receives the images, the catalog entries and the options.
	Publisher Publisher
	// ReportCatalog is told what became of the catalog, once for each content, from one goroutine. It may be
	// nil.
	ReportCatalog func(context.Context, CatalogReport)
	// ReportImage is told of each image that is published, from one goroutine. It may be nil.
	ReportImage func(context.Context, ImageReport)
	// Projected is told how long the projection of one name took, from one goroutine. It may be nil.
	Projected func(time.Duration)
	Clock     clock.WithTicker
	// GracePeriod is how long a source may fail before it counts as not readable; DefaultGracePeriod if
	// it is zero.
	GracePeriod time.Duration
}

// Publisher receives the objects as they change. All calls come from one goroutine. The objects are shared
// and must not be modified. After an error an object is published again within seconds.
type Publisher interface {
	// PublishImage makes image the current object of that name, or removes it where image is nil.
	PublishImage(name string, image *images.WorkerImage) error
	// PublishEntry is PublishImage for catalog entries.
	PublishEntry(name string, entry *images.CatalogEntry) error
	// PublishOption makes option the current one of its name. There are always the same.
	PublishOption(option *images.Option) error
	// Ready is called once, when everything that is there has been published or refused.
	Ready()
}

// ImageReport says what an image is now.
type ImageReport struct {
	// Name of the image, and Namespace and UID of its golden: of the DataVolume, or of the claim where only that is left.
	Name      string
	Namespace string
	UID       types.UID
	// Image is nil where there is none any more. It is shared and must not be modified.
	Image *images.WorkerImage
}

// Inventory keeps the images and the catalog entries up to date with the cluster.
type Inventory struct {
	clock   clock.WithTicker
	grace   time.Duration
	sources []*source
	worker  *worker
	// wake tells the worker that there may be something to do.
	wake chan struct{}
	// poolResource is the resource that serves the pools.
	poolResource func() schema.GroupVersionResource

	// mu guards the index, the statistics and what changes in the sources.
	mu    sync.Mutex
	index *index
	stats Stats
	// unpublished are the images that the worker has taken to project and has not published since.
	unpublished sets.Set[string]
	// progress is closed when a source or an image has moved on; nil while nobody waits for that.
	progress chan struct{}

	dataVolumes, claims, storageClasses, storageProfiles, cdis, pools, catalog *source
}

// New returns an Inventory that has not read anything yet.
func New(config Config) *Inventory {
	i := &Inventory{
		clock: config.Clock,
		grace: config.GracePeriod,
		wake:  make(chan struct{}, 1),
		index: newIndex(config.GoldensNamespace),

		unpublished: sets.New[string](),
	}
	if i.grace == 0 {
		i.grace = DefaultGracePeriod
	}
	i.worker = newWorker(i, config)
	i.poolResource = config.Sources.PoolResource

	slim, from := slimmer{
		goldensNamespace: config.GoldensNamespace,
		platform:         config.Platform,
		catalog:          config.Catalog,
		catalogKey:       config.CatalogKey,
	}, config.Sources
	i.dataVolumes = newSource(i, "datavolumes", from.DataVolumes, &i.index.dataVolumes, slim.dataVolume)
	i.claims = newSource(i, "persistentvolumeclaims", from.Claims, &i.index.claims, slim.claim)
	i.storageClasses = newSource(i, "storageclasses", from.StorageClasses, &i.index.classes, storageclass.FromStorageClass)
	i.storageProfiles = newSource(i, "storageprofiles", from.StorageProfiles, &i.index.profiles, slim.storageProfile)
	i.cdis = newSource(i, "cdis", from.CDIs, &i.index.cdis, slim.cdi)
	i.pools = newSource(i, "kubernetesnodes", from.Pools, &i.index.pools, slim.pool)
	i.catalog = newSource(i, "catalog", from.Catalog, &i.index.documents, slim.document)
	return i
}

// newSource adds a source of one kind to the Inventory.
func newSource[O metav1.Object, V comparable](i *Inventory, name string, lw cache.ListerWatcherWithContext, t *table[V], slim func(O) V) *source {
	s := &source{name: name, listerWatcher: lw, objects: func() int { return len(t.values) }}
	s.store = &store[O, V]{inventory: i, source: s, table: t, slim: slim}
	i.sources = append(i.sources, s)
	return s
}

// Run reads and publishes until ctx is done, and returns when everything that it started has ended. It
// runs once.
func (i *Inventory) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, s := range i.sources {
		running.Go(func() { i.follow(ctx, s) })
	}
	i.worker.run(ctx)
}

// PoolResource returns the resource that serves the pools. Its name is * while it is not known.
func (i *Inventory) PoolResource() schema.GroupVersionResource {
	if i.poolResource == nil {
		return unknownPoolResource
	}
	return i.poolResource()
}

// Health tells of each source how it is doing, in an order that never changes.
func (i *Inventory) Health() []SourceHealth {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]SourceHealth, 0, len(i.sources))
	for _, s := range i.sources {
		h := s.health()
		h.Malformed = s == i.catalog && i.index.malformed()
		out = append(out, h)
	}
	return out
}

// Stats returns how much work was done so far.
func (i *Inventory) Stats() Stats {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stats
}

// notify wakes the worker. Changes that come before it is awake are one.
func (i *Inventory) notify() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// changes returns the images to project again, once all that decides which images there are has been read,
// and when the readability of a source will change by itself.
func (i *Inventory) changes(ctx context.Context, now time.Time) (names []string, complete bool, next time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	next = i.refreshReadable(ctx, now)
	if !i.complete() {
		return nil, false, next
	}
	names = i.index.takeDirty()
	i.unpublished.Insert(names...)
	return names, true, next
}

// complete is true once an answer from what is known is not a lie. Names come from DataVolumes and
// claims, so both must have been read; everything else may be missing, and is then said to be missing.
func (i *Inventory) complete() bool {
	for _, s := range i.sources {
		if !s.settled() {
			return false
		}
	}
	return i.dataVolumes.synced && i.claims.synced
}

// image returns the inputs of the projection of an image, and counts it as projected.
func (i *Inventory) image(name string) (projection.Image, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	image, ok := i.index.image(name)
	if ok {
		image.Sources = i.readable()
		i.stats.Projections++
	}
	return image, ok
}

func (i *Inventory) count(what func(*Stats)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	what(&i.stats)
}

func (i *Inventory) readable() projection.Sources {
	return projection.Sources{
		DataVolumes:     i.dataVolumes.readable,
		Claims:          i.claims.readable,
		StorageClasses:  i.storageClasses.readable,
		StorageProfiles: i.storageProfiles.readable && i.cdis.readable,
		Pools:           i.pools.readable,
		Catalog:         i.catalogReadable(),
	}
}
