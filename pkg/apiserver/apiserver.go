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

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/record"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/backend"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/catalogreport"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/history"
	"github.com/cozystack/workerimage-apiserver/pkg/imagereport"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
	"github.com/cozystack/workerimage-apiserver/pkg/metrics"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/catalogentry"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/option"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/images/workerimage"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/precompressed"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

// Config is what a Server is made from.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	Extra   ExtraConfig
}

// ExtraConfig is the part of the configuration that is not the generic API server's.
type ExtraConfig struct {
	// Sources of the inventory: a cluster or a snapshot.
	Sources inventory.Sources
	// GoldensNamespace is where the goldens are.
	GoldensNamespace string
	// Platform is the image that a pool consumes which pins none.
	Platform golden.ID
	// DataVolumes and Claims write in the goldens' namespace.
	DataVolumes, Claims backend.Client
	// Catalog is the ConfigMap that holds the catalog, and CatalogKey its key.
	Catalog    types.NamespacedName
	CatalogKey string
	// Events records what became of the catalog; nil where nobody keeps Events.
	Events record.EventRecorder
	// GoldenEvents records what stands in the way of goldens, in their namespace; nil where nobody keeps Events.
	GoldenEvents imagereport.Events
	// Window is how many events each kind keeps, for watches that go on and for lists of the past;
	// memory.DefaultWindow if it is zero.
	Window int
	// SharedHistory has several replicas serve one history; nil where each serves its own.
	SharedHistory *SharedHistory
	// Background runs beside the server, each until its context is done.
	Background []func(context.Context)
}

// CompletedConfig cannot be made without Complete.
type CompletedConfig struct {
	generic genericapiserver.CompletedConfig
	extra   ExtraConfig
}

// Complete fills in what is not set.
func (c *Config) Complete() CompletedConfig {
	c.Generic.BuildHandlerChainFunc = func(api http.Handler, config *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(precompressed.Handler(api), config)
	}
	return CompletedConfig{generic: c.Generic.Complete(), extra: c.Extra}
}

// Server serves the images API.
type Server struct {
	Generic    *genericapiserver.GenericAPIServer
	background []func(context.Context)
	metrics    []basemetrics.Registerable
	collector  basemetrics.StableCollector
}

// New returns a Server that has not read anything yet.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New("workerimage-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	var inv *inventory.Inventory
	first := memory.FirstResourceVersion(time.Now(), identity())
	newLog := func(attributes storage.AttrFunc) *memory.Log {
		return memory.NewLog(memory.LogOptions{
			First:    first,
			Window:   c.extra.Window,
			Attrs:    attributes,
			Patience: c.extra.SharedHistory.patience(),
			NotReady: func() string { return notReady(inv) },
		})
	}
	logs := []*memory.Log{
		imageLog:  newLog(workerimage.Attributes),
		entryLog:  newLog(catalogentry.Attributes),
		optionLog: newLog(option.Attributes),
	}
	journal, recorder := history.NewJournal(first, logs...), metrics.NewRecorder()
	reporter := catalogreport.New(c.extra.Catalog, c.extra.Events)
	goldens := imagereport.New(c.extra.GoldenEvents, clock.RealClock{})
	inv = inventory.New(inventory.Config{
		Sources:          c.extra.Sources,
		GoldensNamespace: c.extra.GoldensNamespace,
		Platform:         c.extra.Platform,
		Catalog:          c.extra.Catalog,
		CatalogKey:       c.extra.CatalogKey,
		Publisher:        publisher{journal, recorder},
		ReportCatalog:    reporter.Report,
		ReportImage:      goldens.Report,
		Projected:        recorder.Projected,
		Clock:            clock.RealClock{},
	})
	writer := backend.New(backend.Config{
		DataVolumes: c.extra.DataVolumes,
		Claims:      c.extra.Claims,
		Namespace:   c.extra.GoldensNamespace,
		Plan:        planner(inv),
		Observer:    observer{inv, journal},
	})
	replicas := &replication{config: c.extra.SharedHistory, goldens: c.extra.GoldensNamespace, journal: journal}
	background := slices.Concat(c.extra.Background, []func(context.Context){inv.Run, goldens.Run, replicas.run})
	callers := view.New(view.Config{
		Authorizer:   recorder.Authorizer(c.generic.Authorization.Authorizer),
		PoolResource: inv.PoolResource,
		SeesAll:      replicas.isReplica,
	})
	if err := installAPIGroup(generic, logs, inv, writer, callers, recorder, c.extra.GoldensNamespace); err != nil {
		return nil, fmt.Errorf("install %s: %w", images.GroupName, err)
	}
	if err := generic.AddReadyzChecks(append(sourceChecks(inv), historyCheck(journal))...); err != nil {
		return nil, err
	}
	return &Server{
		Generic:    generic,
		background: background,
		metrics:    append(reporter.Metrics(), recorder.Metrics()...),
		collector: metrics.NewCollector(recorder, metrics.State{
			Sources: inv.Health,
			Work:    inv.Stats,
			Logs: map[string]func() memory.LogStats{
				"workerimages":   logs[imageLog].Stats,
				"catalogentries": logs[entryLog].Stats,
				"options":        logs[optionLog].Stats,
			},
			Certificate: func() []byte { return certificate(c.generic.SecureServing) },
		}),
	}, nil
}

