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

package stack

import (
	"regexp"
	"strings"
	"testing"
)

func TestEachFaultOfALogIsShownOnce(t *testing.T) {
	log := "starting\nWARNING: DATA RACE\nWrite at\nforbidden: a\nforbidden: b\n"
	err := faults(log, regexp.MustCompile(`DATA RACE|forbidden`).FindString)
	if err == nil {
		t.Fatal("there is none")
	}
	said := err.Error()
	for _, want := range []string{"fault:\nWARNING: DATA RACE\nWrite at\n", "fault:\nforbidden: a\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "fault:\nforbidden: b") {
		t.Errorf("it says that twice:\n%s", said)
	}
}

func TestALogWithoutFaultsIsFine(t *testing.T) {
	if err := faults("starting\n", regexp.MustCompile(`DATA RACE`).FindString); err != nil {
		t.Error(err)
	}
}
