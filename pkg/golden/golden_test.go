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
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

// succeeded returns the DataVolume of a golden that is complete, on class replicated.
func succeeded(changes ...func(*DataVolume)) *DataVolume {
	class := "replicated"
	dv := &DataVolume{
		Namespace:    "cozy-public",
		Name:         "talos-worker-aaa-v1.13.6",
		UID:          "dv-uid",
		Template:     TemplateStorage,
		StorageClass: &class,
		Size:         "6Gi",
		ClaimName:    "talos-worker-aaa-v1.13.6",
		Phase:        string(cdiv1.Succeeded),
		Progress:     "100.0%",
		Ready:        Condition{Status: "True"},
		Bound:        Condition{Status: "True", Reason: "Bound"},
		Running:      Condition{Status: "False", Reason: "Completed", Message: "Import Complete"},
	}
	for _, change := range changes {
		change(dv)
	}
	return dv
}

// atPhase returns the DataVolume of a golden that is not complete, with nothing else to say.
func atPhase(phase cdiv1.DataVolumePhase, changes ...func(*DataVolume)) *DataVolume {
	return succeeded(append([]func(*DataVolume){func(dv *DataVolume) {
		dv.Phase, dv.Progress = string(phase), ""
		dv.Ready, dv.Bound, dv.Running = Condition{}, Condition{}, Condition{}
	}}, changes...)...)
}

// boundClaim returns the claim of the golden that succeeded returns.
func boundClaim(changes ...func(*Claim)) *Claim {
	class := "replicated"
	claim := &Claim{
		Namespace:    "cozy-public",
		Name:         "talos-worker-aaa-v1.13.6",
		UID:          "claim-uid",
		Phase:        corev1.ClaimBound,
		StorageClass: &class,
		Requested:    "6Gi",
		Capacity:     "6Gi",
		Owner:        "dv-uid",
		CreatedFor:   "dv-uid",
		Populated:    true,
	}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

func nobodys(claim *Claim)      { claim.Owner = "" }
func anothers(claim *Claim)     { claim.Owner = "another-uid" }
func pendingClaim(claim *Claim) { claim.Phase = corev1.ClaimPending }
func lost(claim *Claim)         { claim.Phase = corev1.ClaimLost }
func deleting(claim *Claim)     { claim.Deleting = true }
func notPopulated(claim *Claim) { claim.Populated = false }

func named(name string) func(*Claim) {
	return func(claim *Claim) { claim.Name = name }
}

func notMadeForAny(claim *Claim) { claim.CreatedFor = "" }

func classed(class *string) func(*Claim) {
	return func(claim *Claim) { claim.StorageClass = class }
}

func TestExists(t *testing.T) {
	for _, test := range []struct {
		name  string
		dv    *DataVolume
		claim *Claim
		want  bool
	}{
		{name: "a DataVolume is a golden", dv: atPhase(cdiv1.PhaseUnset), want: true},
		{name: "a populated claim that its DataVolume left behind is a golden", claim: boundClaim(nobodys), want: true},
		{name: "it is one as well while it still names its DataVolume", claim: boundClaim(), want: true},
		{name: "it is one as well while it is being deleted", claim: boundClaim(deleting), want: true},
		{name: "it is one as well when it has lost its volume", claim: boundClaim(lost), want: true},
		{name: "a claim that is not populated is none", claim: boundClaim(notPopulated)},
		{name: "a claim that is not bound yet is none", claim: boundClaim(pendingClaim)},
		{name: "a claim that an import was making is one until it is gone", claim: boundClaim(pendingClaim, notPopulated, deleting), want: true},
		{name: "a claim that nobody made a golden of is none, and goes", claim: boundClaim(nobodys, notMadeForAny, pendingClaim, notPopulated, deleting)},
		{name: "another claim is none", claim: boundClaim(named("vm-default-images-x"))},
		{name: "a claim that CDI makes on the way is none", claim: boundClaim(named("prime-0195a4e1-5c75-41bc-bce7-42feccbfc095"))},
		{name: "nothing is none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Exists(test.dv, test.claim); got != test.want {
				t.Errorf("Exists = %t, want %t", got, test.want)
			}
		})
	}
}

