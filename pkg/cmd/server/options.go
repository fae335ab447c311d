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

package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/apiserver"
	generatedopenapi "github.com/cozystack/workerimage-apiserver/pkg/generated/openapi"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

const (
	defaultGoldensNamespace = "cozy-public"
	defaultCatalog          = "cozy-public/worker-image-catalog"
	defaultCatalogKey       = "catalog.yaml"
	// defaultSchematicID and defaultVersion are what the pool chart falls back to for a pool that pins no
	// image.
	defaultSchematicID = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
	defaultVersion     = "v1.13.6"

	defaultServingValidity = 365 * 24 * time.Hour
)

// Options are the flags of the server.
type Options struct {
	Recommended *genericoptions.RecommendedOptions
	Logs        *logs.Options
	Images      *ImagesOptions
	Serving     *ServingOptions
	History     *HistoryOptions
	Snapshot    *SnapshotOptions
}

// ImagesOptions say where goldens and their catalog are and what pools fall back to.
type ImagesOptions struct {
	GoldensNamespace string
	// Catalog is the namespace and the name of a ConfigMap.
	Catalog    string
	CatalogKey string
	Platform   golden.ID
}

// NewOptions returns the default options.
func NewOptions() *Options {
	recommended := genericoptions.NewRecommendedOptions("", nil)
	recommended.Etcd = nil // nothing is kept
	recommended.ExtraAdmissionInitializers = func(config *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
		return nil, disableUnservedPlugins(recommended.Admission, config)
	}
	return &Options{
		Recommended: recommended,
		Logs:        logs.NewOptions(),
		Images: &ImagesOptions{
			GoldensNamespace: defaultGoldensNamespace,
			Catalog:          defaultCatalog,
			CatalogKey:       defaultCatalogKey,
			Platform:         golden.ID{SchematicID: defaultSchematicID, Version: defaultVersion},
		},
		Serving:  &ServingOptions{Validity: defaultServingValidity},
		History:  &HistoryOptions{},
		Snapshot: &SnapshotOptions{},
	}
}

// Flags returns all flags, in the sections that the help shows.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	fs := sets.FlagSet("images")
	fs.StringVar(&o.Images.GoldensNamespace, "goldens-namespace", o.Images.GoldensNamespace,
		"Namespace of the DataVolumes that are goldens.")
	fs.StringVar(&o.Images.Catalog, "catalog", o.Images.Catalog,
		"ConfigMap that declares which images may exist, as NAMESPACE/NAME. It need not be there.")
	fs.StringVar(&o.Images.CatalogKey, "catalog-key", o.Images.CatalogKey,
		"Key of the ConfigMap that holds the catalog.")
	fs.StringVar(&o.Images.Platform.SchematicID, "default-schematic-id", o.Images.Platform.SchematicID,
		"Schematic id that a pool consumes which pins none.")
	fs.StringVar(&o.Images.Platform.Version, "default-talos-version", o.Images.Platform.Version,
		"Talos version that a pool consumes which pins none.")
	o.History.AddFlags(sets.FlagSet("history"))
	o.Snapshot.AddFlags(sets.FlagSet("snapshot"))
	o.Recommended.CoreAPI.AddFlags(sets.FlagSet("cluster"))
	o.Recommended.SecureServing.AddFlags(sets.FlagSet("secure serving"))
	o.Serving.AddFlags(sets.FlagSet("secure serving"))
	o.Recommended.Authentication.AddFlags(sets.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(sets.FlagSet("authorization"))
	o.Recommended.Audit.AddFlags(sets.FlagSet("auditing"))
	o.Recommended.Admission.AddFlags(sets.FlagSet("admission"))
	o.Recommended.Features.AddFlags(sets.FlagSet("features"))
	o.Recommended.EgressSelector.AddFlags(sets.FlagSet("egress selector"))
	o.Recommended.Traces.AddFlags(sets.FlagSet("traces"))
	utilfeature.DefaultMutableFeatureGate.AddFlag(sets.FlagSet("features"))
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	return sets
}

// Complete fills in what follows from other options.
func (o *Options) Complete() error {
	if o.Snapshot.Enabled() {
		return o.Snapshot.complete(o.Recommended)
	}
	return nil
}

