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

package model

import (
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

var (
	seeds  = flag.Int("seeds", 40, "how many sequences to run")
	seed   = flag.Uint64("seed", 0, "the first seed; alone, the only one")
	steps  = flag.Int("steps", 6, "how many steps a sequence has")
	report = flag.String("report", "", "file for a report")
)

func TestMain(m *testing.M) {
	flag.Parse()
	logs := flag.NewFlagSet("logs", flag.ExitOnError)
	klog.InitFlags(logs)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := logs.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	klog.SetOutput(io.Discard) // sources are broken all the time
	os.Exit(m.Run())
}

// tally counts what happened.
type tally struct {
	Sequences, Steps, Changes, Disturbances, AccessChanges, Restarts int
	Requests, Lists, Pages, Watches, Initial, Events, Bookmarks      int
	Cuts, Resumes, Timeouts, Gone, Unready                           int
	Comparisons, Exact, Oracles                                      int
}

func (a *tally) add(b tally) {
	sum, more := reflect.ValueOf(a).Elem(), reflect.ValueOf(b)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
}

// TestEveryClientHasWhatIsThere runs sequences. One that fails is run again with fewer steps, so that the shortest
// that fails is reported.
func TestEveryClientHasWhatIsThere(t *testing.T) {
	count := *seeds
	if isGiven("seed") && !isGiven("seeds") {
		count = 1
	}
	run := &soak{T: t, started: time.Now(), count: count}
	t.Run("seeds", func(t *testing.T) {
		for n := range count {
			t.Run(fmt.Sprint(*seed+uint64(n)), func(t *testing.T) {
				t.Parallel()
				run.run(t, *seed+uint64(n))
			})
		}
	})
	run.report()
}

func isGiven(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// soak runs sequences and adds up what happened.
type soak struct {
	*testing.T
	started time.Time
	count   int

	mu     sync.Mutex
	total  tally
	failed []uint64
}

// enough failures have something in common.
const enough = 5

func (s *soak) run(t *testing.T, seed uint64) {
	if s.isOver() {
		return
	}
	total, failed := sequence(t, seed, *steps)
	if failed != nil {
		for n := range min(failed.step, *steps) {
			if _, shorter := sequence(t, seed, n); shorter != nil {
				failed = shorter
				break
			}
		}
		t.Errorf("%v\nreplay it with\n  go test -race ./test/model -run '^TestEveryClientHasWhatIsThere$' -seed %d -steps %d", failed, seed, min(failed.step, *steps))
	}
	s.add(seed, total, failed != nil)
}

func (s *soak) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failed) >= enough
}

func (s *soak) add(seed uint64, total tally, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.add(total)
	if failed {
		s.failed = append(s.failed, seed)
	}
	if s.total.Sequences%500 == 0 {
		fmt.Fprintf(os.Stderr, "%d of %d sequences in %v\n", s.total.Sequences, s.count, time.Since(s.started).Round(time.Second))
	}
}

func (s *soak) report() {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		s.Fatal(err)
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	var out strings.Builder
	fmt.Fprintf(&out, "| | |\n|---|---|\n")
	figures := reflect.ValueOf(s.total)
	for i := range figures.NumField() {
		fmt.Fprintf(&out, "| %s | %d |\n", figures.Type().Field(i).Name, figures.Field(i).Int())
	}
	fmt.Fprintf(&out, "| Failed | %d |\n| CPU a sequence | %v |\n| Took | %v |\n", len(s.failed),
		(cpu / time.Duration(max(s.total.Sequences, 1))).Round(time.Millisecond), time.Since(s.started).Round(time.Second))
	s.Log("\n" + out.String())
	if *report != "" {
		if err := os.WriteFile(*report, []byte(out.String()), 0o600); err != nil {
			s.Error(err)
		}
	}
}
