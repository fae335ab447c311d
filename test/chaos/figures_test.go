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

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// figures are what the tests measured, one line each.
type figures struct {
	mu    sync.Mutex
	lines []string
}

// note reports what a test measured, in its log and in the table.
func (f *figures) note(t *testing.T, what, format string, values ...any) {
	t.Helper()
	figure := fmt.Sprintf(format, values...)
	t.Logf("%s: %s", what, figure)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, fmt.Sprintf("| `%s` | %s | %s |", t.Name(), what, figure))
}

// write makes the table, where one is asked for.
func (f *figures) write(path string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	table := "| test | what | measured |\n|---|---|---|\n" + strings.Join(f.lines, "\n") + "\n"
	return os.WriteFile(path, []byte(table), 0o600)
}

// spread describes durations by their median and their greatest.
func spread(durations []time.Duration) string {
	sorted := slices.Sorted(slices.Values(durations))
	return fmt.Sprintf("median %v, longest %v of %d", rounded(sorted[len(sorted)/2]), rounded(sorted[len(sorted)-1]), len(sorted))
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
