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

package workerimage

import "github.com/hashicorp/terraform-plugin-framework/types"

var stringList = types.ListType{ElemType: types.StringType}

// metadataAttributes are those of an image that nobody chooses.
func metadataAttributes() []computed {
	return []computed{
		{name: "uid", value: types.StringType, description: "Identifies this image among all that ever had its name."},
		{name: "creation_timestamp", value: types.StringType, description: "When the image was made, in RFC 3339."},
	}
}

// imageAttributes are all attributes of an image, where it is one of several.
func imageAttributes() []computed {
	return append([]computed{
		{name: "name", value: types.StringType, description: "Name of the image: `talos-worker-<schematic_id>-<version>`."},
		{name: "schematic_id", value: types.StringType, description: "Id of the Image Factory schematic, or the name a mirror gives it."},
		{name: "version", value: types.StringType, description: "The full Talos release, such as `v1.13.6`."},
		{name: "labels", value: types.MapType{ElemType: types.StringType}, description: "Labels of the image."},
		{name: "annotations", value: types.MapType{ElemType: types.StringType}, description: "Annotations of the image."},
		imageStatus(),
	}, metadataAttributes()...)
}

func imageStatus() computed {
	return computed{
		name:        "status",
		description: "What the cluster says about the image. It moves by itself: an output or an argument made from it differs from plan to plan while an image is being imported.",
		fields: []computed{
			{name: "phase", value: types.StringType, description: "`Pending`, `Importing`, `Ready`, `Failed`, `Terminating` or `Unknown`. There may be others one day."},
			{name: "ready", value: types.BoolType, description: "Whether the image is complete and can be cloned."},
			{name: "progress", value: types.Int64Type, description: "How much of the import is done, in percent. Null while it is not known."},
			{name: "data_volume", description: "The CDI DataVolume that holds the image. Null where only its claim is left.", fields: []computed{
				{name: "namespace", value: types.StringType, description: "Its namespace."},
				{name: "name", value: types.StringType, description: "Its name."},
				{name: "phase", value: types.StringType, description: "Its phase, in CDI's own word. Null while CDI has said nothing."},
				{name: "restart_count", value: types.Int64Type, description: "How often the importer was restarted."},
			}},
			{name: "claim", description: "The PersistentVolumeClaim that holds the image. Null while there is none.", fields: []computed{
				{name: "name", value: types.StringType, description: "Its name."},
				{name: "phase", value: types.StringType, description: "`Pending`, `Bound` or `Lost`."},
			}},
			{name: "source_url", value: types.StringType, description: "Where the image was imported from. Credentials are left out."},
			{name: "storage", description: "Size and shape of the volume.", fields: []computed{
				{name: "requested", value: types.StringType, description: "The size that is asked for, as a quantity."},
				{name: "capacity", value: types.StringType, description: "The size of the bound volume, as a quantity."},
				{name: "access_modes", value: stringList, description: "Access modes of the claim."},
				{name: "volume_mode", value: types.StringType, description: "`Block` or `Filesystem`."},
			}},
			{name: "storage_class", description: "The StorageClass that was asked for, and the one in effect.", fields: []computed{
				{name: "declared", value: types.StringType, description: "What the DataVolume names. Null where it names none; empty where it asks for none at all."},
				{name: "bound", value: types.StringType, description: "What the claim says."},
				{name: "effective", value: types.StringType, description: "The class that clones are compared with: the declared one, else the bound one, else the one that is predicted."},
			}},
			{name: "clone_strategy", value: types.StringType, description: "What CDI does for a clone within the class: `csi-clone`, `snapshot` or `copy`. Null while it is not known."},
			{name: "catalog", description: "The image compared with the operator's catalog. Null while the catalog cannot be read.", fields: []computed{
				{name: "declared", value: types.BoolType, description: "Whether the catalog has an entry for the image."},
				{name: "drift", many: true, description: "The fields in which the image differs from its entry.", fields: []computed{
					{name: "field", value: types.StringType, description: "Field of the entry."},
					{name: "catalog", value: types.StringType, description: "What the catalog declares."},
					{name: "live", value: types.StringType, description: "What the image has."},
				}},
			}},
			poolsAttribute(),
			{name: "pool_count", value: types.Int64Type, description: "The number of pools listed."},
			conditionsAttribute("Conditions by type: `Ready`, `InUse`, `Deletable` and `CatalogSynced`."),
		},
	}
}

func poolsAttribute() computed {
	return computed{name: "pools", many: true, description: "The node pools that ask for the image, as far as the credentials may see them, by namespace and name.", fields: []computed{
		{name: "namespace", value: types.StringType, description: "Namespace of the KubernetesNodes object."},
		{name: "name", value: types.StringType, description: "Its name."},
		{name: "cluster", value: types.StringType, description: "The cluster that the pool belongs to."},
		{name: "min_replicas", value: types.Int64Type, description: "What the pool declares. A pool at zero needs its image all the same."},
		{name: "max_replicas", value: types.Int64Type, description: "What the pool declares."},
		{name: "kubernetes_version", value: types.StringType, description: "What the pool declares, such as `v1.35`."},
		{name: "disk_size", value: types.StringType, description: "Size of a worker's disk, as a quantity."},
		{name: "storage_class", description: "The class that the next worker's disk is made with.", fields: []computed{
			{name: "name", value: types.StringType, description: "Name of the StorageClass. Null where none could be determined."},
			{name: "from", value: types.StringType, description: "How it was determined: `Declared`, `ClonedDisk` or `Default`."},
		}},
		{name: "disks", description: "Worker disks that are clones of the image.", fields: []computed{
			{name: "cloned", value: types.Int64Type, description: "Complete, and independent of the image."},
			{name: "cloning", value: types.Int64Type, description: "Not complete yet."},
			{name: "failed", value: types.Int64Type, description: "Failed."},
		}},
		{name: "cloneable", value: types.StringType, description: "Whether the next worker can be cloned on the storage layer: `True`, `False` or `Unknown`."},
		{name: "reason", value: types.StringType, description: "Why, in one word."},
		{name: "message", value: types.StringType, description: "What is wrong and what can be done. Null where nothing is."},
	}}
}

func conditionsAttribute(description string) computed {
	return computed{name: "conditions", keyed: true, description: description, fields: []computed{
		{name: "status", value: types.StringType, description: "`True`, `False` or `Unknown`."},
		{name: "reason", value: types.StringType, description: "Why, in one word."},
		{name: "message", value: types.StringType, description: "Why, and what can be done."},
		{name: "last_transition_time", value: types.StringType, description: "When the status became what it is, in RFC 3339."},
	}}
}
