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
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// asked returns the question to which the answer is yes: everything is known and matches.
func asked(changes ...func(*question)) question {
	q := question{
		pool: Pool{
			Namespace: "tenant-a",
			Name:      "k1-md0",
			Selection: Selection{Consumes: true, Image: golden.ID{SchematicID: "aaa", Version: "v1.13.6"}},
			DiskSize:  "20Gi",
		},
		class: Class{Name: "replicated", From: images.StorageClassDeclared},
		image: Image{
			Exists:   true,
			State:    golden.State{Phase: images.WorkerImageReady, Ready: metav1.ConditionTrue, Reason: golden.ReasonReady},
			Class:    "replicated",
			Size:     "6Gi",
			Strategy: "csi-clone",
		},
	}
	for _, change := range changes {
		change(&q)
	}
	return q
}

func invalid(q *question)                { q.pool.Selection.Invalid = "both blocks" }
func missing(q *question)                { q.image = Image{} }
func failing(q *question)                { q.image.State.Failing = true }
func noPoolClass(q *question)            { q.class = Class{From: images.StorageClassDefault} }
func noImageClass(q *question)           { q.image.Class = "" }
func noImageSize(q *question)            { q.image.Size = "" }
func hostAssisted(q *question)           { q.image.Strategy = "copy" }
func imageOnLocal(q *question)           { q.image.Class = "local" }
func poolOnDefault(q *question)          { q.class.From = images.StorageClassDefault }
func poolOnDisks(q *question)            { q.class.From = images.StorageClassClonedDisk }
func imageOnDefault(q *question)         { q.image.ClassFromDefault = true }
func diskSize(s string) func(*question)  { return func(q *question) { q.pool.DiskSize = s } }
func imageSize(s string) func(*question) { return func(q *question) { q.image.Size = s } }

// at puts the image into a phase for a reason.
func at(phase images.WorkerImagePhase, reason string) func(*question) {
	return func(q *question) {
		q.image.State.Phase, q.image.State.Reason, q.image.State.Message = phase, reason, "CDI: no route to host"
	}
}

// ruling is a question to one rule and what it has to say.
type ruling struct {
	name     string
	question question
	// reason is empty where the rule has nothing to say.
	reason    string
	cloneable metav1.ConditionStatus
	// says and hides are parts of the message and parts of no message.
	says  []string
	hides []string
}

func checkRule(t *testing.T, rule rule, rulings []ruling) {
	t.Helper()
	for _, test := range rulings {
		t.Run(test.name, func(t *testing.T) {
			got := rule(test.question)
			if got == nil {
				got = &Verdict{}
			}
			if got.Reason != test.reason || got.Cloneable != test.cloneable {
				t.Fatalf("the rule says %q (%s), want %q (%s)", got.Reason, got.Cloneable, test.reason, test.cloneable)
			}
			if (got.Message != "") != (test.reason != "") || strings.TrimSpace(got.Message) != got.Message {
				t.Errorf("the message is %q", got.Message)
			}
			for _, part := range test.says {
				if !strings.Contains(got.Message, part) {
					t.Errorf("message %q does not say %q", got.Message, part)
				}
			}
			for _, part := range test.hides {
				if strings.Contains(got.Message, part) {
					t.Errorf("message %q says %q", got.Message, part)
				}
			}
		})
	}
}

const (
	yes       = metav1.ConditionTrue
	refused   = metav1.ConditionFalse
	undecided = metav1.ConditionUnknown
)

func TestInvalidSelection(t *testing.T) {
	checkRule(t, invalidSelection, []ruling{
		{name: "a valid selection is no reason", question: asked()},
		{
			name: "what is wrong is said", question: asked(invalid),
			reason: ReasonInvalidSelection, cloneable: refused, says: []string{"both blocks", "Correct the pool"},
		},
	})
}

func TestGoldenMissing(t *testing.T) {
	checkRule(t, goldenMissing, []ruling{
		{name: "a golden that is there is no reason", question: asked()},
		{
			name: "a golden that is not there is named", question: asked(missing),
			reason: ReasonGoldenMissing, cloneable: refused, says: []string{"talos-worker-aaa-v1.13.6"},
		},
		{
			name: "it is missing to a pool that cloned it long ago as well", question: asked(missing, poolOnDisks),
			reason: ReasonGoldenMissing, cloneable: refused,
		},
	})
}

