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

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// applier applies manifests of any kind on the server's side.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))}, nil
}

// apply applies the objects in order. A kind that is not served yet and a webhook that does not answer yet are waited for.
func (a *applier) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		what := fmt.Sprintf("%s %s", object.GetKind(), qualifiedName(object))
		var refused error
		err := await(ctx, what, func(ctx context.Context) error {
			err := a.applyOne(ctx, object)
			if err != nil && !mayPass(err) {
				refused = err
				return nil
			}
			return err
		})
		if err := errors.Join(refused, err); err != nil {
			return fmt.Errorf("apply %s: %w", what, err)
		}
	}
	return nil
}

func (a *applier) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := a.resource(object.GetAPIVersion(), object.GetKind(), object.GetNamespace())
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "stack", Force: true})
	return err
}

// get reads one object.
func (a *applier) get(ctx context.Context, apiVersion, kind, name string) (*unstructured.Unstructured, error) {
	resource, err := a.resource(apiVersion, kind, "")
	if err != nil {
		return nil, err
	}
	return resource.Get(ctx, name, metav1.GetOptions{})
}

func (a *applier) resource(apiVersion, kind, namespace string) (dynamic.ResourceInterface, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return a.client.Resource(mapping.Resource), nil
	}
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return a.client.Resource(mapping.Resource).Namespace(namespace), nil
}

// mayPass says whether an error is one of a stack that is still coming up.
func mayPass(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}

// readManifests reads a file of manifests, or those of a directory in the order of their names.
func readManifests(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return parseFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	}
	return parseAll(os.DirFS(path), "*.yaml")
}

// parseAll parses the files that match a pattern, in the order of their names.
func parseAll(files fs.FS, pattern string) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		parsed, err := parseFile(files, name)
		if err != nil {
			return nil, err
		}
		objects = append(objects, parsed...)
	}
	return objects, nil
}

func parseFile(files fs.FS, name string) ([]*unstructured.Unstructured, error) {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
