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

// Package server turns flags into a running server.
package server

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
)

// NewCommand returns the command that serves until ctx is done.
func NewCommand(ctx context.Context) *cobra.Command {
	utilruntime.Must(useFeaturesOfKubernetes())
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "workerimage-apiserver",
		Short: "Serve the golden Talos images of a Cozystack cluster",
		Long: "Serves images.cozystack.io/v1alpha1 as an aggregated API: the golden Talos images of a Cozystack cluster, " +
			"computed live from its DataVolumes, claims, storage classes and node pools.\n\n" +
			"With --snapshot it serves the same from manifests in files, on the loopback interface, without a cluster.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := o.Complete(); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			// The logger belongs to the process, so flags that are refused leave it alone.
			if err := logsapi.ValidateAndApply(o.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			cliflag.PrintFlags(cmd.Flags())
			return run(cmd.Context(), o)
		},
	}
	cmd.SetContext(ctx)

	sets := o.Flags()
	verflag.AddFlags(sets.FlagSet("global"))
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	cols := 0
	cliflag.SetUsageAndHelpFunc(cmd, sets, cols)
	return cmd
}

// useFeaturesOfKubernetes has k8s.io/apiserver do what its own version does. It takes the version of the program for that
// of Kubernetes, and one that begins with 0 for older than most of its features.
func useFeaturesOfKubernetes() error {
	kubernetes, err := utilversion.Parse(version.DefaultKubeBinaryVersion)
	if err != nil {
		return err
	}
	return utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(kubernetes)
}

func run(ctx context.Context, o *Options) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version.Get().GitVersion)
	config, err := o.Config(ctx)
	if err != nil {
		return err
	}
	server, err := config.Complete().New()
	if err != nil {
		return fmt.Errorf("set up the server: %w", err)
	}
	if err := server.Run(ctx); err != nil {
		return err
	}
	logger.Info("Stopped")
	return nil
}
