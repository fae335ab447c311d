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
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// cdiPhases pins what each of CDI's words means, with a bound claim of its own behind it.
var cdiPhases = map[cdiv1.DataVolumePhase]images.WorkerImagePhase{
	"":                                  images.WorkerImagePending,
	"Pending":                           images.WorkerImagePending,
	"PVCBound":                          images.WorkerImagePending,
	"WaitForFirstConsumer":              images.WorkerImagePending,
	"PendingPopulation":                 images.WorkerImagePending,
	"Paused":                            images.WorkerImagePending,
	"ImportScheduled":                   images.WorkerImageImporting,
	"ImportInProgress":                  images.WorkerImageImporting,
	"CloneScheduled":                    images.WorkerImageImporting,
	"CloneInProgress":                   images.WorkerImageImporting,
	"SnapshotForSmartCloneInProgress":   images.WorkerImageImporting,
	"CloneFromSnapshotSourceInProgress": images.WorkerImageImporting,
	"SmartClonePVCInProgress":           images.WorkerImageImporting,
	"CSICloneInProgress":                images.WorkerImageImporting,
	"ExpansionInProgress":               images.WorkerImageImporting,
	"NamespaceTransferInProgress":       images.WorkerImageImporting,
	"UploadScheduled":                   images.WorkerImageImporting,
	"UploadReady":                       images.WorkerImageImporting,
	"PrepClaimInProgress":               images.WorkerImageImporting,
	"RebindInProgress":                  images.WorkerImageImporting,
	"Succeeded":                         images.WorkerImageReady,
	"Failed":                            images.WorkerImageFailed,
	"Unknown":                           images.WorkerImageUnknown,
}

func TestEveryPhaseOfCDIIsTranslated(t *testing.T) {
	declared := declaredPhases(t)
	for name, phase := range declared {
		want, listed := cdiPhases[phase]
		if !listed {
			t.Errorf("%s (%q) is not listed", name, phase)
			continue
		}
		state := StateOf(atPhase(phase), boundClaim(), Class{})
		if state.Phase != want {
			t.Errorf("%s: phase %s, want %s", name, state.Phase, want)
		}
		if (state.Ready == metav1.ConditionTrue) != (state.Phase == images.WorkerImageReady) {
			t.Errorf("%s: phase %s with Ready %s", name, state.Phase, state.Ready)
		}
		if (state.Ready == metav1.ConditionUnknown) != (state.Phase == images.WorkerImageUnknown) {
			t.Errorf("%s: phase %s with Ready %s", name, state.Phase, state.Ready)
		}
	}
	if len(declared) != len(cdiPhases) {
		t.Errorf("CDI declares %d phases, %d are listed", len(declared), len(cdiPhases))
	}
}

// declaredPhases reads the phases out of the source of CDI's API.
func declaredPhases(t *testing.T) map[string]cdiv1.DataVolumePhase {
	t.Helper()
	pkg, err := build.Import("kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1", ".", build.FindOnly)
	if err != nil {
		t.Fatalf("finding CDI's API: %v", err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, "types.go"), nil, 0)
	if err != nil {
		t.Fatalf("parsing CDI's API: %v", err)
	}
	phases := map[string]cdiv1.DataVolumePhase{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "DataVolumePhase" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatalf("reading %s: %v", spec.Names[0].Name, err)
		}
		phases[spec.Names[0].Name] = cdiv1.DataVolumePhase(value)
		return true
	})
	return phases
}

