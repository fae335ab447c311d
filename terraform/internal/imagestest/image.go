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

package imagestest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// made is when every image was made.
var made = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// Option changes an image.
type Option func(*v1alpha1.WorkerImage)

// Image returns an image that is ready, on the class replicated.
func Image(schematicID, version string, options ...Option) *v1alpha1.WorkerImage {
	name := "talos-worker-" + schematicID + "-" + version
	image := &v1alpha1.WorkerImage{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "WorkerImage"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(made), Generation: 1},
		Spec:       v1alpha1.WorkerImageSpec{SchematicID: schematicID, Version: version},
		Status: v1alpha1.WorkerImageStatus{
			StorageClass: &v1alpha1.StorageClassStatus{Effective: "replicated"},
		},
	}
	In(v1alpha1.WorkerImageReady, "Ready", "")(image)
	for _, option := range options {
		option(image)
	}
	return image
}

// In sets the phase, and the reason and message of the condition Ready.
func In(phase v1alpha1.WorkerImagePhase, reason, message string) Option {
	return func(image *v1alpha1.WorkerImage) {
		status := metav1.ConditionFalse
		if phase == v1alpha1.WorkerImageReady {
			status = metav1.ConditionTrue
		}
		image.Status.Phase = phase
		image.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(made),
		}}
	}
}

// Importing sets how far an import has come.
func Importing(percent int32) Option {
	return func(image *v1alpha1.WorkerImage) {
		In(v1alpha1.WorkerImageImporting, "Importing", "The image is being imported.")(image)
		image.Status.Progress = &percent
	}
}

// OnClass sets the class in effect.
func OnClass(name string) Option {
	return func(image *v1alpha1.WorkerImage) {
		image.Status.StorageClass = &v1alpha1.StorageClassStatus{Declared: &name, Effective: name}
	}
}
