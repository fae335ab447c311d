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

package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Reporter writes one line per step, each with the seconds since the Reporter was made.
type Reporter struct {
	started time.Time

	mu  sync.Mutex
	out io.Writer
}

// NewReporter returns a Reporter that writes to out.
func NewReporter(out io.Writer) *Reporter {
	return &Reporter{started: time.Now(), out: out}
}

// Step writes a line.
func (r *Reporter) Step(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%7.1fs  %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, args...))
}
