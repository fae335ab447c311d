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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/internal/quantity"
)

// Reasons of a Verdict.
const (
	ReasonInvalidSelection     = "InvalidSelection"
	ReasonGoldenMissing        = "GoldenMissing"
	ReasonGoldenFailed         = "GoldenFailed"
	ReasonGoldenFailing        = "GoldenFailing"
	ReasonGoldenTerminating    = "GoldenTerminating"
	ReasonGoldenStateUnknown   = "GoldenStateUnknown"
	ReasonStorageClassMismatch = "StorageClassMismatch"
	ReasonDiskTooSmall         = "DiskTooSmall"
	ReasonStorageClassUnknown  = "StorageClassUnknown"
	ReasonGoldenSizeUnknown    = "GoldenSizeUnknown"
	ReasonGoldenImporting      = "GoldenImporting"
	ReasonHostAssistedCopy     = "HostAssistedCopy"
	ReasonStorageClassMatch    = "StorageClassMatch"
)

// strategyHostAssisted is the clone strategy with which CDI copies over the pod network.
const strategyHostAssisted = "copy"

// Image is what the rules read of the golden that a pool selects.
type Image struct {
	Exists           bool
	State            golden.State
	Class            string
	ClassFromDefault bool
	// Size that was asked for; empty if that is not known.
	Size string
	// Strategy is how CDI clones in the class; empty if that is not known.
	Strategy string
}

// Verdict answers whether the next worker of a pool can be cloned on the storage layer.
type Verdict struct {
	Cloneable metav1.ConditionStatus
	Reason    string
	Message   string
}

// Judge applies the rules in the order of their weight, and the first that has an answer wins. A definite no
// comes before what is not known.
func Judge(p Pool, class Class, image Image) Verdict {
	q := question{pool: p, class: class, image: image}
	for _, rule := range []rule{
		invalidSelection,
		goldenMissing,
		goldenFailed,
		goldenFailing,
		goldenTerminating,
		goldenStateUnknown,
		storageClassMismatch,
		diskTooSmall,
		storageClassUnknown,
		sizeUnknown,
		goldenImporting,
		hostAssistedCopy,
	} {
		if verdict := rule(q); verdict != nil {
			return *verdict
		}
	}
	return Verdict{Cloneable: metav1.ConditionTrue, Reason: ReasonStorageClassMatch}
}

// question is what a verdict is wanted on.
type question struct {
	pool  Pool
	class Class
	image Image
}

// rule returns its verdict, and nil if it has nothing to say.
type rule func(question) *Verdict

func invalidSelection(q question) *Verdict {
	if q.pool.Selection.Invalid == "" {
		return nil
	}
	return no(ReasonInvalidSelection, "The pool's image cannot be rendered: %s. Correct the pool.", q.pool.Selection.Invalid)
}

// goldenMissing holds as well for a pool that cloned the golden long ago: it has nothing to clone when it
// grows next.
func goldenMissing(q question) *Verdict {
	if q.image.Exists {
		return nil
	}
	return no(ReasonGoldenMissing, "There is no image %s. Create it, or select another in the pool.", q.name())
}

func goldenFailed(q question) *Verdict {
	state := q.image.State
	if state.Phase != images.WorkerImageFailed && state.Reason != golden.ReasonClaimLost {
		return nil
	}
	return no(ReasonGoldenFailed, "Image %s has failed and does not recover by itself. %s", q.name(), state.Message)
}

// goldenFailing holds through the tries in between, so that the answer does not change with each of them.
func goldenFailing(q question) *Verdict {
	if !q.image.State.Failing {
		return nil
	}
	return no(ReasonGoldenFailing, "The import of image %s keeps failing. %s", q.name(), q.image.State.Message)
}

func goldenTerminating(q question) *Verdict {
	if q.image.State.Phase != images.WorkerImageTerminating {
		return nil
	}
	return no(ReasonGoldenTerminating, "Image %s is being deleted. Create it again when it is gone, or select another in the pool.", q.name())
}

func goldenStateUnknown(q question) *Verdict {
	switch q.image.State.Phase {
	case images.WorkerImagePending, images.WorkerImageImporting, images.WorkerImageReady:
		return nil
	}
	return unknown(ReasonGoldenStateUnknown, "Where image %s stands is not known. %s", q.name(), q.image.State.Message)
}

