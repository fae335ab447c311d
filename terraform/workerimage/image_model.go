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

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/images"
)

// imageModel is an image as Terraform has it. What is not known is null.
type imageModel struct {
	Name              string            `tfsdk:"name"`
	SchematicID       string            `tfsdk:"schematic_id"`
	Version           string            `tfsdk:"version"`
	Labels            map[string]string `tfsdk:"labels"`
	Annotations       map[string]string `tfsdk:"annotations"`
	UID               string            `tfsdk:"uid"`
	CreationTimestamp string            `tfsdk:"creation_timestamp"`
	Status            statusModel       `tfsdk:"status"`
}

type statusModel struct {
	Phase         *string                   `tfsdk:"phase"`
	Ready         bool                      `tfsdk:"ready"`
	Progress      *int64                    `tfsdk:"progress"`
	DataVolume    *dataVolumeModel          `tfsdk:"data_volume"`
	Claim         *claimModel               `tfsdk:"claim"`
	SourceURL     *string                   `tfsdk:"source_url"`
	Storage       *storageModel             `tfsdk:"storage"`
	StorageClass  *storageClassModel        `tfsdk:"storage_class"`
	CloneStrategy *string                   `tfsdk:"clone_strategy"`
	Catalog       *catalogStatusModel       `tfsdk:"catalog"`
	Pools         []poolModel               `tfsdk:"pools"`
	PoolCount     int64                     `tfsdk:"pool_count"`
	Conditions    map[string]conditionModel `tfsdk:"conditions"`
}

type dataVolumeModel struct {
	Namespace    string  `tfsdk:"namespace"`
	Name         string  `tfsdk:"name"`
	Phase        *string `tfsdk:"phase"`
	RestartCount int64   `tfsdk:"restart_count"`
}

type claimModel struct {
	Name  string  `tfsdk:"name"`
	Phase *string `tfsdk:"phase"`
}

type storageModel struct {
	Requested   *string  `tfsdk:"requested"`
	Capacity    *string  `tfsdk:"capacity"`
	AccessModes []string `tfsdk:"access_modes"`
	VolumeMode  *string  `tfsdk:"volume_mode"`
}

type storageClassModel struct {
	Declared  *string `tfsdk:"declared"`
	Bound     *string `tfsdk:"bound"`
	Effective *string `tfsdk:"effective"`
}

type catalogStatusModel struct {
	Declared bool         `tfsdk:"declared"`
	Drift    []driftModel `tfsdk:"drift"`
}

type driftModel struct {
	Field   string `tfsdk:"field"`
	Catalog string `tfsdk:"catalog"`
	Live    string `tfsdk:"live"`
}

type poolModel struct {
	Namespace         string                 `tfsdk:"namespace"`
	Name              string                 `tfsdk:"name"`
	Cluster           *string                `tfsdk:"cluster"`
	MinReplicas       *int64                 `tfsdk:"min_replicas"`
	MaxReplicas       *int64                 `tfsdk:"max_replicas"`
	KubernetesVersion *string                `tfsdk:"kubernetes_version"`
	DiskSize          *string                `tfsdk:"disk_size"`
	StorageClass      *poolStorageClassModel `tfsdk:"storage_class"`
	Disks             disksModel             `tfsdk:"disks"`
	Cloneable         string                 `tfsdk:"cloneable"`
	Reason            *string                `tfsdk:"reason"`
	Message           *string                `tfsdk:"message"`
}

type poolStorageClassModel struct {
	Name *string `tfsdk:"name"`
	From string  `tfsdk:"from"`
}

type disksModel struct {
	Cloned  int64 `tfsdk:"cloned"`
	Cloning int64 `tfsdk:"cloning"`
	Failed  int64 `tfsdk:"failed"`
}

type conditionModel struct {
	Status             string  `tfsdk:"status"`
	Reason             string  `tfsdk:"reason"`
	Message            *string `tfsdk:"message"`
	LastTransitionTime string  `tfsdk:"last_transition_time"`
}

func newImageModel(image *v1alpha1.WorkerImage) imageModel {
	return imageModel{
		Name:              image.Name,
		SchematicID:       image.Spec.SchematicID,
		Version:           image.Spec.Version,
		Labels:            orEmpty(image.Labels),
		Annotations:       orEmpty(image.Annotations),
		UID:               string(image.UID),
		CreationTimestamp: rfc3339(image.CreationTimestamp),
		Status:            newStatusModel(image),
	}
}

