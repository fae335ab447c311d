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

package process

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// parentEnv makes the test binary the parent of the test on orphans.
const parentEnv = "PROCESS_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		beParent(dir)
		return
	}
	os.Exit(m.Run())
}

func TestStopEndsAProcessAndCountsAsExpected(t *testing.T) {
	group := start(t, "sleep", "1000")
	pid := group.Running()["sleep"].PID
	if err := group.Stop("sleep"); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Errorf("process %d runs on", pid)
	}
	select {
	case err := <-group.Failed():
		t.Errorf("reported as a failure: %v", err)
	default:
	}
	if running := group.Running(); len(running) > 0 {
		t.Errorf("still listed: %v", running)
	}
}

func TestAProcessThatEndsByItselfIsAFailureWithTheEndOfItsLog(t *testing.T) {
	group := start(t, "sh", "-c", "echo out of cheese; exit 3")
	select {
	case err := <-group.Failed():
		if text := err.Error(); !strings.Contains(text, "exit status 3") || !strings.Contains(text, "out of cheese") {
			t.Errorf("got %v", err)
		}
	case <-t.Context().Done():
		t.Error("no failure reported")
	}
}

func TestRestartRunsTheSameProgramAgain(t *testing.T) {
	group := start(t, "sleep", "1000")
	before := group.Running()["sleep"].PID
	if err := group.Kill("sleep"); err != nil {
		t.Fatal(err)
	}
	if err := group.Restart("sleep"); err != nil {
		t.Fatal(err)
	}
	after := group.Running()["sleep"].PID
	if after == before || !alive(after) {
		t.Errorf("process %d before, %d after", before, after)
	}
	if err := group.Start(Spec{Name: "sleep", Path: "sleep", Args: []string{"1"}}); err == nil {
		t.Error("a second process of the same name was started")
	}
}

func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(child) {
		t.Fatalf("the child %d is not running", child)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return !alive(child), nil
	}); err != nil {
		t.Errorf("the child %d outlives its parent", child)
	}
}

// beParent starts a child, says which, and waits to be killed.
func beParent(dir string) {
	group := NewGroup(dir)
	if err := group.Start(Spec{Name: "sleep", Path: "sleep", Args: []string{"1000"}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, group.Running()["sleep"].PID)
	select {}
}

func start(t *testing.T, name string, args ...string) *Group {
	t.Helper()
	group := NewGroup(t.TempDir())
	t.Cleanup(func() {
		if err := group.StopAll(); err != nil {
			t.Error(err)
		}
	})
	if err := group.Start(Spec{Name: name, Path: name, Args: args}); err != nil {
		t.Fatal(err)
	}
	return group
}

// alive says whether a process runs. One that has ended and was not waited for, as orphans in a container may be, does
// not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
