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
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
)

const defaultDir = "_output/stack"

// followInterval is how often the output of a stack in the background is looked at while it starts.
const followInterval = 100 * time.Millisecond

type upOptions struct {
	source     string
	kubernetes string
	detach     bool
	cluster    cluster.Options
}

func newUpCommand() *cobra.Command {
	o := &upOptions{}
	command := &cobra.Command{
		Use:   "up [flags] [-- SERVER-ARGUMENT...]",
		Short: "Start a stack and keep it until interrupted.",
		RunE: func(command *cobra.Command, args []string) error {
			o.cluster.Server.Args = args
			return o.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.cluster.Dir, "dir", defaultDir, "directory of everything the stack writes")
	flags.StringVar(&o.cluster.Kubeconfig, "kubeconfig", "", "also write the administrator's kubeconfig to this file, and those of tenants beside it")
	flags.StringVar(&o.cluster.Server.Path, "server", "", "program of the server to run behind an APIService")
	flags.IntVar(&o.cluster.Server.Replicas, "replicas", 1, "how many servers to run; connections are spread over them")
	flags.StringVar(&o.cluster.Server.Manifests, "manifests", "", "directory of the manifests that the server is installed with")
	flags.StringToStringVar(&o.cluster.Images, "image", nil, "IMAGE=PROGRAM: run the program in place of containers of the image; may be given more than once")
	flags.StringArrayVar(&o.cluster.Load, "load", nil, "file or directory of manifests to apply; may be given more than once")
	flags.StringVar(&o.cluster.SimRules, "sim-rules", "", "rules the simulated node begins with")
	flags.BoolVar(&o.detach, "detach", false, "return when the stack is ready, and leave it running")
	addSourceFlag(command, &o.source)
	addKubernetesFlag(command, &o.kubernetes)
	return command
}

func (o *upOptions) run(ctx context.Context) error {
	o.cluster.Progress = progress.NewReporter(os.Stdout)
	set, err := build(ctx, o.source, o.kubernetes, o.cluster.Progress)
	if err != nil {
		return err
	}
	if o.detach {
		return o.runDetached(ctx)
	}
	o.cluster.Binaries = set
	restarts := make(chan os.Signal, 1)
	signal.Notify(restarts, syscall.SIGUSR1)
	defer signal.Stop(restarts)
	stack, err := cluster.Start(ctx, o.cluster)
	if err != nil {
		return err
	}
	o.cluster.Progress.Step("ready")
	printHints(os.Stdout, stack.State())
	o.attend(ctx, stack, restarts)
	failure := stack.Err()
	if err := stack.Stop(); err != nil {
		return err
	}
	return failure
}

// attend returns when the stack is to end, or has ended. Until then it runs the server again whenever it is told to.
func (o *upOptions) attend(ctx context.Context, stack *cluster.Cluster, restarts <-chan os.Signal) {
	for {
		select {
		case <-restarts:
			o.cluster.Progress.Step("restarting the server")
			if err := stack.RestartServer(ctx); err != nil {
				o.cluster.Progress.Step("the server does not come back: %v", err)
			}
		case <-ctx.Done():
			o.cluster.Progress.Step("stopping")
			return
		case <-stack.Done():
			return
		}
	}
}

// runDetached leaves the work to a process of its own session and shows what that says until the stack is ready.
func (o *upOptions) runDetached(ctx context.Context) error {
	if err := cluster.CheckFree(o.cluster.Dir); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(o.cluster.Dir, cluster.LogFile))
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return arg == "--detach" || arg == "--detach=true" })
	child := exec.Command(self, args...)
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	return o.follow(ctx, child.Process, ended)
}

// follow copies the output of the stack until it is ready. Being interrupted ends the stack too.
func (o *upOptions) follow(ctx context.Context, stack *os.Process, ended <-chan error) error {
	output, err := os.Open(filepath.Join(o.cluster.Dir, cluster.LogFile))
	if err != nil {
		return err
	}
	defer output.Close()
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	interrupted := ctx.Done()
	for {
		select {
		case err := <-ended:
			if _, copyErr := io.Copy(os.Stdout, output); copyErr != nil {
				return copyErr
			}
			return fmt.Errorf("the stack ended: %w", err)
		case <-interrupted:
			if err := stack.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			interrupted = nil
		case <-tick.C:
			state, err := cluster.ReadState(o.cluster.Dir)
			ready := err == nil && state.Ready && state.PID == stack.Pid
			if _, err := io.Copy(os.Stdout, output); err != nil {
				return err
			}
			if ready {
				return nil
			}
		}
	}
}

// printHints says where things are and what is worth a look.
func printHints(out io.Writer, s cluster.State) {
	kind := "datavolumes -A"
	if s.Server != "" {
		kind = "workerimages"
	}
	fmt.Fprintf(out, `
kubeconfig  %[1]s
kubectl     %[2]s
directory   %[3]s

  export KUBECONFIG=%[1]s PATH=%[4]s:$PATH
  kubectl get %[5]s -o wide
  kubectl get %[5]s -w
  kubectl get kubernetesnodeses -A
  kubectl --kubeconfig %[6]s get %[7]s
  kubectl get events -n cozy-public --sort-by .lastTimestamp
`, s.Kubeconfig, s.Kubectl, s.Dir, filepath.Dir(s.Kubectl), kind, s.Kubeconfigs["tenant-a"], tenantKind(s))
	fmt.Fprintf(out, "\nWhat the simulated node does is ordered in %s.\n", s.SimRules)
}

func tenantKind(s cluster.State) string {
	if s.Server != "" {
		return "workerimages"
	}
	return "kubernetesnodeses"
}