// storageClassMismatch says nothing about a side that is not known.
func storageClassMismatch(q question) *Verdict {
	if q.class.Name == "" || q.image.Class == "" || q.class.Name == q.image.Class {
		return nil
	}
	return no(ReasonStorageClassMismatch, "The pool's disks are on StorageClass %s%s and image %s is on %s%s. "+
		"CDI clones on the storage layer only within one class: use the class of the image in the pool, or an image on the class of the pool.",
		q.class.Name, q.poolClassOrigin(), q.name(), q.image.Class, q.imageClassOrigin())
}

func (q question) poolClassOrigin() string {
	switch q.class.From {
	case images.StorageClassDefault:
		return " (the cluster's default)"
	case images.StorageClassClonedDisk:
		return " (that of the disks it has cloned)"
	}
	return ""
}

func (q question) imageClassOrigin() string {
	if q.image.ClassFromDefault {
		return " (the default it will get)"
	}
	return ""
}

// diskTooSmall says nothing about sizes that are not quantities.
func diskTooSmall(q question) *Verdict {
	disk, err := quantity.Parse(q.pool.DiskSize)
	if err != nil {
		return nil
	}
	size, err := quantity.Parse(q.image.Size)
	if err != nil || disk.Cmp(size) >= 0 {
		return nil
	}
	return no(ReasonDiskTooSmall, "The pool's diskSize %s is smaller than the %s of image %s. Raise diskSize to %s or more.",
		q.pool.DiskSize, q.image.Size, q.name(), q.image.Size)
}

func storageClassUnknown(q question) *Verdict {
	switch {
	case q.class.Name == "":
		return unknown(ReasonStorageClassUnknown, "The pool names no StorageClass and the cluster has no default. "+
			"Set storageClass in the pool, or mark a class as the default.")
	case q.image.Class == "":
		return unknown(ReasonStorageClassUnknown, "Which StorageClass image %s is on is not known. %s", q.name(), q.image.State.Message)
	}
	return nil
}

func sizeUnknown(q question) *Verdict {
	if _, err := quantity.Parse(q.pool.DiskSize); err != nil {
		return unknown(ReasonGoldenSizeUnknown, "The pool's diskSize %q is not a quantity, so it cannot be compared with the size of image %s. "+
			"Correct the pool.", q.pool.DiskSize, q.name())
	}
	if q.image.Size == "" {
		return unknown(ReasonGoldenSizeUnknown, "Neither the DataVolume nor the claim of image %s states a size, so it cannot be compared with "+
			"the pool's diskSize.", q.name())
	}
	if _, err := quantity.Parse(q.image.Size); err != nil {
		return unknown(ReasonGoldenSizeUnknown, "The size %q of image %s is not a quantity, so it cannot be compared with the pool's diskSize.",
			q.image.Size, q.name())
	}
	return nil
}

// goldenImporting is no obstacle: CDI holds a clone back until its source is filled.
func goldenImporting(q question) *Verdict {
	if q.image.State.Phase == images.WorkerImageReady {
		return nil
	}
	return &Verdict{Cloneable: metav1.ConditionTrue, Reason: ReasonGoldenImporting,
		Message: fmt.Sprintf("Image %s is not complete yet. A clone waits for it.", q.name())}
}

func hostAssistedCopy(q question) *Verdict {
	if q.image.Strategy != strategyHostAssisted {
		return nil
	}
	return no(ReasonHostAssistedCopy, "CDI copies within StorageClass %s over the pod network instead of cloning on the storage layer. "+
		"The worker boots, after a copy of image %s. An operator can change the clone strategy of the class.", q.class.Name, q.name())
}

// name is that of the golden, as the pool computes it.
func (q question) name() string {
	return q.pool.Selection.Image.Name()
}

func no(reason, format string, args ...any) *Verdict {
	return &Verdict{Cloneable: metav1.ConditionFalse, Reason: reason, Message: sentences(format, args...)}
}

func unknown(reason, format string, args ...any) *Verdict {
	return &Verdict{Cloneable: metav1.ConditionUnknown, Reason: reason, Message: sentences(format, args...)}
}

// sentences leaves no blank at the end where the last sentence is an empty one.
func sentences(format string, args ...any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}
