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

// stack builds, starts and stops the development stack: a real control plane and real CDI on one machine, with the server
// under development behind an APIService.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/hack/stack/binaries"
	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	// What a step fails with is in its error; the client library's own remarks on a stack that is coming up are not news.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return newCommand().ExecuteContext(ctx)
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "stack",
		Short:         "A real control plane and real CDI on this machine, for development and tests.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newBuildCommand(), newOpenTofuCommand(), newUpCommand(), newDownCommand())
	return command
}

func newBuildCommand() *cobra.Command {
	var source, kubernetes string
	command := &cobra.Command{
		Use:   "build",
		Short: "Build what a stack runs, unless the cache has it.",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			set, err := build(command.Context(), source, kubernetes, progress.NewReporter(os.Stdout))
			if err != nil {
				return err
			}
			for _, path := range []string{set.Etcd, set.KubeAPIServer, set.KubeControllerManager, set.Kubectl, set.CDIController, set.CDIAPIServer, set.CDIManifests} {
				if _, err := fmt.Fprintln(os.Stdout, path); err != nil {
					return err
				}
			}
			return nil
		},
	}
	addSourceFlag(command, &source)
	addKubernetesFlag(command, &kubernetes)
	return command
}

func newOpenTofuCommand() *cobra.Command {
	var source string
	command := &cobra.Command{
		Use:   "opentofu",
		Short: "Build OpenTofu, which the tests of the Terraform provider run, unless the cache has it.",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			source, err := orFindSource(source)
			if err != nil {
				return err
			}
			path, err := binaries.EnsureOpenTofu(command.Context(), binaries.Options{Source: source, Progress: progress.NewReporter(os.Stderr)})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(os.Stdout, path)
			return err
		},
	}
	addSourceFlag(command, &source)
	return command
}

func addSourceFlag(command *cobra.Command, source *string) {
	command.Flags().StringVar(source, "source", "", "directory of the pinned modules (default hack/stack of the repository around the working directory)")
}

func addKubernetesFlag(command *cobra.Command, kubernetes *string) {
	command.Flags().StringVar(kubernetes, "kubernetes", "", "minor of the control plane, such as 1.36 (default the one of hack/stack/kubernetes)")
}

func build(ctx context.Context, source, kubernetes string, report *progress.Reporter) (*binaries.Set, error) {
	source, err := orFindSource(source)
	if err != nil {
		return nil, err
	}
	return binaries.Ensure(ctx, binaries.Options{Source: source, Kubernetes: kubernetes, Progress: report})
}

func orFindSource(source string) (string, error) {
	if source != "" {
		return source, nil
	}
	return binaries.FindSource()
}