func TestGoldenFailed(t *testing.T) {
	checkRule(t, goldenFailed, []ruling{
		{name: "a golden that is ready is no reason", question: asked()},
		{name: "one that is tried again has not failed", question: asked(at(images.WorkerImageImporting, golden.ReasonImportRetrying))},
		{
			name: "one that has failed is, with the reason", question: asked(at(images.WorkerImageFailed, golden.ReasonImportFailed)),
			reason: ReasonGoldenFailed, cloneable: refused, says: []string{"talos-worker-aaa-v1.13.6", "no route to host"},
		},
		{
			name: "so is one whose claim is lost in the middle of the import", question: asked(at(images.WorkerImageImporting, golden.ReasonClaimLost)),
			reason: ReasonGoldenFailed, cloneable: refused,
		},
	})
}

func TestGoldenFailing(t *testing.T) {
	checkRule(t, goldenFailing, []ruling{
		{name: "an import is no reason", question: asked(at(images.WorkerImageImporting, golden.ReasonImporting))},
		{
			name: "one that keeps failing is, with the reason", question: asked(at(images.WorkerImageImporting, golden.ReasonImportRetrying), failing),
			reason: ReasonGoldenFailing, cloneable: refused, says: []string{"keeps failing", "no route to host"},
		},
	})
}

func TestGoldenTerminating(t *testing.T) {
	checkRule(t, goldenTerminating, []ruling{
		{name: "a golden that is ready is no reason", question: asked()},
		{
			name: "one that is being deleted is", question: asked(at(images.WorkerImageTerminating, golden.ReasonTerminating)),
			reason: ReasonGoldenTerminating, cloneable: refused, says: []string{"being deleted"},
		},
	})
}

func TestGoldenStateUnknown(t *testing.T) {
	checkRule(t, goldenStateUnknown, []ruling{
		{name: "a golden that is ready is known", question: asked()},
		{name: "one that is importing is known", question: asked(at(images.WorkerImageImporting, golden.ReasonImporting))},
		{name: "one that is pending is known", question: asked(at(images.WorkerImagePending, golden.ReasonPending))},
		{
			name: "one whose phase is Unknown is not", question: asked(at(images.WorkerImageUnknown, golden.ReasonPhaseUnknown)),
			reason: ReasonGoldenStateUnknown, cloneable: undecided, says: []string{"no route to host"},
		},
		{
			name: "one without a phase is not", question: asked(func(q *question) { q.image.State = golden.State{} }),
			reason: ReasonGoldenStateUnknown, cloneable: undecided,
		},
	})
}

func TestStorageClassMismatch(t *testing.T) {
	checkRule(t, storageClassMismatch, []ruling{
		{name: "one class on both sides is no reason", question: asked()},
		{name: "a pool without a class is neither match nor mismatch", question: asked(imageOnLocal, noPoolClass)},
		{name: "an image without a class is neither match nor mismatch", question: asked(noImageClass)},
		{
			name: "two classes are a mismatch, and no default is named", question: asked(imageOnLocal),
			reason: ReasonStorageClassMismatch, cloneable: refused, says: []string{"replicated", "local"}, hides: []string{"default"},
		},
		{
			name: "the pool's default is said to be one", question: asked(imageOnLocal, poolOnDefault),
			reason: ReasonStorageClassMismatch, cloneable: refused, says: []string{"replicated (the cluster's default)"},
		},
		{
			name: "the class of the disks is said to be theirs", question: asked(imageOnLocal, poolOnDisks),
			reason: ReasonStorageClassMismatch, cloneable: refused, says: []string{"replicated (that of the disks"}, hides: []string{"default"},
		},
		{
			name: "the image's default is said to be one", question: asked(imageOnLocal, imageOnDefault),
			reason: ReasonStorageClassMismatch, cloneable: refused, says: []string{"local (the default it will get)"},
		},
	})
}

