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
	"time"

	"github.com/google/go-cmp/cmp"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

func TestClassOf(t *testing.T) {
	var (
		repl, local, other, gone, none = "repl", "local", "other", "gone", ""

		noon    = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		classes = storageclass.Classes{
			{Name: "v-def", Created: noon, VirtDefault: true},
			{Name: "k-def", Created: noon.Add(time.Second), Default: true},
			{Name: "repl"}, {Name: "local"}, {Name: "other"}, {Name: "replicated"},
		}
		noDefault = storageclass.Classes{{Name: "repl"}}
	)
	declares := func(class *string, changes ...func(*DataVolume)) *DataVolume {
		return atPhase(cdiv1.Pending, append(changes, func(dv *DataVolume) { dv.StorageClass = class })...)
	}
	viaPVC := func(dv *DataVolume) { dv.Template = TemplatePVC }
	viaNothing := func(dv *DataVolume) { dv.Template = TemplateNone }
	archive := func(dv *DataVolume) { dv.ContentType = "archive" }

	for _, test := range []struct {
		name    string
		dv      *DataVolume
		claim   *Claim
		classes storageclass.Classes
		want    Class
	}{
		{
			name: "what is declared is in effect before there is a claim",
			dv:   declares(&repl), classes: classes,
			want: Class{Declared: &repl, Effective: "repl"},
		},
		{
			name: "what is declared wins over what is bound",
			dv:   declares(&repl), claim: boundClaim(classed(&local)), classes: classes,
			want: Class{Declared: &repl, Bound: &local, Effective: "repl"},
		},
		{
			name: "what is bound wins over every default",
			dv:   declares(nil), claim: boundClaim(classed(&other)), classes: classes,
			want: Class{Bound: &other, Effective: "other"},
		},
		{
			name: "what a pending claim asks for wins over every default",
			dv:   declares(nil), claim: boundClaim(classed(&other), pendingClaim), classes: classes,
			want: Class{Bound: &other, Effective: "other"},
		},
		{
			name: "spec.storage without a class gets CDI's default",
			dv:   declares(nil), classes: classes,
			want: Class{Effective: "v-def", FromDefault: true},
		},
		{
			name: "spec.storage of content type archive passes over the virt default",
			dv:   declares(nil, archive), classes: classes,
			want: Class{Effective: "k-def", FromDefault: true},
		},
		{
			name: "spec.pvc without a class gets Kubernetes' default",
			dv:   declares(nil, viaPVC), classes: classes,
			want: Class{Effective: "k-def", FromDefault: true},
		},
		{
			name: "a pending claim without a class gets Kubernetes' default",
			dv:   declares(nil), claim: boundClaim(classed(nil), pendingClaim), classes: classes,
			want: Class{Effective: "k-def", FromDefault: true},
		},
		{
			name: "nothing is predicted for a DataVolume that describes no claim",
			dv:   declares(nil, viaNothing), classes: classes,
			want: Class{},
		},
		{
			name: "the claim of another DataVolume says nothing",
			dv:   declares(nil), claim: boundClaim(anothers, classed(&other)), classes: classes,
			want: Class{Effective: "v-def", FromDefault: true},
		},
		{
			name: "without a default there is none to predict",
			dv:   declares(nil), classes: noDefault,
			want: Class{Problem: NoDefault},
		},
		{
			name: "a virt default is none to spec.pvc",
			dv:   declares(nil, viaPVC), classes: storageclass.Classes{{Name: "v-def", VirtDefault: true}},
			want: Class{Problem: NoDefault},
		},
		{
			name: "the empty class is no class at all, and no default replaces it",
			dv:   declares(&none), classes: classes,
			want: Class{Declared: &none, Problem: NoClass},
		},
		{
			name: "the empty class of a claim is no class at all either",
			dv:   declares(nil), claim: boundClaim(classed(&none), pendingClaim), classes: classes,
			want: Class{Bound: &none, Problem: NoClass},
		},
		{
			name: "a claim that is bound without a class will not get one",
			dv:   declares(nil), claim: boundClaim(classed(nil)), classes: classes,
			want: Class{Problem: NoClass},
		},
		{
			name: "a claim on a class that was adopted under the empty class is on that class",
			dv:   declares(&none), claim: boundClaim(classed(&local)), classes: classes,
			want: Class{Declared: &none, Bound: &local, Effective: "local"},
		},
		{
			name: "a class that does not exist is not replaced by a default",
			dv:   declares(&gone), classes: classes,
			want: Class{Declared: &gone, Effective: "gone", Problem: NotFound},
		},
		{
			name: "a class that does not exist is a problem while the claim is pending",
			dv:   declares(nil), claim: boundClaim(classed(&gone), pendingClaim), classes: classes,
			want: Class{Bound: &gone, Effective: "gone", Problem: NotFound},
		},
		{
			name: "a class that was deleted later is no problem to a bound claim",
			dv:   declares(&gone), claim: boundClaim(classed(&gone)), classes: classes,
			want: Class{Declared: &gone, Bound: &gone, Effective: "gone"},
		},
		{
			name:  "a bare claim declares nothing",
			claim: boundClaim(nobodys, classed(&repl)), classes: classes,
			want: Class{Bound: &repl, Effective: "repl"},
		},
		{
			name:  "a bare claim without a class that is pending gets Kubernetes' default",
			claim: boundClaim(nobodys, classed(nil), pendingClaim), classes: classes,
			want: Class{Effective: "k-def", FromDefault: true},
		},
		{
			name: "nothing has no class", classes: classes,
			want: Class{},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ClassOf(test.dv, test.claim, test.classes)); diff != "" {
				t.Errorf("ClassOf (-want +got):\n%s", diff)
			}
		})
	}
}
