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

package wire

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Answer is a response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Took   time.Duration
}

// Decode reads an answer that must be a good one.
func (a Answer) Decode(t *testing.T, into any) {
	t.Helper()
	if a.Status != http.StatusOK {
		t.Fatalf("the answer is %d: %.500s", a.Status, a.Body)
	}
	decode(t, a.Body, into)
}

// List reads an answer that must be a list.
func (a Answer) List(t *testing.T) *unstructured.UnstructuredList {
	t.Helper()
	var l unstructured.UnstructuredList
	a.Decode(t, &l)
	return &l
}

// Object reads an answer that must be an object.
func (a Answer) Object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	a.Decode(t, &o)
	return &o
}

// Refused returns the Status of an answer that must be a refusal, with this code and, if one is given, this reason.
func (a Answer) Refused(t *testing.T, code int, reason metav1.StatusReason) metav1.Status {
	t.Helper()
	var status metav1.Status
	if a.Status != code {
		t.Fatalf("the answer is %d, not %d: %.500s", a.Status, code, a.Body)
	}
	decode(t, a.Body, &status)
	CheckStatus(t, status, code, reason)
	return status
}

// CheckStatus makes sure that a Status is a refusal that says something, with this code and, if one is given, this reason.
func CheckStatus(t *testing.T, status metav1.Status, code int, reason metav1.StatusReason) {
	t.Helper()
	if status.Kind != "Status" || status.Status != metav1.StatusFailure || int(status.Code) != code || status.Message == "" {
		t.Errorf("not a Status of code %d that says something: %+v", code, status)
	}
	if reason != "" && status.Reason != reason {
		t.Errorf("the reason is %s, not %s: %s", status.Reason, reason, status.Message)
	}
}

func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("decode %.500s: %v", content, err)
	}
}