// Validate returns every fault in the options.
func (o *Options) Validate() error {
	errs := o.Recommended.Validate()
	for _, err := range slices.Concat(o.Images.validate(), o.Serving.validate(o.Recommended, o.Snapshot.Enabled()), o.History.validate()) {
		errs = append(errs, err)
	}
	errs = append(errs, o.Snapshot.validate(o.Recommended)...)
	return utilerrors.NewAggregate(errs)
}

func (o *ImagesOptions) validate() field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Label(o.GoldensNamespace) {
		errs = append(errs, field.Invalid(field.NewPath("--goldens-namespace"), o.GoldensNamespace, message))
	}
	for _, message := range validateObjectName(o.Catalog) {
		errs = append(errs, field.Invalid(field.NewPath("--catalog"), o.Catalog, message))
	}
	for _, message := range validation.IsConfigMapKey(o.CatalogKey) {
		errs = append(errs, field.Invalid(field.NewPath("--catalog-key"), o.CatalogKey, message))
	}
	for _, message := range golden.ValidateSchematicID(o.Platform.SchematicID) {
		errs = append(errs, field.Invalid(field.NewPath("--default-schematic-id"), o.Platform.SchematicID, message))
	}
	for _, message := range golden.ValidateVersion(o.Platform.Version) {
		errs = append(errs, field.Invalid(field.NewPath("--default-talos-version"), o.Platform.Version, message))
	}
	return errs
}

// validateObjectName returns what is wrong with a NAMESPACE/NAME.
func validateObjectName(text string) []string {
	name := objectName(text)
	if name.Namespace == "" {
		return []string{"must be NAMESPACE/NAME"}
	}
	return append(validation.IsDNS1123Label(name.Namespace), validation.IsDNS1123Subdomain(name.Name)...)
}

// objectName splits a NAMESPACE/NAME.
func objectName(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Config returns the configuration of the server. What it starts ends with ctx.
func (o *Options) Config(ctx context.Context) (*apiserver.Config, error) {
	if err := o.Serving.prepare(o.Recommended.SecureServing); err != nil {
		return nil, err
	}
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapi.NewDefinitionNamer(apiserver.Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Cozystack worker images"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = generic.OpenAPIConfig.Info.Title
	if err := o.Recommended.ApplyTo(generic); err != nil {
		return nil, err
	}
	if err := o.Serving.applyTo(generic); err != nil {
		return nil, err
	}
	awaitAuthorities(&generic.Config)

	config := &apiserver.Config{
		Generic: generic,
		Extra: apiserver.ExtraConfig{
			GoldensNamespace: o.Images.GoldensNamespace,
			Platform:         o.Images.Platform,
			Catalog:          objectName(o.Images.Catalog),
			CatalogKey:       o.Images.CatalogKey,
		},
	}
	if o.Snapshot.Enabled() {
		return config, o.Snapshot.applyTo(ctx, config)
	}
	return config, o.connect(ctx, config)
}

// connect lets the server read from and write to the cluster that the configuration names.
func (o *Options) connect(ctx context.Context, config *apiserver.Config) error {
	if config.Generic.ClientConfig == nil {
		return errors.New("no cluster to read from: give --kubeconfig, run in a pod, or use --snapshot")
	}
	// Requests are limited where they come in, here and in the cluster. A limit in between would have the users
	// of this server wait for each other.
	client := rest.CopyConfig(config.Generic.ClientConfig)
	client.QPS = -1
	kube, err := kubernetes.NewForConfig(client)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(client)
	if err != nil {
		return err
	}
	config.Extra.Sources = inventory.NewClusterSources(kube, dyn, config.Extra.Catalog)
	config.Extra.SharedHistory = o.History.share(client, kube, dyn)
	namespace := config.Extra.GoldensNamespace
	config.Extra.DataVolumes = dyn.Resource(cdiv1.SchemeGroupVersion.WithResource("datavolumes")).Namespace(namespace)
	config.Extra.Claims = dyn.Resource(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")).Namespace(namespace)

	// A context that never ends leaves the shutdown to the server, which waits for it.
	events := record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	config.Extra.Events = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "workerimage-apiserver"})
	config.Extra.GoldenEvents = kube.CoreV1().Events(namespace)
	config.Extra.Background = append(config.Extra.Background, func(ctx context.Context) {
		<-ctx.Done()
		events.Shutdown()
	})
	return nil
}
