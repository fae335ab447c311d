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
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
)

// downTimeout is longer than all processes of a stack may take to end one after the other.
const downTimeout = 2 * time.Minute

func newDownCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "down",
		Short: "End the stack of a directory and wait until it is gone.",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), downTimeout)
			defer cancel()
			err := cluster.StopRunning(ctx, dir)
			if errors.Is(err, cluster.ErrNotRunning) {
				_, err = fmt.Fprintln(os.Stdout, "no stack runs in", dir)
			}
			return err
		},
	}
	command.Flags().StringVar(&dir, "dir", defaultDir, "directory of the stack")
	return command
}
