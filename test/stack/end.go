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
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// shownLog is how much of the server's log is shown when a test has failed.
	shownLog = 4 << 10
	// faultLines are shown of each fault.
	faultLines = 60
)

// End shows the end of the server's log if tests have failed, and stops the stack. It fails for what the log must not
// hold, and for what its check finds, too.
func (s *Stack) End(failed bool) error {
	log, err := s.ServerLog()
	if failed {
		fmt.Fprintf(os.Stderr, "The end of the server's log:\n%s\n", log[max(0, len(log)-shownLog):])
	}
	if s.check != nil {
		err = errors.Join(err, s.check(s))
	}
	return errors.Join(err, faults(log, s.fault), s.Stop())
}

// faults returns an error that shows each different fault of a log once.
func faults(log string, fault func(line string) string) error {
	if fault == nil {
		return nil
	}
	var errs []error
	seen := sets.New("")
	lines := strings.Split(log, "\n")
	for i, line := range lines {
		if kind := fault(line); !seen.Has(kind) {
			seen.Insert(kind)
			errs = append(errs, fmt.Errorf("the server's log holds a fault:\n%s", strings.Join(lines[i:min(len(lines), i+faultLines)], "\n")))
		}
	}
	return errors.Join(errs...)
}