func newStatusModel(image *v1alpha1.WorkerImage) statusModel {
	status := image.Status
	model := statusModel{
		Phase:         known(status.Phase),
		Ready:         images.Ready(image),
		Progress:      wide(status.Progress),
		CloneStrategy: known(status.CloneStrategy),
		Pools:         newPoolModels(status.Pools),
		PoolCount:     int64(status.PoolCount),
		Conditions:    newConditionModels(status.Conditions),
	}
	if dv := status.DataVolume; dv != nil {
		model.DataVolume = &dataVolumeModel{Namespace: dv.Namespace, Name: dv.Name, Phase: known(dv.Phase), RestartCount: int64(dv.RestartCount)}
	}
	if claim := status.Claim; claim != nil {
		model.Claim = &claimModel{Name: claim.Name, Phase: known(claim.Phase)}
	}
	if source := status.Source; source != nil {
		model.SourceURL = known(source.URL)
	}
	if storage := status.Storage; storage != nil {
		model.Storage = newStorageModel(storage)
	}
	if class := status.StorageClass; class != nil {
		model.StorageClass = &storageClassModel{Declared: class.Declared, Bound: class.Bound, Effective: known(class.Effective)}
	}
	if catalog := status.Catalog; catalog != nil {
		model.Catalog = newCatalogStatusModel(catalog)
	}
	return model
}

func newStorageModel(storage *v1alpha1.StorageStatus) *storageModel {
	model := &storageModel{
		Requested:   known(storage.Requested),
		Capacity:    known(storage.Capacity),
		AccessModes: []string{},
		VolumeMode:  known(storage.VolumeMode),
	}
	for _, mode := range storage.AccessModes {
		model.AccessModes = append(model.AccessModes, string(mode))
	}
	return model
}

func newCatalogStatusModel(catalog *v1alpha1.CatalogStatus) *catalogStatusModel {
	model := &catalogStatusModel{Declared: catalog.Declared, Drift: []driftModel{}}
	for _, drift := range catalog.Drift {
		model.Drift = append(model.Drift, driftModel{Field: drift.Field, Catalog: drift.Catalog, Live: drift.Live})
	}
	return model
}

func newPoolModels(pools []v1alpha1.PoolStatus) []poolModel {
	models := []poolModel{}
	for _, pool := range pools {
		model := poolModel{
			Namespace:         pool.Namespace,
			Name:              pool.Name,
			Cluster:           known(pool.Cluster),
			MinReplicas:       wide(pool.MinReplicas),
			MaxReplicas:       wide(pool.MaxReplicas),
			KubernetesVersion: known(pool.KubernetesVersion),
			DiskSize:          known(pool.DiskSize),
			Disks:             disksModel{Cloned: int64(pool.Disks.Cloned), Cloning: int64(pool.Disks.Cloning), Failed: int64(pool.Disks.Failed)},
			Cloneable:         string(pool.Cloneable),
			Reason:            known(pool.Reason),
			Message:           known(pool.Message),
		}
		if class := pool.StorageClass; class != nil {
			model.StorageClass = &poolStorageClassModel{Name: known(class.Name), From: string(class.From)}
		}
		models = append(models, model)
	}
	return models
}

func newConditionModels(conditions []metav1.Condition) map[string]conditionModel {
	models := map[string]conditionModel{}
	for _, condition := range conditions {
		models[condition.Type] = conditionModel{
			Status:             string(condition.Status),
			Reason:             condition.Reason,
			Message:            known(condition.Message),
			LastTransitionTime: rfc3339(condition.LastTransitionTime),
		}
	}
	return models
}

// known is null for the empty text, with which the API says that it does not know.
func known[S ~string](text S) *string {
	if text == "" {
		return nil
	}
	value := string(text)
	return &value
}

func wide(number *int32) *int64 {
	if number == nil {
		return nil
	}
	value := int64(*number)
	return &value
}

func rfc3339(moment metav1.Time) string {
	return moment.UTC().Format(time.RFC3339)
}

func orEmpty(texts map[string]string) map[string]string {
	if texts == nil {
		return map[string]string{}
	}
	return texts
}
