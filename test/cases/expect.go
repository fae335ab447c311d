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

package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

// Checkpoint is what get must answer once the events up to After are applied, and nothing else.
type Checkpoint struct {
	After int `json:"after"`
	// WorkerImage that must exist and be as Expect says. It is empty when Absent must not exist.
	WorkerImage string `json:"workerImage"`
	Absent      string `json:"absent"`
	// Optional is true when WorkerImage may be absent.
	Optional bool   `json:"optional"`
	Expect   Expect `json:"expect"`
}

// Expect holds what fields of a WorkerImage must be. A field that is nil is not asserted.
type Expect struct {
	Phase            OneOf[string]           `json:"phase"`
	Progress         OneOf[int32]            `json:"progress"`
	Ready            ExpectReady             `json:"ready"`
	RestartCount     OneOf[int32]            `json:"restartCount"`
	DataVolume       OneOf[ExpectDataVolume] `json:"dataVolume"`
	ClaimPhase       OneOf[string]           `json:"claimPhase"`
	StorageClass     ExpectStorageClass      `json:"storageClass"`
	CloneStrategy    OneOf[string]           `json:"cloneStrategy"`
	InUse            OneOf[string]           `json:"inUse"`
	Disks            OneOf[Disks]            `json:"disks"`
	PoolStorageClass OneOf[PoolClass]        `json:"poolStorageClass"`
	PoolCloneable    OneOf[string]           `json:"poolCloneable"`
	PoolReason       OneOf[string]           `json:"poolReason"`
}

// ExpectReady is about the condition Ready.
type ExpectReady struct {
	Status OneOf[string] `json:"status"`
	Reason OneOf[string] `json:"reason"`
	// MessageContains is a part of the message.
	MessageContains string `json:"messageContains"`
}

// ExpectDataVolume is about a status.dataVolume that is there.
type ExpectDataVolume struct {
	Phase OneOf[string] `json:"phase"`
}

// ExpectStorageClass is about status.storageClass.
type ExpectStorageClass struct {
	Declared  OneOf[string] `json:"declared"`
	Bound     OneOf[string] `json:"bound"`
	Effective OneOf[string] `json:"effective"`
}

// Disks counts worker disks. What is left out is 0.
type Disks struct {
	Cloned  int32 `json:"cloned"`
	Cloning int32 `json:"cloning"`
	Failed  int32 `json:"failed"`
}

// PoolClass is the class of a pool and what it was learned from.
type PoolClass struct {
	Name string `json:"name"`
	From string `json:"from"`
}

// OneOf lists the alternatives that are right; nil is the alternative of being absent. An empty list
// asserts nothing.
type OneOf[T any] []*T

// UnmarshalJSON reads a value, null, or a list of these.
func (o *OneOf[T]) UnmarshalJSON(data []byte) error {
	alternatives := []json.RawMessage{data}
	if bytes.HasPrefix(data, []byte("[")) {
		if err := json.Unmarshal(data, &alternatives); err != nil {
			return err
		}
	}
	if len(alternatives) == 0 {
		return errors.New("an empty list of alternatives")
	}
	for _, alternative := range alternatives {
		decoder := json.NewDecoder(bytes.NewReader(alternative))
		decoder.DisallowUnknownFields()
		var value *T
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		*o = append(*o, value)
	}
	return nil
}

// Name of the WorkerImage that the checkpoint is about.
func (c *Checkpoint) Name() string {
	return c.WorkerImage + c.Absent
}

// Check returns how image differs from what is expected. image is nil if there is none of that name. pool
// is the pool of the case, or nil.
func (c *Checkpoint) Check(image *v1alpha1.WorkerImage, pool *PoolRef) []string {
	switch {
	case c.Absent != "" && image != nil:
		return []string{fmt.Sprintf("%s exists", c.Absent)}
	case c.WorkerImage != "" && image == nil && !c.Optional:
		return []string{fmt.Sprintf("%s does not exist", c.WorkerImage)}
	case image == nil:
		return nil
	}
	return c.Expect.check(image, pool)
}

func (e *Expect) check(image *v1alpha1.WorkerImage, pool *PoolRef) []string {
	var d differences
	status := &image.Status
	compare(&d, "phase", e.Phase, text(status.Phase))
	compare(&d, "progress", e.Progress, status.Progress)
	compare(&d, "restartCount", e.RestartCount, ptr.To(restartCount(status)))
	e.checkDataVolume(&d, status.DataVolume)
	compare(&d, "claimPhase", e.ClaimPhase, claimPhase(status.Claim))
	compare(&d, "cloneStrategy", e.CloneStrategy, text(status.CloneStrategy))
	e.checkConditions(&d, status.Conditions)
	e.checkStorageClass(&d, status.StorageClass)
	e.checkPool(&d, poolOf(status, pool))
	return d
}

