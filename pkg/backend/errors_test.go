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

package backend

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answers are what a cluster may say to a write, and what the user is told.
var answers = []struct {
	name string
	said error
	code int32
	// words are in what the user is told, and the answer is word for word.
	words    string
	verbatim bool
}{
	{
		name:     "a refusal of CDI's webhook",
		said:     denied(http.StatusUnprocessableEntity, "admission webhook \"datavolume-validate.cdi.kubevirt.io\" denied the request:  Destination PVC cozy-public/x already exists"),
		code:     http.StatusUnprocessableEntity,
		words:    "Destination PVC cozy-public/x already exists",
		verbatim: true,
	},
	{
		name:     "a refusal of another webhook that denies without a code",
		said:     denied(http.StatusForbidden, "admission webhook \"policy.example.org\" denied the request: no goldens on Fridays"),
		code:     http.StatusForbidden,
		words:    "no goldens on Fridays",
		verbatim: true,
	},
	{
		name: "an exceeded quota",
		said: apierrors.NewForbidden(dataVolumes, name, errors.New("exceeded quota: goldens, requested: 1, used: 5, limited: 5")),
		code: http.StatusForbidden, words: "exceeded quota", verbatim: true,
	},
	{
		name: "a right that the server's own account lacks",
		said: apierrors.NewForbidden(dataVolumes, name, fmt.Errorf("%s", `User "system:serviceaccount:cozy-system:workerimage-apiserver" cannot create resource "datavolumes"`)),
		code: http.StatusInternalServerError, words: "the server's own account lacks a right",
	},
	{
		name: "CDI's webhook down",
		said: apierrors.NewInternalError(errors.New(`failed calling webhook "datavolume-mutate.cdi.kubevirt.io": connect: connection refused`)),
		code: http.StatusServiceUnavailable, words: "nothing was changed; try again",
	},
	{
		name: "an internal error of another kind",
		said: apierrors.NewInternalError(errors.New("the database is full")),
		code: http.StatusInternalServerError, words: "the database is full", verbatim: true,
	},
	{
		name: "no connection",
		said: &url.Error{Op: "Post", URL: "https://10.96.0.1/apis", Err: syscall.ECONNREFUSED},
		code: http.StatusServiceUnavailable, words: "the cluster cannot be reached, or does not answer; try again",
	},
	{
		name: "an API server that is too busy",
		said: apierrors.NewTooManyRequests("try again", 3),
		code: http.StatusTooManyRequests, words: "try again", verbatim: true,
	},
}

var dataVolumes = schema.GroupResource{Group: "cdi.kubevirt.io", Resource: "datavolumes"}

// denied is the answer to what a webhook denies: it has no reason.
func denied(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

func TestWhatTheClusterSaysIsPassedOn(t *testing.T) {
	for _, test := range answers {
		t.Run(test.name+", to a create", func(t *testing.T) {
			f := newFixture()
			f.dataVolumes.refusal = test.said
			_, err := f.Create(t.Context(), "", image())
			checkAnswer(t, err, test.said, test.code, test.words, test.verbatim)
			if len(f.observer.awaited) != 0 {
				t.Errorf("waits for %v", f.observer.awaited)
			}
			checkAnswer(t, f.DryRunCreate(t.Context(), image()), test.said, test.code, test.words, test.verbatim)
		})
		for of, published := range everyGolden {
			t.Run(fmt.Sprintf("%s, to an update and a deletion of %s", test.name, of), func(t *testing.T) {
				f := newFixture()
				before := published(f, t)
				f.of(before).refusal = test.said
				_, err := f.Update(t.Context(), "", before, labelled(before, "a"))
				checkAnswer(t, err, test.said, test.code, test.words, test.verbatim)
				_, err = f.Delete(t.Context(), "", before)
				checkAnswer(t, err, test.said, test.code, test.words, test.verbatim)
			})
		}
	}
}

func TestWithoutCDIOrItsNamespaceNothingIsMade(t *testing.T) {
	for what, said := range map[string]error{
		"no such kind":      apierrors.NewGenericServerResponse(http.StatusNotFound, "post", dataVolumes, "", "404 page not found", 0, true),
		"no such namespace": apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, goldens),
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture()
			f.dataVolumes.refusal = said
			_, err := f.Create(t.Context(), "", image())
			checkAnswer(t, err, said, http.StatusServiceUnavailable, "CDI is not installed, or the namespace is missing", false)
		})
	}
}

func TestAGoldenThatCannotBeReadIsNotWritten(t *testing.T) {
	for of, published := range everyGolden {
		t.Run(of, func(t *testing.T) {
			f := newFixture()
			before := published(f, t)
			f.of(before).unreadable = &url.Error{Op: "Get", URL: "https://10.96.0.1/apis", Err: syscall.ECONNREFUSED}
			if _, err := f.Update(t.Context(), "", before, labelled(before, "a")); !apierrors.IsServiceUnavailable(err) {
				t.Errorf("update: got %v", err)
			}
			if _, err := f.Delete(t.Context(), "", before); !apierrors.IsServiceUnavailable(err) {
				t.Errorf("delete: got %v", err)
			}
			if len(f.of(before).writes) != 0 {
				t.Errorf("writes %v", f.of(before).writes)
			}
		})
	}
}

// A webhook that hangs would hold a write up for half a minute.
func TestAClusterThatDoesNotAnswerIsNotWaitedForLong(t *testing.T) {
	for of, published := range everyGolden {
		t.Run(of, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture()
				before := published(f, t)
				f.dataVolumes.hangs, f.claims.hangs = true, true
				begin := time.Now()
				_, err := f.Create(t.Context(), "", image())
				checkHung(t, "create", err, begin)
				begin = time.Now()
				_, err = f.Update(t.Context(), "", before, labelled(before, "a"))
				checkHung(t, "update", err, begin)
				begin = time.Now()
				_, err = f.Delete(t.Context(), "", before)
				checkHung(t, "delete", err, begin)
			})
		})
	}
}

func checkHung(t *testing.T, verb string, err error, begin time.Time) {
	t.Helper()
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("%s: got %v", verb, err)
	}
	if took := time.Since(begin); took != writeTimeout {
		t.Errorf("%s took %v", verb, took)
	}
}

func checkAnswer(t *testing.T, err, said error, code int32, words string, verbatim bool) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got %v, which has no status", err)
	}
	if got := status.Status().Code; got != code {
		t.Errorf("code %d, want %d: %v", got, code, err)
	}
	if !strings.Contains(status.Status().Message, words) {
		t.Errorf("%q does not say %q", status.Status().Message, words)
	}
	if strings.Contains(err.Error(), "https://") {
		t.Errorf("%q says where the cluster was looked for", err)
	}
	if verbatim && err.Error() != said.Error() {
		t.Errorf("%q, and not what was said: %q", err, said)
	}
}
