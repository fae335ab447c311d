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

package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/cozystack/workerimage-apiserver/test/stack"
)

var (
	// broken matches what no log of a server may hold, whatever is done to it.
	broken = regexp.MustCompile(`(?i)panic:|fatal error|tenant-[abc]`)
	// refused matches what the log of a server may not hold as long as it is installed.
	refused = regexp.MustCompile(`(?i)forbidden`)
)

const (
	// shownLog is how much of each log is shown when a test has failed.
	shownLog = 2 << 10
	// faultLines are shown of a fault.
	faultLines = 40
)

// readLogs returns what the servers have written, by the names of their pods.
func readLogs(s *stack.Stack) (map[string]string, error) {
	paths, err := s.PodLogs()
	if err != nil {
		return nil, err
	}
	logs := make(map[string]string, len(paths))
	for pod, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		logs[pod] = string(content)
	}
	return logs, nil
}

func showLogs(logs map[string]string) {
	for pod, log := range logs {
		fmt.Fprintf(os.Stderr, "The end of the log of %s:\n%s\n", pod, log[max(0, len(log)-shownLog):])
	}
}

// faults returns an error that shows the first line of each log that matches.
func faults(logs map[string]string, fault *regexp.Regexp) error {
	var errs []error
	for pod, log := range logs {
		lines := strings.Split(log, "\n")
		for i, line := range lines {
			if fault.MatchString(line) {
				excerpt := strings.Join(lines[i:min(len(lines), i+faultLines)], "\n")
				errs = append(errs, fmt.Errorf("the log of %s holds a fault:\n%s", pod, excerpt))
				break
			}
		}
	}
	return errors.Join(errs...)
}