func TestReadyNeedsCDIsWordAndAClaimThatIsBoundAndItsOwn(t *testing.T) {
	for _, test := range []struct {
		name        string
		dv          *DataVolume
		claim       *Claim
		wantPhase   images.WorkerImagePhase
		wantReason  string
		wantMessage string
	}{
		{
			name: "succeeded and bound is ready",
			dv:   succeeded(), claim: boundClaim(),
			wantPhase: images.WorkerImageReady, wantReason: ReasonReady,
		},
		{
			name:      "the claim that claimName names counts",
			dv:        succeeded(func(dv *DataVolume) { dv.ClaimName = "foo" }),
			claim:     boundClaim(named("foo")),
			wantPhase: images.WorkerImageReady, wantReason: ReasonReady,
		},
		{
			name: "succeeded with a claim that is not bound yet is still importing",
			dv:   succeeded(), claim: boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonClaimPending, wantMessage: "waits to be bound",
		},
		{
			name: "succeeded with a claim that is not adopted yet is still importing",
			dv:   succeeded(), claim: boundClaim(nobodys),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonClaimPending, wantMessage: "waits to be adopted",
		},
		{
			name:      "succeeded without a claim is pending",
			dv:        succeeded(),
			wantPhase: images.WorkerImagePending, wantReason: ReasonClaimMissing, wantMessage: "does not exist",
		},
		{
			name: "succeeded with the claim of another DataVolume is pending",
			dv:   succeeded(), claim: boundClaim(anothers),
			wantPhase: images.WorkerImagePending, wantReason: ReasonClaimMissing, wantMessage: "belongs to another DataVolume",
		},
		{
			name: "the dying claim of an earlier DataVolume makes nothing ready and nothing terminating",
			dv:   succeeded(), claim: boundClaim(anothers, deleting),
			wantPhase: images.WorkerImagePending, wantReason: ReasonClaimMissing,
		},
		{
			name: "succeeded with a claim that lost its volume has failed",
			dv:   succeeded(), claim: boundClaim(lost),
			wantPhase: images.WorkerImageFailed, wantReason: ReasonClaimLost, wantMessage: "lost its volume",
		},
		{
			name: "a DataVolume that is being deleted is terminating",
			dv:   succeeded(func(dv *DataVolume) { dv.Deleting = true }), claim: boundClaim(),
			wantPhase: images.WorkerImageTerminating, wantReason: ReasonTerminating,
		},
		{
			name: "a claim that is being deleted is terminating, whatever CDI says",
			dv:   succeeded(), claim: boundClaim(deleting),
			wantPhase: images.WorkerImageTerminating, wantReason: ReasonTerminating,
		},
		{
			name:      "a bare claim that CDI filled is ready, and that its DataVolume is gone is said",
			claim:     boundClaim(nobodys),
			wantPhase: images.WorkerImageReady, wantReason: ReasonReady, wantMessage: "The DataVolume is gone",
		},
		{
			name:      "a bare claim that still names its DataVolume is ready",
			claim:     boundClaim(),
			wantPhase: images.WorkerImageReady, wantReason: ReasonReady,
		},
		{
			name:      "a bare claim that is being deleted is terminating",
			claim:     boundClaim(deleting),
			wantPhase: images.WorkerImageTerminating, wantReason: ReasonTerminating,
		},
		{
			name:      "a bare claim that lost its volume has failed",
			claim:     boundClaim(lost),
			wantPhase: images.WorkerImageFailed, wantReason: ReasonClaimLost,
		},
		{
			name:      "a bare claim that is not bound is pending",
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImagePending, wantReason: ReasonClaimPending,
		},
		{
			name:      "a bare claim that is not populated is pending",
			claim:     boundClaim(notPopulated),
			wantPhase: images.WorkerImagePending, wantReason: ReasonClaimPending,
		},
		{
			name:      "nothing at all is unknown",
			wantPhase: images.WorkerImageUnknown, wantReason: ReasonPhaseUnknown,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkState(t, StateOf(test.dv, test.claim, Class{}), test.wantPhase, test.wantReason, test.wantMessage)
		})
	}
}