func TestDiskTooSmall(t *testing.T) {
	tooSmall := func(name, disk, size string) ruling {
		return ruling{name: name, question: asked(diskSize(disk), imageSize(size)),
			reason: ReasonDiskTooSmall, cloneable: refused, says: []string{disk, size, "Raise diskSize"}}
	}
	fits := func(name, disk, size string) ruling {
		return ruling{name: name, question: asked(diskSize(disk), imageSize(size))}
	}
	checkRule(t, diskTooSmall, []ruling{
		fits("a larger disk fits", "20Gi", "6Gi"),
		fits("an equal disk fits", "6Gi", "6Gi"),
		fits("an equal disk fits in bytes", "6442450944", "6Gi"),
		fits("an equal disk fits in another unit", "6144Mi", "6442450944"),
		tooSmall("6G is smaller than 6Gi", "6G", "6Gi"),
		tooSmall("one byte less is too small", "6442450943", "6Gi"),
		tooSmall("a smaller disk is too small", "2Gi", "6Gi"),
		fits("a disk that is no quantity is not too small", "big", "6Gi"),
		fits("an image that is no quantity is not too large", "2Gi", "big"),
		fits("an image without a size is not too large", "2Gi", ""),
	})
}

func TestStorageClassUnknown(t *testing.T) {
	checkRule(t, storageClassUnknown, []ruling{
		{name: "two classes are known", question: asked(imageOnLocal)},
		{
			name: "a pool without a class can be given one", question: asked(noPoolClass),
			reason: ReasonStorageClassUnknown, cloneable: undecided, says: []string{"The pool names no StorageClass"},
		},
		{
			name: "an image without a class is said to be the one", question: asked(noImageClass, at(images.WorkerImagePending, golden.ReasonNoStorageClass)),
			reason: ReasonStorageClassUnknown, cloneable: undecided, says: []string{"image talos-worker-aaa-v1.13.6", "no route to host"},
		},
	})
}

func TestGoldenSizeUnknown(t *testing.T) {
	checkRule(t, sizeUnknown, []ruling{
		{name: "two quantities are known", question: asked()},
		{
			name: "a disk that is no quantity is the pool's to correct", question: asked(diskSize("big")),
			reason: ReasonGoldenSizeUnknown, cloneable: undecided, says: []string{`The pool's diskSize "big"`},
		},
		{
			name: "an exponent that nobody has the time to compute is no quantity", question: asked(diskSize("1e999999999")),
			reason: ReasonGoldenSizeUnknown, cloneable: undecided, says: []string{"1e999999999"},
		},
		{
			name: "an image without a size is not known", question: asked(noImageSize),
			reason: ReasonGoldenSizeUnknown, cloneable: undecided, says: []string{"Neither the DataVolume nor the claim of image talos-worker-aaa-v1.13.6"},
		},
		{
			name: "an image that is no quantity is not known", question: asked(imageSize("big")),
			reason: ReasonGoldenSizeUnknown, cloneable: undecided, says: []string{`The size "big" of image`},
		},
	})
}

func TestGoldenImporting(t *testing.T) {
	checkRule(t, goldenImporting, []ruling{
		{name: "a golden that is ready is not importing", question: asked()},
		{
			name: "a clone of one that is importing waits and works", question: asked(at(images.WorkerImageImporting, golden.ReasonImporting)),
			reason: ReasonGoldenImporting, cloneable: yes,
		},
		{
			name: "a clone of one that is pending waits and works", question: asked(at(images.WorkerImagePending, golden.ReasonPending)),
			reason: ReasonGoldenImporting, cloneable: yes,
		},
	})
}

func TestHostAssistedCopy(t *testing.T) {
	strategy := func(s string) func(*question) { return func(q *question) { q.image.Strategy = s } }
	checkRule(t, hostAssistedCopy, []ruling{
		{name: "csi-clone is on the storage layer", question: asked()},
		{name: "snapshot is on the storage layer", question: asked(strategy("snapshot"))},
		{name: "a strategy that is not known is no reason", question: asked(strategy(""))},
		{
			name: "copy is over the network, and the worker boots all the same", question: asked(hostAssisted),
			reason: ReasonHostAssistedCopy, cloneable: refused, says: []string{"replicated", "over the pod network", "The worker boots"},
		},
	})
}

