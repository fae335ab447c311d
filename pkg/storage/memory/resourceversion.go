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

package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A resourceVersion is an epoch followed by a counter of events. An epoch is the second a process
// started, followed by a few bits that tell apart the processes that started in that second:
//
//	0 | seconds since 2026, 30 bits | identity, 11 bits | counter, 22 bits
//
// Versions of one process are dense and rise; those of a later process are higher. A version from
// another epoch says nothing about the state here, and is answered with 410 Gone, upon which
// clients list again. The top bit is zero because continue tokens, list options and storage errors
// carry a version as an int64.
const (
	secondBits   = 30
	identityBits = 11
	counterBits  = 63 - secondBits - identityBits

	eraStart = 1767225600 // 2026-01-01T00:00:00Z
)

// FirstResourceVersion is the version of the empty log of a process that started at start.
// Identity is what sets the process apart from others of its kind, such as its pod's uid.
func FirstResourceVersion(start time.Time, identity string) uint64 {
	sum := sha256.Sum256([]byte(identity))
	second := uint64(start.Unix() - eraStart)
	tag := binary.BigEndian.Uint64(sum[:]) & (1<<identityBits - 1)
	return firstOfEpoch(second<<identityBits|tag, counterBits)
}

// firstOfEpoch is never zero, which as the version of a list would mean "any". What exceeds the bits
// of an epoch is cut off, whatever the clock says.
func firstOfEpoch(epoch uint64, counterBits uint) uint64 {
	return (epoch<<counterBits)&math.MaxInt64 | 1
}

// nextEpoch is the first version after those of rv's epoch: that of the same process, had it
// started a second later.
func nextEpoch(rv uint64, counterBits uint) uint64 {
	return firstOfEpoch(rv>>counterBits+1<<identityBits, counterBits)
}

func errForeignVersion(rv, current uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d was issued by another server, or long ago: this one is at %d", rv, current))
}

func errListTooOld(rv, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d (%d)", rv, oldest))
}

func errWatchTooOld(rv, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", rv, oldest))
}