func installAPIGroup(generic *genericapiserver.GenericAPIServer, logs []*memory.Log, inv *inventory.Inventory, writer *backend.Backend,
	callers *view.View, recorder *metrics.Recorder, goldens string) error {
	codec := Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)
	workerImages, err := workerimage.NewREST(workerimage.Config{
		Scheme: Scheme,
		Codec:  codec,
		Storage: memory.New(memory.Options{
			Log:      logs[imageLog],
			Backend:  writer,
			Resource: images.Resource("workerimages"),
			Prefix:   workerimage.KeyPrefix,
			NewFunc:  func() runtime.Object { return &images.WorkerImage{} },
		}),
		Plan:      planner(inv),
		Plannable: func() error { return plannable(inv) },
		Rehearser: writer,
		Observer:  recorder,
		View:      callers,
	})
	if err != nil {
		return err
	}
	catalogEntries, err := catalogentry.NewREST(Scheme, codec, memory.New(memory.Options{
		Log:      logs[entryLog],
		Resource: images.Resource("catalogentries"),
		Prefix:   catalogentry.KeyPrefix,
		NewFunc:  func() runtime.Object { return &images.CatalogEntry{} },
	}), callers)
	if err != nil {
		return err
	}
	options, err := option.NewREST(Scheme, codec, memory.New(memory.Options{
		Log:      logs[optionLog],
		Resource: images.Resource("options"),
		Prefix:   option.KeyPrefix,
		NewFunc:  func() runtime.Object { return &images.Option{} },
	}), goldens)
	if err != nil {
		return err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(images.GroupName, Scheme, metav1.ParameterCodec, Codecs)
	group.NegotiatedSerializer = negotiatedSerializer{Codecs}
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"workerimages":   workerImages,
		"catalogentries": catalogEntries,
		"options":        options,
	}
	return generic.InstallAPIGroup(&group)
}

// planner finds the catalog entry of a pair in what the inventory knows at that moment.
func planner(inv *inventory.Inventory) catalog.Planner {
	return func(id golden.ID) (catalog.Entry, field.ErrorList) {
		classes, _ := inv.Classes()
		return inv.Catalog().Plan(id, classes)
	}
}

// plannable returns why nothing can be created now.
func plannable(inv *inventory.Inventory) error {
	_, classes := inv.Classes()
	switch {
	case !inv.CatalogReadable():
		return apierrors.NewServiceUnavailable("the catalog cannot be read from the cluster now; try again")
	case !classes:
		return apierrors.NewServiceUnavailable("StorageClasses cannot be read from the cluster now; try again")
	}
	return nil
}

// identity tells this process from every other that serves the same API, so that their resourceVersions
// do not mix.
func identity() string {
	host, _ := os.Hostname()
	return host + "/" + uuid.NewString()
}

// Run serves until ctx is done, and returns when everything it started has ended. What is served stays up to date
// while requests are still let in and finished.
func (s *Server) Run(ctx context.Context) error {
	defer register(ctx, s.metrics, s.collector)()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	for _, run := range s.background {
		background.Go(func() { run(running) })
	}
	return s.Generic.PrepareRun().RunWithContext(ctx)
}
