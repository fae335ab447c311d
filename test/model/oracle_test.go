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

package model

import (
	"context"
	"maps"
	"sync"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/apiserver"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

// oracle is what follows from the inputs as they are: what an inventory publishes that has just read them all, in
// the order of their names, and has no past.
type oracle struct {
	images, entries, options state
	parser                   parser
	err                      error
}

// ask returns an answer for the inputs of this moment.
func ask(in *inputs, p parser) (oracle, error) {
	out := oracle{images: state{}, entries: state{}, options: state{}, parser: p}
	inv := inventory.New(inventory.Config{
		Sources: inventory.Sources{
			DataVolumes: fixed(in.dataVolumes), Claims: fixed(in.claims), StorageClasses: fixed(in.classes),
			StorageProfiles: fixed(in.profiles), CDIs: fixed(in.cdis), Pools: fixed(in.pools), Catalog: fixed(in.configMaps),
		},
		GoldensNamespace: goldensNamespace,
		Platform:         platform,
		Catalog:          catalogName,
		CatalogKey:       catalogKey,
		Publisher:        &out,
		Clock:            clock.RealClock{},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { inv.Run(ctx) })
	synctest.Wait()
	cancel()
	running.Wait()
	return out, out.err
}

// fixed lists what a source holds, and nothing ever changes.
func fixed(s *source) cache.ListerWatcherWithContext {
	list := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, o := range s.all() {
		list.Items = append(list.Items, o)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			own := *list // whose items a reflector may take
			own.Items = append([]runtime.Object(nil), list.Items...)
			return &own, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewRaceFreeFake(), nil
		},
	}, listsOnly{}).(cache.ListerWatcherWithContext)
}

// listsOnly is a client without streaming lists.
type listsOnly struct{}

func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

// PublishImage implements inventory.Publisher.
func (o *oracle) PublishImage(name string, image *images.WorkerImage) error {
	if image == nil {
		delete(o.images, "/"+name)
		return nil
	}
	return o.add(o.images, image)
}

// PublishEntry implements inventory.Publisher.
func (o *oracle) PublishEntry(name string, entry *images.CatalogEntry) error {
	if entry == nil {
		delete(o.entries, "/"+name)
		return nil
	}
	return o.add(o.entries, entry)
}

// PublishOption implements inventory.Publisher.
func (o *oracle) PublishOption(option *images.Option) error { return o.add(o.options, option) }

// Ready implements inventory.Publisher.
func (o *oracle) Ready() {}

func (o *oracle) add(to state, obj runtime.Object) error {
	raw, err := runtime.Encode(apiserver.Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion), obj)
	if err != nil {
		o.err = err
		return err
	}
	parsed, err := o.parser.parse(raw)
	if err != nil {
		o.err = err
		return err
	}
	to[parsed.key()] = parsed.item
	return nil
}

// timeless is a state without what depends on when something was seen.
func (s state) timeless() state {
	out := maps.Clone(s)
	for key, it := range out {
		it.content = withoutTimes(it.content)
		out[key] = it
	}
	return out
}
