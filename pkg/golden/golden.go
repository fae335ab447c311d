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
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// uidSpace is the name space of the uids that UID derives. They must stay the same over restarts and
// releases, so it must never change.
const uidSpace = "8d0f7a52-5f0e-4b7c-9c40-2f8f1f6e3b1d"

// Exists is true if there is a golden: a DataVolume, or a bare claim of a golden's name that CDI filled and
// that was bound, or that a DataVolume had made and that is being deleted after it. Another claim is not a
// golden by itself, whether its DataVolume has just gone or has not been seen yet.
func Exists(dv *DataVolume, claim *Claim) bool {
	if dv != nil {
		return true
	}
	if claim == nil {
		return false
	}
	complete := claim.Populated && (claim.Phase == corev1.ClaimBound || claim.Phase == corev1.ClaimLost)
	leaving := claim.Deleting && (claim.Owner != "" || claim.CreatedFor != "")
	_, named := ParseName(claim.Name)
	return named && (complete || leaving)
}

// UID derives the uid under which the golden is served. It is the same with the DataVolume and with the
// claim that the DataVolume leaves behind, and never the uid of either.
func UID(dv *DataVolume, claim *Claim) types.UID {
	var origin types.UID
	switch {
	case dv != nil:
		origin = dv.UID
	case claim == nil:
		return ""
	case claim.CreatedFor != "":
		origin = claim.CreatedFor
	case claim.Owner != "":
		origin = claim.Owner
	default:
		origin = claim.UID
	}
	return types.UID(uuid.NewSHA1(uuid.MustParse(uidSpace), []byte(origin)).String())
}

// Size returns the size that was asked for, as it was written: the DataVolume's word, else the claim's
// request. The capacity of the claim may be larger, and is nobody's wish.
func Size(dv *DataVolume, claim *Claim) string {
	if dv != nil && dv.Size != "" {
		return dv.Size
	}
	if own := OwnClaim(dv, claim); own != nil {
		return own.Requested
	}
	return ""
}

var progressRegexp = regexp.MustCompile(`^([0-9]{1,3})(?:\.([0-9]+))?%$`)

// Progress returns the whole percent that CDI reports, rounded down, and nil if it reports none.
func Progress(dv *DataVolume) *int32 {
	if dv == nil {
		return nil
	}
	match := progressRegexp.FindStringSubmatch(dv.Progress)
	if match == nil {
		return nil
	}
	whole, _ := strconv.ParseInt(match[1], 10, 32)
	if whole > 100 || (whole == 100 && strings.Trim(match[2], "0") != "") {
		return nil
	}
	percent := int32(whole)
	return &percent
}
