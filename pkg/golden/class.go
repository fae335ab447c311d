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

package golden

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// Class is the StorageClass of a golden.
type Class struct {
	// Declared is what the DataVolume says, Bound what its claim says: nil where it is silent, empty where
	// it asks for no class at all.
	Declared *string
	Bound    *string
	// Effective is the class that clones are compared with; empty if there is none.
	Effective string
	// FromDefault is true while nobody names a class and Effective is what a default would give today.
	FromDefault bool
	Problem     ClassProblem
}

// ClassProblem is why the claim of a golden gets no volume; empty if its class is no reason.
type ClassProblem string

const (
	// NoClass means that no class at all was asked for, which no default replaces.
	NoClass ClassProblem = "NoClass"
	// NoDefault means that no class is named and the cluster has no default to give.
	NoDefault ClassProblem = "NoDefault"
	// NotFound means that the class that is named does not exist, which no default replaces either.
	NotFound ClassProblem = "NotFound"
)

// ClassOf resolves the StorageClass of a golden. What was declared wins over what the claim is bound to,
// and that over what a default would give.
func ClassOf(dv *DataVolume, claim *Claim, classes storageclass.Classes) Class {
	own := OwnClaim(dv, claim)
	if dv == nil && own == nil {
		return Class{}
	}
	var class Class
	if dv != nil {
		class.Declared = dv.StorageClass
	}
	if own != nil {
		class.Bound = own.StorageClass
	}
	bound := own != nil && own.Phase == corev1.ClaimBound

	if name := firstNamed(class.Declared, class.Bound); name != "" {
		class.Effective = name
		if !bound && !classes.Has(name) {
			class.Problem = NotFound
		}
		return class
	}
	if class.Declared != nil || class.Bound != nil || bound {
		class.Problem = NoClass
		return class
	}
	return predicted(class, dv, own, classes)
}

// firstNamed returns the first name that is neither absent nor empty.
func firstNamed(names ...*string) string {
	for _, name := range names {
		if name != nil && *name != "" {
			return *name
		}
	}
	return ""
}

// predicted fills in the default that the claim will get. It is CDI that resolves spec.storage before it
// makes the claim, and Kubernetes that resolves a claim without a class.
func predicted(class Class, dv *DataVolume, own *Claim, classes storageclass.Classes) Class {
	switch {
	case own != nil || dv.Template == TemplatePVC:
		class.Effective, class.FromDefault = classes.KubernetesDefault()
	case dv.Template == TemplateStorage:
		class.Effective, class.FromDefault = classes.CDIDefault(dv.ContentType)
	default:
		return class
	}
	if !class.FromDefault {
		class.Problem = NoDefault
	}
	return class
}
