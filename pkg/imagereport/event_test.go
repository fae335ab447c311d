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

package imagereport

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

const image = "talos-worker-aaa-v1.13.6"

// reportOf is the report on an image of which condition Ready says something.
func reportOf(status metav1.ConditionStatus, reason string) inventory.ImageReport {
	return inventory.ImageReport{
		Name: image, Namespace: "cozy-public", UID: "uid-of-golden",
		Image: &images.WorkerImage{
			ObjectMeta: metav1.ObjectMeta{Name: image, UID: "uid-of-image"},
			Status: images.WorkerImageStatus{
				DataVolume: &images.DataVolumeStatus{Namespace: "cozy-public", Name: image},
				Claim:      &images.ClaimStatus{Name: image},
				Pools:      []images.PoolStatus{{Namespace: "tenant-a", Name: "k1-md0"}},
				Conditions: []metav1.Condition{{Type: images.ConditionReady, Status: status, Reason: reason, Message: "What to do."}},
			},
		},
	}
}

func TestAnObstacleIsAWarningOnTheGolden(t *testing.T) {
	now := metav1.Unix(1790000000, 0)
	got := obstacleTo(reportOf(metav1.ConditionFalse, "ImportFailed")).event(now)
	want := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cozy-public", Name: got.Name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume", Namespace: "cozy-public", Name: image, UID: "uid-of-golden",
		},
		Type: "Warning", Reason: "ImportFailed", Message: "What to do.",
		Source: corev1.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithoutADataVolumeTheClaimIsTheGolden(t *testing.T) {
	report := reportOf(metav1.ConditionFalse, "ClaimLost")
	report.Image.Status.DataVolume = nil
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "cozy-public", Name: image, UID: "uid-of-golden"}
	if diff := cmp.Diff(want, obstacleTo(report).golden); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNoObstacle(t *testing.T) {
	noCondition := reportOf(metav1.ConditionFalse, "ImportFailed")
	noCondition.Image.Status.Conditions = nil
	for name, report := range map[string]inventory.ImageReport{
		"a ready image":               reportOf(metav1.ConditionTrue, "Ready"),
		"an import that goes on":      reportOf(metav1.ConditionFalse, "Importing"),
		"a claim that will be bound":  reportOf(metav1.ConditionFalse, "ClaimPending"),
		"a deletion":                  reportOf(metav1.ConditionFalse, "Terminating"),
		"a source that is not read":   reportOf(metav1.ConditionUnknown, "SourceNotReadable"),
		"an image that is gone":       {Name: image},
		"an image without conditions": noCondition,
	} {
		if got := obstacleTo(report); got != (obstacle{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestALongMessageIsCut(t *testing.T) {
	report := reportOf(metav1.ConditionFalse, "ImportFailed")
	report.Image.Status.Conditions[0].Message = strings.Repeat("x", 2*messageLimit)
	if got := len(obstacleTo(report).message); got > messageLimit {
		t.Errorf("%d bytes", got)
	}
}

func TestTheNameOfAnEventTellsGoldensAndReasonsApartAndNothingElse(t *testing.T) {
	of := func(name string, uid types.UID, reason string) string {
		return obstacle{golden: corev1.ObjectReference{Name: name, UID: uid}, reason: reason, message: "now"}.eventName()
	}
	one := of(image, "1", "ImportFailed")
	if again := (obstacle{golden: corev1.ObjectReference{Name: image, UID: "1"}, reason: "ImportFailed", message: "later"}).eventName(); again != one {
		t.Errorf("%s becomes %s when the message changes", one, again)
	}
	for _, other := range []string{of(image, "2", "ImportFailed"), of(image, "1", "ClaimLost"), of("talos-worker-bbb-v1.13.6", "1", "ImportFailed")} {
		if other == one {
			t.Errorf("%s is the name of two", one)
		}
	}
	for _, long := range []string{strings.Repeat("a", 253), strings.Repeat("a", 235) + "-" + strings.Repeat("a", 17), strings.Repeat("a.", 126) + "a"} {
		if faults := validation.IsDNS1123Subdomain(of(long, "1", "ImportFailed")); len(faults) > 0 {
			t.Errorf("of a golden %s: %v", long, faults)
		}
	}
}

// An Event says it at once, and the alert after a while.
func TestEveryObstacleIsInTheAlert(t *testing.T) {
	alerts, err := os.ReadFile("../../artifacts/chart/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`reason=~"(ImportFailed[^"]*)"`).FindSubmatch(alerts)
	if found == nil {
		t.Fatal("there is no alert on failed imports")
	}
	alerted := strings.Split(string(found[1]), "|")
	for _, reason := range obstacles {
		if !slices.Contains(alerted, reason) {
			t.Errorf("%s is not", reason)
		}
	}
}
