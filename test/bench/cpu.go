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

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clientProcess is this process.
const clientProcess = "client"

// charged are the processes that work for a request.
var charged = []string{apiServer, serverProcess, limitProcess, clientProcess}

// usage is CPU time by process.
type usage map[string]time.Duration

// usage returns what each process has used so far.
func (b *bench) usage() (usage, error) {
	used := usage{}
	for _, name := range charged {
		var err error
		if used[name], err = cpuTime(b.pid(name)); err != nil {
			return nil, fmt.Errorf("CPU time of %s: %w", name, err)
		}
	}
	return used, nil
}

// minus returns what was used since before.
func (u usage) minus(before usage) usage {
	out := usage{}
	for name, used := range u {
		out[name] = max(used-before[name], 0)
	}
	return out
}

func (u usage) total() time.Duration {
	var sum time.Duration
	for _, used := range u {
		sum += used
	}
	return sum
}

// cpuTime adds up what the scheduler has given to the threads of a process. It is exact to the nanosecond, where
// the times of the process itself come in hundredths of a second.
func cpuTime(pid string) (time.Duration, error) {
	threads, err := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
	if err != nil {
		return 0, err
	}
	if len(threads) == 0 {
		return 0, fmt.Errorf("no threads of process %s", pid)
	}
	var sum int64
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		first, _, _ := bytes.Cut(content, []byte(" "))
		ns, err := strconv.ParseInt(string(first), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += ns
	}
	return time.Duration(sum), nil
}
