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
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// logTail is how much of its log is shown when a process ends by itself.
	logTail = 2048
	// stopGrace is how long a process may take to end after a signal.
	stopGrace = 10 * time.Second
)

// Child is one run of a program.
type Child struct {
	name     string
	cmd      *exec.Cmd
	done     chan struct{}
	expected atomic.Bool
}

// Start runs a program until it ends, and appends its output to a log; onFailure hears of the end if nobody asked for it.
func Start(spec Spec, log string, onFailure func(error)) (*Child, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	c := &Child{name: spec.Name, cmd: exec.Command(spec.Path, spec.Args...), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), spec.Env...)
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = endsWithParent()
	started := make(chan error)
	go func() {
		// The kernel takes the end of this thread for the death of the parent, so the thread is kept for the wait.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = c.cmd.Wait()
		close(c.done)
		if !c.expected.Load() {
			onFailure(fmt.Errorf("%s ended: %w\n%s", c.name, reason(err), tail(log)))
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return c, nil
}

func (c *Child) pid() int {
	return c.cmd.Process.Pid
}

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} {
	return c.done
}

func (c *Child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// End sends the signal and waits; a process that has not ended after the grace is killed.
func (c *Child) End(signal syscall.Signal, grace time.Duration) error {
	c.expected.Store(true)
	if err := c.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", c.name, err)
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-c.done:
		return nil
	case <-patience.C:
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", c.name, err)
	}
	<-c.done
	return nil
}

func reason(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-logTail):])
}