func TestWhyAnImportIsNotReady(t *testing.T) {
	running := func(status, reason, message string) func(*DataVolume) {
		return func(dv *DataVolume) { dv.Running = Condition{Status: status, Reason: reason, Message: message} }
	}
	bound := func(reason, message string) func(*DataVolume) {
		return func(dv *DataVolume) { dv.Bound = Condition{Status: "False", Reason: reason, Message: message} }
	}
	restarted := func(count int32) func(*DataVolume) {
		return func(dv *DataVolume) { dv.RestartCount = count }
	}
	claimNotValid := bound("ErrClaimNotValid", "PVC spec is missing accessMode and no storageClass to choose profile")

	for _, test := range []struct {
		name        string
		dv          *DataVolume
		claim       *Claim
		class       Class
		wantPhase   images.WorkerImagePhase
		wantReason  string
		wantMessage string
	}{
		{
			name:      "CDI has said nothing yet",
			dv:        atPhase(cdiv1.PhaseUnset),
			wantPhase: images.WorkerImagePending, wantReason: ReasonPending, wantMessage: "has not begun",
		},
		{
			name:      "why the claim is not bound is said without the claims that CDI makes on the way",
			dv:        atPhase(cdiv1.Pending, bound("Pending", "target PVC talos-worker-aaa-v1.13.6 Pending and [prime-0195a4e1] : no space left")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImagePending, wantReason: ReasonPending, wantMessage: "CDI: no space left",
		},
		{
			name:      "what only looks like the name of such a claim is kept",
			dv:        atPhase(cdiv1.Pending, bound("Pending", "target PVC talos-worker-aaa-v1.13.6 Pending and pool [nvme] : no space left")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImagePending, wantReason: ReasonPending, wantMessage: "CDI: pool [nvme] : no space left",
		},
		{
			name:      "the data is on its way",
			dv:        atPhase(cdiv1.ImportInProgress, running("True", "Pod is running", "")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonImporting, wantMessage: "is being imported",
		},
		{
			name:      "an error that has not restarted the import may pass",
			dv:        atPhase(cdiv1.ImportInProgress, running("False", "Error", "source/target size info missing")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonImporting, wantMessage: "size info missing",
		},
		{
			name:      "the import was restarted, and CDI says why",
			dv:        atPhase(cdiv1.ImportInProgress, restarted(7), running("False", "Error", "404 Not Found")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonImportRetrying, wantMessage: "CDI: 404 Not Found",
		},
		{
			name: "between two tries the reason stays, and so do the words",
			dv: atPhase(cdiv1.ImportInProgress, restarted(7), running("True", "Pod is running", ""),
				bound("Pending", "target PVC talos-worker-aaa-v1.13.6 Pending and [prime-0195a4e1] : 404 Not Found")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonImportRetrying, wantMessage: "CDI: 404 Not Found",
		},
		{
			name:      "no node takes the importer",
			dv:        atPhase(cdiv1.ImportScheduled, running("False", "Unschedulable", "Importer pod cannot be scheduled")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonImporterUnschedulable, wantMessage: "cannot be scheduled",
		},
		{
			name:      "an importer that runs was scheduled, whatever the reason still says",
			dv:        atPhase(cdiv1.ImportInProgress, running("True", "Unschedulable", "")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonImporting,
		},
		{
			name:      "the image of the importer cannot be pulled",
			dv:        atPhase(cdiv1.ImportScheduled, running("False", "ImagePullFailed", "Back-off pulling image")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonImagePullFailed, wantMessage: "Back-off pulling image",
		},
		{
			name:      "a quota refuses the claim",
			dv:        atPhase(cdiv1.Pending, bound("ErrExceededQuota", "exceeded quota: storage, requested: 6Gi, limited: 5Gi")),
			wantPhase: images.WorkerImagePending, wantReason: ReasonQuotaExceeded, wantMessage: "limited: 5Gi",
		},
		{
			name:      "a quota refuses what CDI makes on the way",
			dv:        atPhase(cdiv1.Pending, bound("Pending", "pods \"importer\" is forbidden: exceeded quota: compute")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImagePending, wantReason: ReasonQuotaExceeded, wantMessage: "exceeded quota: compute",
		},
		{
			name:      "no class at all was asked for",
			dv:        atPhase(cdiv1.PhaseUnset, claimNotValid),
			class:     Class{Problem: NoClass},
			wantPhase: images.WorkerImagePending, wantReason: ReasonNoStorageClass, wantMessage: "asks for no StorageClass at all",
		},
		{
			name:      "there is no default class",
			dv:        atPhase(cdiv1.PhaseUnset, claimNotValid),
			class:     Class{Problem: NoDefault},
			wantPhase: images.WorkerImagePending, wantReason: ReasonNoStorageClass, wantMessage: "has no default",
		},
		{
			name:      "the class does not exist",
			dv:        atPhase(cdiv1.PhaseUnset, claimNotValid),
			class:     Class{Effective: "gone", Problem: NotFound},
			wantPhase: images.WorkerImagePending, wantReason: ReasonStorageClassNotFound, wantMessage: "StorageClass gone does not exist",
		},
		{
			name:      "the class is known to be the problem before CDI has said so",
			dv:        atPhase(cdiv1.PhaseUnset),
			class:     Class{Problem: NoDefault},
			wantPhase: images.WorkerImagePending, wantReason: ReasonNoStorageClass,
		},
		{
			name:      "the class is what a pending claim waits for",
			dv:        atPhase(cdiv1.Pending),
			claim:     boundClaim(pendingClaim),
			class:     Class{Problem: NoDefault},
			wantPhase: images.WorkerImagePending, wantReason: ReasonNoStorageClass,
		},
		{
			name:      "the class is no problem to a bound claim",
			dv:        atPhase(cdiv1.Pending),
			claim:     boundClaim(),
			class:     Class{Problem: NoClass},
			wantPhase: images.WorkerImagePending, wantReason: ReasonPending,
		},
		{
			name:      "a class has appeared and CDI has not noticed yet",
			dv:        atPhase(cdiv1.PhaseUnset, claimNotValid),
			class:     Class{Effective: "replicated", FromDefault: true},
			wantPhase: images.WorkerImagePending, wantReason: ReasonPending, wantMessage: "no storageClass to choose profile",
		},
		{
			name:      "the claim waits for its first consumer",
			dv:        atPhase(cdiv1.WaitForFirstConsumer),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImagePending, wantReason: ReasonWaitForFirstConsumer, wantMessage: "first consumer",
		},
		{
			name:      "the population waits for the first consumer",
			dv:        atPhase(cdiv1.PendingPopulation),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImagePending, wantReason: ReasonWaitForFirstConsumer, wantMessage: "first consumer",
		},
		{
			name:      "the import is paused",
			dv:        atPhase(cdiv1.Paused),
			claim:     boundClaim(),
			wantPhase: images.WorkerImagePending, wantReason: ReasonPaused, wantMessage: "paused",
		},
		{
			name:      "the claim has lost its volume before the image was complete",
			dv:        atPhase(cdiv1.ImportInProgress, restarted(7)),
			claim:     boundClaim(lost),
			wantPhase: images.WorkerImageImporting, wantReason: ReasonClaimLost, wantMessage: "lost its volume",
		},
		{
			name:      "CDI has given up",
			dv:        atPhase(cdiv1.Failed, running("False", "Error", "checksum mismatch")),
			claim:     boundClaim(pendingClaim),
			wantPhase: images.WorkerImageFailed, wantReason: ReasonImportFailed, wantMessage: "CDI: checksum mismatch",
		},
		{
			name:      "CDI does not know",
			dv:        atPhase(cdiv1.Unknown),
			claim:     boundClaim(),
			wantPhase: images.WorkerImageUnknown, wantReason: ReasonPhaseUnknown,
		},
		{
			name:      "CDI uses a word that is not known",
			dv:        atPhase("TeleportInProgress"),
			claim:     boundClaim(),
			wantPhase: images.WorkerImageUnknown, wantReason: ReasonPhaseUnknown, wantMessage: `"TeleportInProgress"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkState(t, StateOf(test.dv, test.claim, test.class), test.wantPhase, test.wantReason, test.wantMessage)
		})
	}
}

func checkState(t *testing.T, got State, phase images.WorkerImagePhase, reason, message string) {
	t.Helper()
	ready := metav1.ConditionFalse
	switch phase {
	case images.WorkerImageReady:
		ready = metav1.ConditionTrue
	case images.WorkerImageUnknown:
		ready = metav1.ConditionUnknown
	}
	if got.Phase != phase || got.Ready != ready || got.Reason != reason {
		t.Errorf("got phase %s, Ready %s, reason %s, want %s, %s, %s", got.Phase, got.Ready, got.Reason, phase, ready, reason)
	}
	if !strings.Contains(got.Message, message) {
		t.Errorf("message %q does not contain %q", got.Message, message)
	}
	if ready != metav1.ConditionTrue && got.Message == "" {
		t.Error("there is no message")
	}
	if strings.Contains(got.Message, "prime-") {
		t.Errorf("message %q names a claim that CDI makes on the way", got.Message)
	}
}

func TestFailing(t *testing.T) {
	restarted := func(count int32, status string) func(*DataVolume) {
		return func(dv *DataVolume) {
			dv.RestartCount, dv.Running = count, Condition{Status: status}
		}
	}
	for _, test := range []struct {
		name  string
		dv    *DataVolume
		claim *Claim
		want  bool
	}{
		{name: "two restarts may be bad luck", dv: atPhase(cdiv1.ImportInProgress, restarted(2, "False"))},
		{name: "three restarts are not", dv: atPhase(cdiv1.ImportInProgress, restarted(3, "False")), want: true},
		{name: "a try in flight does not lift it", dv: atPhase(cdiv1.ImportInProgress, restarted(3, "True")), want: true},
		{name: "a success lifts it", dv: succeeded(restarted(7, "False")), claim: boundClaim()},
		{name: "a success lifts it before the claim is bound", dv: succeeded(restarted(7, "False")), claim: boundClaim(pendingClaim)},
		{name: "a bare claim is not failing", claim: boundClaim()},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := StateOf(test.dv, test.claim, Class{}).Failing; got != test.want {
				t.Errorf("Failing = %t, want %t", got, test.want)
			}
		})
	}
}

func TestStalledIsWhatDoesNotComeRightByItself(t *testing.T) {
	want := map[string]bool{
		ReasonReady:                 false,
		ReasonPending:               false,
		ReasonImporting:             false,
		ReasonImportRetrying:        false,
		ReasonImportFailed:          true,
		ReasonImporterUnschedulable: false,
		ReasonImagePullFailed:       false,
		ReasonNoStorageClass:        true,
		ReasonStorageClassNotFound:  true,
		ReasonClaimMissing:          false,
		ReasonClaimPending:          false,
		ReasonClaimLost:             true,
		ReasonWaitForFirstConsumer:  true,
		ReasonPaused:                true,
		ReasonQuotaExceeded:         true,
		ReasonTerminating:           false,
		ReasonPhaseUnknown:          false,
	}
	source, err := os.ReadFile("state.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\tReason\w+ += "(\w+)"$`).FindAllSubmatch(source, -1)
	if len(declared) != len(want) {
		t.Errorf("%d reasons are declared, and %d listed", len(declared), len(want))
	}
	for _, reason := range declared {
		stalled, listed := want[string(reason[1])]
		if got := (State{Reason: string(reason[1])}).Stalled(); !listed || got != stalled {
			t.Errorf("%s: stalled is %t; it is listed: %t", reason[1], got, listed)
		}
	}
}
