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

package pool

import (
	"fmt"
	"strings"

	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	// diskPoolPrefix begins the release name of every tenant cluster.
	diskPoolPrefix = "kubernetes-"
	// defaultDiskSize is the pool chart's.
	defaultDiskSize = "20Gi"
	// substrateProxmox has no use for an image that CDI imports.
	substrateProxmox = "proxmox"

	// nameLimit is the longest name of an object, and the longest annotation that is looked at.
	nameLimit = 253
	// wordLimit bounds quantities and other short words.
	wordLimit = 128
)

// From reads a KubernetesNodes object. The platform's image is what a pool gets that pins none.
func From(object map[string]any, platform golden.ID) Pool {
	root := freeform.From(object)
	metadata, spec := root.Object("metadata"), root.Object("spec")
	pool := Pool{
		Namespace:         metadata.Text("namespace", nameLimit),
		Name:              metadata.Text("name", nameLimit),
		Cluster:           spec.Text("cluster", nameLimit),
		Selection:         selectionOf(spec, platform),
		StorageClass:      spec.Text("storageClass", nameLimit),
		DiskSize:          spec.Written("diskSize", wordLimit),
		KubernetesVersion: spec.Written("version", wordLimit),
		MinReplicas:       spec.Int32("minReplicas"),
		MaxReplicas:       spec.Int32("maxReplicas"),
	}
	if pool.DiskSize == "" {
		pool.DiskSize = defaultDiskSize
	}
	pool.DiskPool = diskPoolOf(pool.Name, pool.Cluster, spec.Text("clusterReleaseName", nameLimit))
	return pool
}

// diskPoolOf returns the release name of the cluster and the pool's part of its name. A wrapper may give
// the release another name.
func diskPoolOf(name, cluster, release string) string {
	if release == "" {
		return diskPoolPrefix + name
	}
	return release + "-" + strings.TrimPrefix(name, cluster+"-")
}

// selectionOf reads which image a pool asks for. A pool whose selection is invalid counts as a consumer of
// the image it names: one that is in doubt must not be deleted.
func selectionOf(spec freeform.Object, platform golden.ID) Selection {
	osImage := spec.Object("osImage")
	builtin, factory := osImage.Has("builtin"), osImage.Has("factory")
	var selection Selection
	if (builtin || factory) && spec.Text("substrate", wordLimit) == substrateProxmox {
		selection.Invalid = fmt.Sprintf("spec.osImage cannot be used with substrate %s", substrateProxmox)
	}
	if !builtin {
		return selection
	}

	selection.Consumes = true
	selection.Image = golden.ID{
		SchematicID: pinned(spec, "schematicID", platform.SchematicID),
		Version:     pinned(spec, "version", platform.Version),
	}
	switch {
	case selection.Invalid != "":
	case factory:
		selection.Invalid = "spec.osImage has both builtin and factory, and only one of them is allowed"
	default:
		selection.Invalid = invalidImage(selection.Image)
	}
	return selection
}

// pinned returns what the pool says, in its image or for all of Talos, else what the platform says.
func pinned(spec freeform.Object, key, platform string) string {
	for _, object := range []freeform.Object{
		spec.Object("osImage").Object("builtin"),
		spec.Object("talos"),
	} {
		if value := object.Written(key, nameLimit); value != "" {
			return value
		}
	}
	return platform
}

// invalidImage says why no golden can have the name of the image, nothing for a legal one.
func invalidImage(image golden.ID) string {
	if messages := golden.ValidateSchematicID(image.SchematicID); len(messages) > 0 {
		return fmt.Sprintf("schematicID %q is invalid: %s", image.SchematicID, strings.Join(messages, ", "))
	}
	if messages := golden.ValidateVersion(image.Version); len(messages) > 0 {
		return fmt.Sprintf("version %q is invalid: %s", image.Version, strings.Join(messages, ", "))
	}
	if _, ok := golden.ParseName(image.Name()); !ok {
		return "schematicID and version are too long for the name of an image"
	}
	return ""
}
