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

// run starts the server on a snapshot, tells a newcomer what to try, and stops it again.
//
//	run [--detach] --server BINARY --dir DIR PATH...
//	run --stop --dir DIR
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
	pollInterval = 50 * time.Millisecond
)

type options struct {
	server string
	dir    string
	detach bool
	stop   bool
	paths  []string
}

func (o options) kubeconfig() string { return filepath.Join(o.dir, "run.kubeconfig") }
func (o options) log() string        { return filepath.Join(o.dir, "run.log") }
func (o options) pid() string        { return filepath.Join(o.dir, "run.pid") }

func main() {
	var o options
	flag.StringVar(&o.server, "server", "", "the server's binary")
	flag.StringVar(&o.dir, "dir", "_output", "where the kubeconfig, the log and the process id are kept")
	flag.BoolVar(&o.detach, "detach", false, "return when the server is ready")
	flag.BoolVar(&o.stop, "stop", false, "end the server that was started with --detach")
	flag.Parse()
	o.paths = flag.Args()

	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if o.stop {
		return stop(ctx, o)
	}
	return start(ctx, o)
}

// start runs the server. The lock on the file with its process id passes to the server and is free again
// when the server has ended, however it ends.
func start(ctx context.Context, o options) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(o.pid(), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if !tryLock(lock) {
		return errors.New("it is running already; `make stop` ends it")
	}
	if err := os.Remove(o.kubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}

	cmd := exec.Command(o.server, o.serverArgs()...)
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if o.detach {
		log, err := os.Create(o.log())
		if err != nil {
			return err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	if err := writePID(lock, cmd.Process.Pid); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()

	if err := o.waitUntilReady(ctx, exited); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	o.greet()
	if o.detach {
		return nil
	}
	select {
	case err = <-exited:
	case <-ctx.Done():
		// Ctrl-C reaches the server too, since it is in the same process group; SIGTERM does not.
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err = <-exited
	}
	return err
}

func (o options) serverArgs() []string {
	args := []string{"--snapshot-kubeconfig=" + o.kubeconfig()}
	for _, p := range o.paths {
		args = append(args, "--snapshot="+p)
	}
	return args
}

func (o options) waitUntilReady(ctx context.Context, exited chan error) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-exited:
			exited <- err
			return false, fmt.Errorf("the server ended: %w", errors.Join(err, o.logTail()))
		default:
		}
		config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig())
		if err != nil {
			return false, nil // not written yet
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return false, err
		}
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the server is ready: %w", err)
	}
	return nil
}

// logTail is what a detached server said last.
func (o options) logTail() error {
	if !o.detach {
		return nil
	}
	content, err := os.ReadFile(o.log())
	if err != nil {
		return err
	}
	const tail = 2000
	return errors.New(string(content[max(0, len(content)-tail):]))
}

func (o options) greet() {
	fmt.Printf(`
The sample snapshot is served. Files may be edited while it runs: they are read again.

  export KUBECONFIG=%s
  kubectl get workerimages -o wide
  kubectl get workerimages -w
  kubectl get wi --field-selector status.phase=Ready
  kubectl describe wi | less
  kubectl explain workerimage.status.pools --recursive

`, absolute(o.kubeconfig()))
	if o.detach {
		fmt.Println("`make stop` ends it.")
	} else {
		fmt.Println("Ctrl-C ends it.")
	}
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// stop ends the server that holds the lock, and returns when it has ended.
func stop(ctx context.Context, o options) error {
	lock, err := os.Open(o.pid())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if tryLock(lock) {
		return nil
	}
	content, err := os.ReadFile(o.pid())
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("read the process id: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, stopTimeout, true, func(context.Context) (bool, error) {
		return tryLock(lock), nil
	})
	if err != nil {
		return fmt.Errorf("process %d has not ended: %w", pid, err)
	}
	return nil
}

func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func writePID(f *os.File, pid int) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}
