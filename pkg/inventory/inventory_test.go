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

package inventory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

func TestEverythingIsPublishedBeforeItIsReady(t *testing.T) {
	run(t, func(f *fixture) {
		f.dataVolumes.put(goldenObject(goldA), goldenObject(goldB))
		f.claims.put(claimObject(goldens, goldA, "replicated"))
		f.start()
		f.expect("at the start", goldA+" Ready", goldB+" Pending", "ready")
	})
}

func TestAnEmptyClusterIsReady(t *testing.T) {
	run(t, func(f *fixture) {
		f.start()
		f.expect("at the start", "ready")
	})
}

func TestNothingIsPublishedWhileASourceHasNotAnswered(t *testing.T) {
	run(t, func(f *fixture) {
		f.pools.blocked = make(chan struct{})
		f.dataVolumes.put(goldenObject(goldA))
		f.start()
		f.pass(time.Minute)
		f.expect("while pools have not answered")
		close(f.pools.blocked)
		f.expect("when they have", goldA+" Pending", "ready")
	})
}

func TestADiskEventRecomputesOneImage(t *testing.T) {
	run(t, func(f *fixture) {
		f.dataVolumes.put(goldenObject(goldB))
		f.startReady()
		before := f.Stats()
		f.dataVolumes.put(diskObject("tenant-a", "disk-1", goldA, diskPoolA))
		f.expect("a disk appears", goldA+" Ready")
		after := f.Stats()
		if got := after.Projections - before.Projections; got != 1 {
			t.Errorf("%d projections", got)
		}
		if diff := cmp.Diff(images.DiskCounts{Cloned: 1}, f.out.image(f.t, goldA).Status.Pools[0].Disks); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEveryProjectionIsTimed(t *testing.T) {
	run(t, func(f *fixture) {
		times := 0
		f.worker.projected = func(took time.Duration) {
			times++
			if took != 0 {
				t.Errorf("it took %v of a clock that stands still", took)
			}
		}
		f.startReady()
		if projections := f.Stats().Projections; times == 0 || uint64(times) != projections {
			t.Errorf("%d of %d projections were timed", times, projections)
		}
	})
}

func TestEveryImageThatIsPublishedIsReported(t *testing.T) {
	run(t, func(f *fixture) {
		var reports []string
		f.worker.reported = func(_ context.Context, r ImageReport) {
			reason := "gone"
			if r.Image != nil {
				reason = r.Image.Status.Conditions[0].Reason
			}
			reports = append(reports, fmt.Sprintf("%s/%s %s %s", r.Namespace, r.Name, r.UID, reason))
		}
		f.startReady()
		golden := goldenObject(goldB)
		f.dataVolumes.put(golden)
		f.settle()
		f.classes.put(classObject("nvme")) // which changes no image
		f.settle()
		f.dataVolumes.remove(golden)
		f.pass(publishInterval)
		want := []string{
			fmt.Sprintf("%s/%s %s Ready", goldens, goldA, goldenObject(goldA).GetUID()),
			fmt.Sprintf("%s/%s %s ClaimMissing", goldens, goldB, golden.GetUID()),
			"/" + goldB + "  gone",
		}
		if diff := cmp.Diff(want, reports); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestWhatConcernsNoImageIsNotProjected(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		before := f.Stats()
		f.dataVolumes.put(dataVolumeObject("tenant-a", "vm-disk", phase("Succeeded")))
		f.claims.put(claimObject("tenant-a", "vm-disk", "replicated"), claimObject(goldens, "prime-1", "replicated"))
		f.pools.put(poolObject("tenant-a", "k1-http", imageID(goldA), set(nil, "spec", "osImage")))
		f.settle()
		if diff := cmp.Diff(before, f.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnEqualProjectionIsNotPublished(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		before := f.Stats()
		f.classes.put(classObject("nvme"))
		f.expect("a class that nobody uses")
		want := before
		want.Projections++
		want.Unchanged += 2 // the image and the catalog entry
		if diff := cmp.Diff(want, f.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAGoldenIsGoneWhenNothingIsLeftOfIt(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		populated := claimObject(goldens, goldA, "replicated")
		populated.Annotations = map[string]string{"cdi.kubevirt.io/storage.pod.phase": "Succeeded"}
		f.claims.put(populated)
		f.pass(publishInterval)
		f.out.take()

		f.dataVolumes.remove(goldenObject(goldA))
		f.expect("its claim is still there", goldA+" Ready")
		f.claims.remove(populated)
		f.expect("nothing is left", goldA+" gone")
		if len(f.worker.images.published) != 0 {
			t.Errorf("it is remembered: %v", f.worker.images.published)
		}
		f.dataVolumes.put(goldenObject(goldA))
		f.expect("it is made again", goldA+" Pending")
	})
}

func TestAGoldenThatIsMadeAgainIsPublishedAtOnce(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.dataVolumes.put(goldenObject(goldA, progress("1%")))
		f.settle()
		uid := f.out.image(t, goldA).UID
		f.out.take()
		f.dataVolumes.put(goldenObject(goldA, progress("1%"), set("another", "metadata", "uid")))
		f.settle()
		if f.out.image(t, goldA).UID == uid {
			t.Error("the old one is still published")
		}
	})
}

// importing starts with a golden whose import can be moved.
func (f *fixture) importing(percent string) {
	f.dataVolumes.put(goldenObject(goldA, phase("ImportInProgress"), progress(percent)))
}

func (f *fixture) progress() int32 {
	f.t.Helper()
	return ptr.Deref(f.out.image(f.t, goldA).Status.Progress, -1)
}

func TestTheFirstChangeIsPublishedAtOnceAndFurtherOnesWaitForTheEndOfTheSecond(t *testing.T) {
	run(t, func(f *fixture) {
		f.importing("1%")
		f.start()
		f.pass(publishInterval)
		f.out.take()

		f.importing("10%")
		f.expect("the first change", goldA+" Importing")
		f.importing("20%")
		f.settle()
		f.importing("30%")
		f.pass(publishInterval - tick)
		f.expect("further ones")
		if got := f.progress(); got != 10 {
			t.Errorf("progress is %d", got)
		}
		f.pass(tick)
		f.expect("the second is over", goldA+" Importing")
		if got := f.progress(); got != 30 {
			t.Errorf("the last state was dropped for progress %d", got)
		}
		f.pass(10 * publishInterval)
		f.expect("nothing more changes")
	})
}

func TestAChangeThatIsTakenBackWithinTheSecondIsNotPublished(t *testing.T) {
	run(t, func(f *fixture) {
		f.importing("1%")
		f.start()
		f.out.take()
		f.importing("2%")
		f.settle()
		f.importing("1%")
		f.pass(2 * publishInterval)
		f.expect("all is as it was")
	})
}

func TestAChangeThatDoesNotWaitTakesTheWaitingOnesAlong(t *testing.T) {
	run(t, func(f *fixture) {
		f.importing("1%")
		f.start()
		f.importing("2%")
		f.settle()
		f.out.take()
		f.dataVolumes.put(goldenObject(goldA, phase("Failed"), progress("2%")))
		f.expect("the phase changes", goldA+" Failed")
		before := f.Stats()
		f.pass(2 * publishInterval)
		if diff := cmp.Diff(before, f.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSomebodyWaitsForThePhaseAndForAnswers(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string) *images.WorkerImage {
		return &images.WorkerImage{Status: images.WorkerImageStatus{
			Phase:      images.WorkerImageImporting,
			Conditions: []metav1.Condition{{Type: images.ConditionReady, Status: status, Reason: reason, Message: message}},
		}}
	}
	from := condition(metav1.ConditionFalse, "Importing", "")
	ready := from.DeepCopy()
	ready.Status.Phase = images.WorkerImageReady
	labelled := from.DeepCopy()
	labelled.Labels = map[string]string{"team": "a"}
	faster := from.DeepCopy()
	faster.Status.Progress = ptr.To[int32](50)
	more := from.DeepCopy()
	more.Status.Conditions = append(more.Status.Conditions, metav1.Condition{Type: images.ConditionInUse})
	tests := map[string]struct {
		to   *images.WorkerImage
		want bool
	}{
		"nothing":                  {to: from},
		"the progress":             {to: faster},
		"the message of an answer": {to: condition(metav1.ConditionFalse, "Importing", "nearly there")},
		"the reason of an answer":  {to: condition(metav1.ConditionFalse, "ImportRetrying", ""), want: true},
		"an answer":                {to: condition(metav1.ConditionUnknown, "Importing", ""), want: true},
		"one more answer":          {to: more, want: true},
		"the phase":                {to: ready, want: true},
		"the metadata":             {to: labelled, want: true},
		"that it is there":         {to: nil, want: true},
	}
	for what, tc := range tests {
		if got := urgentImage(from, tc.to); got != tc.want {
			t.Errorf("%s: %v", what, got)
		}
	}
	if !urgentImage(nil, from) {
		t.Error("a new one is not waited for")
	}
}

func TestAnswersDoNotWait(t *testing.T) {
	changes := map[string]func(*fixture){
		"the phase": func(f *fixture) { f.dataVolumes.put(goldenObject(goldA, phase("Failed"))) },
		"the status of a condition": func(f *fixture) {
			f.pools.put(poolObject("tenant-a", poolA, imageID(goldA)))
		},
		"the reason of a condition": func(f *fixture) {
			f.dataVolumes.put(goldenObject(goldA, phase("ImportInProgress"), progress("1%"), set(int64(1), "status", "restartCount")))
		},
		"the metadata": func(f *fixture) {
			f.dataVolumes.put(goldenObject(goldA, phase("ImportInProgress"), progress("1%"), set("another", "metadata", "uid")))
		},
		"that it is there": func(f *fixture) { f.dataVolumes.remove(goldenObject(goldA)) },
	}
	for what, change := range changes {
		t.Run(what, func(t *testing.T) {
			run(t, func(f *fixture) {
				f.importing("0%")
				f.start()
				f.pass(publishInterval)
				f.importing("1%")
				f.settle()
				f.out.take()
				change(f)
				if got := f.published(); len(got) != 1 {
					t.Errorf("published %v", got)
				}
			})
		})
	}
}

func TestWhatThePublisherRefusesIsPublishedLater(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.out.refuse(errors.New("no room"))
		f.dataVolumes.put(goldenObject(goldA, phase("Failed")))
		f.pass(5 * publishInterval)
		f.expect("while it refuses")
		f.out.refuse(nil)
		f.pass(publishInterval)
		f.expect("when it does not", goldA+" Failed")
		if f.Stats().Failed == 0 {
			t.Error("no failure was counted")
		}
	})
}

func TestAClaimThatComesBeforeItsDataVolumeIsFound(t *testing.T) {
	run(t, func(f *fixture) {
		adopted := claimObject(goldens, "adopted", "replicated")
		adopted.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Name: goldA, UID: types.UID("DataVolume/" + goldens + "/" + goldA), Controller: ptr.To(true),
		}}
		f.claims.put(adopted)
		f.start()
		f.out.take()
		f.dataVolumes.put(goldenObject(goldA, claimNamed("adopted")))
		f.expect("the DataVolume names it", goldA+" Ready")
	})
}

func TestAChangeOfTheClassOfADiskReachesItsPool(t *testing.T) {
	run(t, func(f *fixture) {
		f.startReady()
		f.pools.put(poolObject("tenant-a", poolA, imageID(goldA), set("", "spec", "storageClass")))
		f.dataVolumes.put(diskObject("tenant-a", "disk-1", goldA, diskPoolA))
		f.claims.put(claimObject("tenant-a", "disk-1", "local"))
		f.pass(publishInterval)
		want := &images.PoolStorageClass{Name: "local", From: "ClonedDisk"}
		if diff := cmp.Diff(want, f.out.image(t, goldA).Status.Pools[0].StorageClass); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMalformedObjectsBreakNothing(t *testing.T) {
	wrong := []any{nil, "text", int64(7), []any{"list"}, map[string]any{"x": []any{nil}}}
	run(t, func(f *fixture) {
		f.startReady()
		for _, value := range wrong {
			for _, field := range []string{"spec", "status"} {
				f.dataVolumes.put(goldenObject(goldB, set(value, field)), diskObject("tenant-a", "disk-1", goldA, diskPoolA, set(value, field)))
				f.profiles.put(profileObject("broken", "csi-clone"), manifest("cdi.kubevirt.io/v1beta1", "StorageProfile", "", "broken", set(value, field)))
				f.cdis.put(manifest("cdi.kubevirt.io/v1beta1", "CDI", "", "broken", set(value, field)))
				f.pools.put(poolObject("tenant-b", "broken", imageID(goldA), set(value, field)))
				f.pass(publishInterval)
			}
			f.dataVolumes.put(goldenObject(goldB, set(value, "metadata", "annotations")))
			f.pools.put(poolObject("tenant-b", "broken", imageID(goldA), set(value, "metadata", "labels")))
			f.claims.put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: goldens, Name: goldB}})
			f.pass(publishInterval)
		}
		f.dataVolumes.put(goldenObject(goldA, phase("Failed")))
		f.settle()
		if got := f.out.image(t, goldA).Status.Phase; got != images.WorkerImageFailed {
			t.Errorf("the phase of the good one is %s", got)
		}
		f.out.image(t, goldB)
		for _, h := range f.Health() {
			if !h.Readable {
				t.Errorf("%s cannot be read: %v", h.Name, h.LastError)
			}
		}
	})
}
