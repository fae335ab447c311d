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

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/cozystack/workerimage-apiserver/hack/stack/balance"
	"github.com/cozystack/workerimage-apiserver/hack/stack/binaries"
	"github.com/cozystack/workerimage-apiserver/hack/stack/network"
	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
)

// Options say what to start, and where.
type Options struct {
	// Dir holds all files of the stack. What an ended stack left there is removed.
	Dir string
	// Binaries are the programs to run.
	Binaries *binaries.Set
	// Kubeconfig is where a copy of the administrator's kubeconfig is written, if anywhere, and copies of the
	// tenants' beside it, as TENANT.kubeconfig.
	Kubeconfig string
	// KindsOnly leaves out everything that acts on objects, and the objects that it would act on: there are
	// no controllers, no CDI, no node and no classes. CDI's kinds and the pool kind are served.
	KindsOnly bool
	// SimRules is a file with the rules the simulated node begins with; empty means nodesim.DefaultRules.
	SimRules string
	// Load lists files and directories of manifests that are applied once the stack is ready for them.
	Load []string
	// Images are programs, by the images of the containers in whose place the node runs them. If there are any, what makes
	// pods of Deployments is at work too, and kube-apiserver reaches them by their Services.
	Images map[string]string
	// Server is the server under development; without a Path none is started.
	Server ServerOptions
	// Progress hears of every step.
	Progress *progress.Reporter
}

// Cluster is a stack that runs.
type Cluster struct {
	options     Options
	dir         *directory
	slot        *slot
	credentials *credentials
	processes   *process.Group
	config      *rest.Config
	client      kubernetes.Interface
	applier     *applier
	balancer    *balance.Balancer
	network     *network.Network

	background sync.WaitGroup
	stopNode   context.CancelFunc
	stop       func() error

	ending sync.Once
	ended  chan struct{}
	cause  error
}

var errStopped = errors.New("stopped")

// Start starts a stack and returns when it is ready. Cancelling ctx afterwards has no effect on it.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{options: o, stopNode: func() {}, ended: make(chan struct{})}
	c.stop = sync.OnceValue(c.shutDown)
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.background.Go(func() {
		select {
		case <-c.ended:
			cancel(c.cause)
		case <-starting.Done():
		}
	})
	if err := c.start(starting); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if c.dir, err = claimDirectory(c.options.Dir); err != nil {
		return err
	}
	if c.slot, err = claimSlot(ctx); err != nil {
		return err
	}
	c.processes = process.NewGroup(c.dir.path)
	c.background.Go(c.watchProcesses)
	for _, step := range c.steps() {
		if err := step.run(ctx); err != nil {
			return err
		}
		c.options.Progress.Step("%s", step.done)
	}
	return writeState(c.dir, c.State())
}

// step is a part of the start, and what can be said once it is done.
type step struct {
	done string
	run  func(context.Context) error
}

func (c *Cluster) steps() []step {
	steps := []step{
		{"etcd and kube-apiserver are up", c.startAPIServer},
		{"CRDs, classes, namespaces and roles are in place", c.install},
	}
	if !c.options.KindsOnly {
		steps = append(steps,
			step{"kube-controller-manager and CDI are at work", c.startControllers},
			step{"the node is there", c.startNode})
	}
	if c.options.Server.Path != "" {
		steps = append(steps, step{"the server answers through its APIService", c.startServer})
	}
	if len(c.options.Load) > 0 {
		steps = append(steps, step{"the manifests are loaded", c.load})
	}
	return steps
}

// Stop ends everything and waits for it. Further calls return what the first did.
func (c *Cluster) Stop() error {
	return c.stop()
}

func (c *Cluster) shutDown() error {
	c.end(errStopped)
	c.stopNode()
	c.background.Wait()
	var errs []error
	if c.balancer != nil {
		errs = append(errs, c.balancer.Close())
	}
	if c.network != nil {
		errs = append(errs, c.network.Close())
	}
	if c.processes != nil {
		errs = append(errs, c.processes.StopAll())
	}
	if c.slot != nil {
		errs = append(errs, c.slot.release())
	}
	if c.dir != nil {
		errs = append(errs, c.dir.release())
	}
	return errors.Join(errs...)
}

// Done is closed when the stack was stopped or a part of it failed; Err then says which.
func (c *Cluster) Done() <-chan struct{} {
	return c.ended
}

// Err is the failure that ended the stack, or nil.
func (c *Cluster) Err() error {
	select {
	case <-c.ended:
		if errors.Is(c.cause, errStopped) {
			return nil
		}
		return c.cause
	default:
		return nil
	}
}

// RESTConfig is the administrator's access.
func (c *Cluster) RESTConfig() *rest.Config {
	return rest.CopyConfig(c.config)
}

// Processes are the programs, which can be stopped and started again.
func (c *Cluster) Processes() *process.Group {
	return c.processes
}

// SetSimRules replaces the rules of the simulated node.
func (c *Cluster) SetSimRules(rules nodesim.Rules) error {
	return nodesim.WriteRules(c.dir.file(simRulesFile), rules)
}

// RestartServer ends the server, runs it again, and returns when it is ready. Of several replicas one is replaced after
// the other.
func (c *Cluster) RestartServer(ctx context.Context) error {
	for i := range c.Replicas() {
		if err := c.RollReplica(ctx, i); err != nil {
			return err
		}
	}
	return writeState(c.dir, c.State())
}

// end keeps the first reason: others follow from it.
func (c *Cluster) end(cause error) {
	c.ending.Do(func() {
		c.cause = cause
		close(c.ended)
	})
}

func (c *Cluster) watchProcesses() {
	select {
	case err := <-c.processes.Failed():
		c.end(err)
	case <-c.ended:
	}
}

// startNode runs the simulated node in this process until the stack ends.
func (c *Cluster) startNode(ctx context.Context) error {
	rules := []byte(nodesim.DefaultRules)
	if c.options.SimRules != "" {
		var err error
		if rules, err = os.ReadFile(c.options.SimRules); err != nil {
			return err
		}
	}
	if err := os.WriteFile(c.dir.file(simRulesFile), rules, 0o600); err != nil {
		return err
	}
	programs, err := c.programs()
	if err != nil {
		return err
	}
	node, err := nodesim.New(c.client, c.dir.file(simRulesFile), nodesim.NewAddresses(c.slot.podNetwork()), programs)
	if err != nil {
		return err
	}
	log, err := os.Create(c.dir.file("nodesim.log"))
	if err != nil {
		return err
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log)))
	life, stop := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logger))
	c.stopNode = stop
	if c.network != nil {
		c.background.Go(func() { c.network.Follow(life, c.client) })
	}
	c.background.Go(func() {
		defer log.Close()
		if err := node.Run(life); err != nil {
			c.end(fmt.Errorf("simulated node: %w", err))
		}
	})
	return c.awaitServiceAccounts(ctx)
}

// load applies the manifests the user asked for.
func (c *Cluster) load(ctx context.Context) error {
	for _, path := range c.options.Load {
		objects, err := readManifests(path)
		if err != nil {
			return err
		}
		if err := c.applier.apply(ctx, objects...); err != nil {
			return fmt.Errorf("load %s: %w", filepath.Base(path), err)
		}
	}
	return nil
}
