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
		Selection:         selectionOf(object, platform),
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
// the image it names: an image in doubt must not be deleted.
func selectionOf(object map[string]any, platform golden.ID) Selection {
	var malformed []string
	spec := freeform.Recording(object, &malformed).Object("spec")
	osImage := spec.Object("osImage")
	builtin, factory := osImage.Has("builtin"), osImage.Has("factory")

	selection := Selection{Consumes: builtin}
	if builtin {
		pins := []freeform.Object{osImage.Object("builtin"), spec.Object("talos")}
		selection.Image = golden.ID{
			SchematicID: pinned("schematicID", pins, platform.SchematicID),
			Version:     pinned("version", pins, platform.Version),
		}
	}
	switch {
	case (builtin || factory) && spec.Text("substrate", wordLimit) == substrateProxmox:
		selection.Invalid = fmt.Sprintf("spec.osImage cannot be used with substrate %s", substrateProxmox)
	case builtin && factory:
		selection.Invalid = "spec.osImage has both builtin and factory, and only one of them is allowed"
	case len(malformed) > 0:
		selection.Invalid = fmt.Sprintf("%s is of the wrong type", malformed[0])
	case builtin:
		selection.Invalid = invalidImage(selection.Image)
	}
	return selection
}

// pinned returns what the first of the pool's own blocks says that says anything, else what the platform
// says.
func pinned(key string, pins []freeform.Object, platform string) string {
	for _, pin := range pins {
		if value := pin.Written(key, nameLimit); value != "" {
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
