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

package storageclass

import (
	storagev1 "k8s.io/api/storage/v1"
)

const (
	virtDefaultAnnotation = "storageclass.kubevirt.io/is-default-virt-class"
	defaultAnnotation     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
)

// contentTypeArchive is the content type of a DataVolume for which CDI passes over the virt default.
const contentTypeArchive = "archive"

// FromStorageClass reads a StorageClass.
func FromStorageClass(class *storagev1.StorageClass) Class {
	return Class{
		Name:        class.Name,
		Created:     class.CreationTimestamp.Time,
		VirtDefault: class.Annotations[virtDefaultAnnotation] == "true",
		Default:     class.Annotations[defaultAnnotation] == "true",
		BetaDefault: class.Annotations[betaDefaultAnnotation] == "true",
	}
}

// Has is true if there is a class of that name.
func (c Classes) Has(name string) bool {
	for i := range c {
		if c[i].Name == name {
			return true
		}
	}
	return false
}

// CDIDefault is the class that CDI gives to a DataVolume with spec.storage that names none.
func (c Classes) CDIDefault(contentType string) (string, bool) {
	if contentType == contentTypeArchive {
		return c.newest(isDefault)
	}
	return c.newest(isVirtDefault, isDefault)
}

// KubernetesDefault is the class that Kubernetes gives to a claim that names none.
func (c Classes) KubernetesDefault() (string, bool) {
	return c.newest(func(class *Class) bool { return class.Default || class.BetaDefault })
}

// PoolDefault is the class that the pool chart gives to a pool that names none.
func (c Classes) PoolDefault() (string, bool) {
	return c.newest(isVirtDefault, isDefault, isBetaDefault)
}

func isVirtDefault(class *Class) bool { return class.VirtDefault }
func isDefault(class *Class) bool     { return class.Default }
func isBetaDefault(class *Class) bool { return class.BetaDefault }

// newest returns the newest class of the first kind that has any.
func (c Classes) newest(kinds ...func(*Class) bool) (string, bool) {
	for _, is := range kinds {
		var newest *Class
		for i := range c {
			if is(&c[i]) && (newest == nil || newer(&c[i], newest)) {
				newest = &c[i]
			}
		}
		if newest != nil {
			return newest.Name, true
		}
	}
	return "", false
}

// newer compares whole seconds, which is all that a creationTimestamp holds. Classes of the same second
// go by name.
func newer(a, b *Class) bool {
	if a, b := a.Created.Unix(), b.Created.Unix(); a != b {
		return a > b
	}
	return a.Name < b.Name
}