func TestUIDFollowsTheGolden(t *testing.T) {
	// The value itself is pinned: it must be the same on every replica and in every release.
	const want = types.UID("6268f96c-a2ec-586f-8ba7-7c68454aa52c")
	for name, got := range map[string]types.UID{
		"the DataVolume alone":                               UID(succeeded(), nil),
		"the DataVolume and its claim":                       UID(succeeded(), boundClaim()),
		"the claim that the DataVolume has just left behind": UID(nil, boundClaim()),
		"the claim, when nobody controls it any more":        UID(nil, boundClaim(nobodys)),
		"a claim that only says who controls it":             UID(nil, boundClaim(func(claim *Claim) { claim.CreatedFor = "" })),
	} {
		if got != want {
			t.Errorf("%s: uid %s, want %s", name, got, want)
		}
	}
	others := map[types.UID]string{want: "the golden"}
	for name, got := range map[string]types.UID{
		"a golden made again":                UID(succeeded(func(dv *DataVolume) { dv.UID = "new-uid" }), nil),
		"a claim that nobody made":           UID(nil, boundClaim(nobodys, func(claim *Claim) { claim.CreatedFor = "" })),
		"a claim made for another":           UID(nil, boundClaim(func(claim *Claim) { claim.CreatedFor = "another-uid" })),
		"the uid of the DataVolume":          "dv-uid",
		"the uid of the claim":               "claim-uid",
		"no golden at all, which has no uid": UID(nil, nil),
	} {
		if other, found := others[got]; found {
			t.Errorf("%s has the uid of %s", name, other)
		}
		others[got] = name
	}
}

func TestSize(t *testing.T) {
	silent := func(dv *DataVolume) { dv.Size = "" }
	for _, test := range []struct {
		name  string
		dv    *DataVolume
		claim *Claim
		want  string
	}{
		{
			name:  "what was declared is shown as it was written",
			dv:    succeeded(func(dv *DataVolume) { dv.Size = "6144Mi" }),
			claim: boundClaim(),
			want:  "6144Mi",
		},
		{
			name:  "the request of the claim counts where the DataVolume is silent, not its capacity",
			dv:    succeeded(silent),
			claim: boundClaim(func(claim *Claim) { claim.Capacity = "6817408407" }),
			want:  "6Gi",
		},
		{name: "a claim of another DataVolume says nothing", dv: succeeded(silent), claim: boundClaim(anothers)},
		{name: "a bare claim says it", claim: boundClaim(nobodys), want: "6Gi"},
		{name: "nobody says it", dv: succeeded(silent)},
		{name: "there is nobody to say it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Size(test.dv, test.claim); got != test.want {
				t.Errorf("Size = %q, want %q", got, test.want)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	percent := func(p int32) *int32 { return &p }
	for _, test := range []struct {
		text string
		want *int32
	}{
		{text: ""},
		{text: "N/A"},
		{text: "0.00%", want: percent(0)},
		{text: "45.67%", want: percent(45)},
		{text: "100.0%", want: percent(100)},
		{text: "45,3%"},
		{text: "abc"},
		{text: "-1%"},
		{text: "250%"},
		{text: "99.99%", want: percent(99)},
		{text: "100.1%"},
		{text: "7%", want: percent(7)},
		{text: "7"},
		{text: ".5%"},
		{text: "1e1%"},
		{text: "+7%"},
		{text: "45.67%\n"},
		{text: "00000000000007%"},
	} {
		got := Progress(&DataVolume{Progress: test.text})
		if (got == nil) != (test.want == nil) || (got != nil && *got != *test.want) {
			t.Errorf("Progress of %q = %v, want %v", test.text, show(got), show(test.want))
		}
	}
	if got := Progress(nil); got != nil {
		t.Errorf("Progress without a DataVolume = %d", *got)
	}
}

func show(percent *int32) any {
	if percent == nil {
		return nil
	}
	return *percent
}
