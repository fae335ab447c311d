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

	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/hack/stack/balance"
)

// Replicas is how many servers run.
func (c *Cluster) Replicas() int {
	return max(1, c.options.Server.Replicas)
}

// Replica is the name of a replica's process.
func (c *Cluster) Replica(i int) string {
	if c.Replicas() == 1 {
		return ServerName
	}
	return fmt.Sprintf("%s-%d", ServerName, i)
}

// Balancer spreads the connections of kube-apiserver over the replicas; it is nil where there is but one.
func (c *Cluster) Balancer() *balance.Balancer {
	return c.balancer
}

// ReplicaConfig is the administrator's access to one replica, past kube-apiserver and the balancer. It takes every
// certificate, as a node does: that of the server is signed by an authority of its own.
func (c *Cluster) ReplicaConfig(i int) *rest.Config {
	config := c.RESTConfig()
	config.Host = c.configFor(c.replicaPort(i)).Host
	config.CAData, config.Insecure = nil, true
	return config
}

// AwaitReplica returns when a replica is ready.
func (c *Cluster) AwaitReplica(ctx context.Context, i int) error {
	return await(ctx, c.Replica(i), func(ctx context.Context) error { return c.replicaReady(ctx, i) })
}

func (c *Cluster) awaitAnyReplica(ctx context.Context) error {
	return await(ctx, ServerName, func(ctx context.Context) error {
		var failures []error
		for i := range c.Replicas() {
			err := c.replicaReady(ctx, i)
			if err == nil {
				return nil
			}
			failures = append(failures, err)
		}
		return errors.Join(failures...)
	})
}

func (c *Cluster) replicaReady(ctx context.Context, i int) error {
	config := c.configFor(c.replicaPort(i))
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	return client.Get().AbsPath("/readyz").Do(ctx).Error()
}

// RollReplica replaces a replica as a Deployment does: it gets no new connections while it ends, and again when it is
// ready.
func (c *Cluster) RollReplica(ctx context.Context, i int) error {
	if c.balancer != nil {
		c.balancer.Withdraw(i)
		defer c.balancer.Admit(i)
	}
	if err := c.processes.Restart(c.Replica(i)); err != nil {
		return err
	}
	return c.AwaitReplica(ctx, i)
}

func (c *Cluster) replicaPort(i int) int {
	if c.Replicas() == 1 {
		return serverPort
	}
	return firstReplicaPort + i
}

func (c *Cluster) startBalancer(ctx context.Context) (err error) {
	if c.Replicas() == 1 {
		return nil
	}
	var backends []string
	for i := range c.Replicas() {
		backends = append(backends, fmt.Sprintf("127.0.0.1:%d", c.slot.port(c.replicaPort(i))))
	}
	c.balancer, err = balance.Listen(ctx, fmt.Sprintf("127.0.0.1:%d", c.slot.port(serverPort)), backends...)
	return err
}