func TestJudgeAppliesTheRulesInOrder(t *testing.T) {
	// Each question has the faults of all that follow it. The rules on the state of the golden exclude each
	// other, so each of them is put on top of the faults that are left.
	rest := []func(*question){hostAssisted, at(images.WorkerImageImporting, golden.ReasonImporting)}
	with := func(changes ...func(*question)) []func(*question) {
		return append(append([]func(*question){}, rest...), changes...)
	}
	small := diskSize("2Gi")
	for _, test := range []struct {
		reason    string
		cloneable metav1.ConditionStatus
		faults    []func(*question)
	}{
		{ReasonInvalidSelection, refused, []func(*question){missing, invalid}},
		{ReasonGoldenMissing, refused, []func(*question){missing, small, noPoolClass}},
		{ReasonGoldenFailed, refused, with(imageOnLocal, small, failing, at(images.WorkerImageFailed, golden.ReasonImportFailed))},
		{ReasonGoldenFailing, refused, with(imageOnLocal, small, failing, at(images.WorkerImageTerminating, golden.ReasonTerminating))},
		{ReasonGoldenTerminating, refused, with(imageOnLocal, small, at(images.WorkerImageTerminating, golden.ReasonTerminating))},
		{ReasonGoldenStateUnknown, undecided, with(imageOnLocal, small, at(images.WorkerImageUnknown, golden.ReasonPhaseUnknown))},
		{ReasonStorageClassMismatch, refused, with(imageOnLocal, small)},
		{ReasonDiskTooSmall, refused, with(noImageClass, small)},
		{ReasonStorageClassUnknown, undecided, with(noImageClass, noImageSize)},
		{ReasonGoldenSizeUnknown, undecided, with(noImageSize)},
		{ReasonGoldenImporting, yes, with()},
		{ReasonHostAssistedCopy, refused, []func(*question){hostAssisted}},
		{ReasonStorageClassMatch, yes, nil},
	} {
		t.Run(test.reason, func(t *testing.T) {
			q := asked(test.faults...)
			got := Judge(q.pool, q.class, q.image)
			if got.Reason != test.reason || got.Cloneable != test.cloneable {
				t.Errorf("got %s (%s), want %s (%s)", got.Reason, got.Cloneable, test.reason, test.cloneable)
			}
			if got.Cloneable != yes && got.Message == "" {
				t.Error("there is no message")
			}
		})
	}
}

func TestDefaultMovesAfterBinding(t *testing.T) {
	before := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	classes := storageclass.Classes{
		{Name: "repl", Created: before, Default: true},
		{Name: "nvme", Created: before.Add(time.Hour), Default: true},
	}
	repl := "repl"
	bound := &golden.Claim{Name: goldenName, Phase: "Bound", StorageClass: &repl, Requested: "6Gi", Populated: true}
	class := golden.ClassOf(nil, bound, classes)
	image := Image{
		Exists:           true,
		State:            golden.StateOf(nil, bound, class),
		Class:            class.Effective,
		ClassFromDefault: class.FromDefault,
		Size:             golden.Size(nil, bound),
	}
	pool := From(nodes(t, `{"storageClass": "", "diskSize": "6Gi", "osImage": {"builtin": {"schematicID": "aaa", "version": "v1.13.6"}}}`), platform)

	if got := Judge(pool, pool.Class("repl", classes), image); got.Reason != ReasonStorageClassMatch {
		t.Errorf("a pool with a disk on the old default: %+v", got)
	}
	got := Judge(pool, pool.Class("", classes), image)
	if got.Reason != ReasonStorageClassMismatch || !strings.Contains(got.Message, "nvme (the cluster's default)") {
		t.Errorf("a pool without a disk: %+v", got)
	}
	if strings.Contains(got.Message, "tenant-a") {
		t.Errorf("the message names a tenant: %s", got.Message)
	}
}
