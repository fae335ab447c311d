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
	"context"
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const goldensNamespace = "cozy-public"

// tenants have a namespace, a user and a group of that name each.
var tenants = []string{"tenant-a", "tenant-b", "tenant-c"}

// manifests are the platform the server finds: CDI's configuration, storage, the pool kind, namespaces and their users.
//
//go:embed manifests
var manifests embed.FS

// install applies CDI's CRDs and roles and the platform's manifests.
func (c *Cluster) install(ctx context.Context) error {
	if err := c.applier.apply(ctx, namespace("cdi")); err != nil {
		return err
	}
	objects, err := readManifests(c.options.Binaries.CDIManifests)
	if err != nil {
		return err
	}
	platform, err := parseAll(manifests, "manifests/*.yaml")
	if err != nil {
		return err
	}
	var kinds []*unstructured.Unstructured
	for _, object := range append(objects, platform...) {
		if isWebhookConfiguration(object) || c.options.KindsOnly && isActedOn(object) {
			continue
		}
		if err := c.applier.apply(ctx, object); err != nil {
			return err
		}
		if object.GetKind() == "CustomResourceDefinition" {
			kinds = append(kinds, object)
		}
	}
	for _, kind := range kinds {
		if err := c.awaitCondition(ctx, kind, "Established"); err != nil {
			return err
		}
	}
	return nil
}

// isActedOn is true for objects that only controllers, CDI and the node look at.
func isActedOn(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "CDI", "CSIDriver", "StorageClass":
		return true
	}
	return false
}

// awaitCondition waits until a condition of a cluster-scoped object is True.
func (c *Cluster) awaitCondition(ctx context.Context, object *unstructured.Unstructured, condition string) error {
	what := fmt.Sprintf("%s %s to be %s", object.GetKind(), object.GetName(), condition)
	return await(ctx, what, func(ctx context.Context) error {
		current, err := c.applier.get(ctx, object.GetAPIVersion(), object.GetKind(), object.GetName())
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(current.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, entry := range conditions {
			if entry, ok := entry.(map[string]any); ok && entry["type"] == condition {
				if entry["status"] == "True" {
					return nil
				}
				return fmt.Errorf("%v: %v", entry["reason"], entry["message"])
			}
		}
		return fmt.Errorf("no condition %s", condition)
	})
}

func namespace(name string) *unstructured.Unstructured {
	return object("v1", "Namespace", "", name, nil)
}

// object returns an object with the given top-level fields.
func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func qualifiedName(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