func (e *Expect) checkConditions(d *differences, conditions []metav1.Condition) {
	ready := conditionOf(conditions, v1alpha1.ConditionReady)
	compare(d, "ready.status", e.Ready.Status, text(ready.Status))
	compare(d, "ready.reason", e.Ready.Reason, text(ready.Reason))
	if part := e.Ready.MessageContains; !strings.Contains(ready.Message, part) {
		d.add("ready.message", fmt.Sprintf("a message with %q", part), ready.Message)
	}
	compare(d, "inUse", e.InUse, text(conditionOf(conditions, v1alpha1.ConditionInUse).Status))
}

func (e *Expect) checkDataVolume(d *differences, dv *v1alpha1.DataVolumeStatus) {
	if len(e.DataVolume) == 0 {
		return
	}
	matches := func(want *ExpectDataVolume) bool {
		if want == nil || dv == nil {
			return want == nil && dv == nil
		}
		return want.Phase.includes(text(dv.Phase))
	}
	if slices.ContainsFunc(e.DataVolume, matches) {
		return
	}
	d.add("dataVolume", describe(e.DataVolume), describeOne(dv))
}

func (e *Expect) checkStorageClass(d *differences, class *v1alpha1.StorageClassStatus) {
	if class == nil {
		class = &v1alpha1.StorageClassStatus{}
	}
	compare(d, "storageClass.declared", e.StorageClass.Declared, class.Declared)
	compare(d, "storageClass.bound", e.StorageClass.Bound, class.Bound)
	compare(d, "storageClass.effective", e.StorageClass.Effective, text(class.Effective))
}

func (e *Expect) checkPool(d *differences, pool *v1alpha1.PoolStatus) {
	if pool == nil {
		pool = &v1alpha1.PoolStatus{}
	}
	compare(d, "disks", e.Disks, &Disks{pool.Disks.Cloned, pool.Disks.Cloning, pool.Disks.Failed})
	var class *PoolClass
	if c := pool.StorageClass; c != nil {
		class = &PoolClass{Name: c.Name, From: string(c.From)}
	}
	compare(d, "poolStorageClass", e.PoolStorageClass, class)
	compare(d, "poolCloneable", e.PoolCloneable, text(pool.Cloneable))
	compare(d, "poolReason", e.PoolReason, text(pool.Reason))
}

// differences between what is expected and what is there, one a line.
type differences []string

func (d *differences) add(key, want, got string) {
	*d = append(*d, fmt.Sprintf("%s: want %s, got %s", key, want, got))
}

func compare[T comparable](d *differences, key string, want OneOf[T], got *T) {
	if len(want) > 0 && !want.includes(got) {
		d.add(key, describe(want), describeOne(got))
	}
}

// includes is true if got is one of the alternatives, and if there are none.
func (o OneOf[T]) includes(got *T) bool {
	return len(o) == 0 || slices.ContainsFunc(o, func(want *T) bool {
		if want == nil || got == nil {
			return want == nil && got == nil
		}
		return any(*want) == any(*got)
	})
}

func describe[T any](alternatives OneOf[T]) string {
	var out []string
	for _, alternative := range alternatives {
		out = append(out, describeOne(alternative))
	}
	return strings.Join(out, " or ")
}

func describeOne[T any](value *T) string {
	if value == nil {
		return "nothing"
	}
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%+v", *value)
	}
	return string(out)
}

// text is s, or nil for a field that is left out when it is empty.
func text[S ~string](s S) *string {
	if s == "" {
		return nil
	}
	return ptr.To(string(s))
}

func restartCount(status *v1alpha1.WorkerImageStatus) int32 {
	if status.DataVolume == nil {
		return 0
	}
	return status.DataVolume.RestartCount
}

func claimPhase(claim *v1alpha1.ClaimStatus) *string {
	if claim == nil {
		return nil
	}
	return text(claim.Phase)
}

func conditionOf(conditions []metav1.Condition, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func poolOf(status *v1alpha1.WorkerImageStatus, pool *PoolRef) *v1alpha1.PoolStatus {
	if pool == nil {
		return nil
	}
	for i := range status.Pools {
		if p := &status.Pools[i]; p.Namespace == pool.Namespace && p.Name == pool.Name {
			return p
		}
	}
	return nil
}
