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

package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// authoritiesTimeout is how long the server waits before it listens without knowing whom to trust.
const authoritiesTimeout = 10 * time.Second

// awaitAuthorities has the server listen only when it knows the authorities of clients: that of the requests which kube-apiserver
// passes on, and that of the cluster's own certificates. They are read in the background, from a ConfigMap. Without them every
// user is taken for anonymous, and a connection that is made by then goes without the certificate of its client for as long
// as it lasts.
func awaitAuthorities(generic *genericapiserver.Config) {
	all, requestHeader := generic.SecureServing.ClientCA, generic.Authentication.RequestHeaderConfig
	if runner, ok := all.(dynamiccertificates.ControllerRunner); ok && requestHeader != nil {
		generic.SecureServing.ClientCA = newAwaitedCA(all, runner, requestHeader.CAContentProvider)
	}
}

// awaitedCA is a provider whose first run ends when all that it provides has arrived.
type awaitedCA struct {
	dynamiccertificates.CAContentProvider
	runner dynamiccertificates.ControllerRunner
	// requestHeader is one of those that are provided, and the only one if there is no other.
	requestHeader dynamiccertificates.CAContentProvider
	changed       notification
	running       sync.WaitGroup
}

var _ dynamiccertificates.ControllerRunner = &awaitedCA{}

func newAwaitedCA(all dynamiccertificates.CAContentProvider, runner dynamiccertificates.ControllerRunner, requestHeader dynamiccertificates.CAContentProvider) *awaitedCA {
	c := &awaitedCA{CAContentProvider: all, runner: runner, requestHeader: requestHeader, changed: make(notification, 1)}
	all.AddListener(c.changed)
	return c
}

// RunOnce starts what reads the authorities, and returns when they are there.
func (c *awaitedCA) RunOnce(ctx context.Context) error {
	c.running.Go(func() { c.runner.Run(ctx, 1) })
	timeout := time.NewTimer(authoritiesTimeout)
	defer timeout.Stop()
	for !c.complete() {
		select {
		case <-c.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return fmt.Errorf("not all of %s has arrived within %v", c.Name(), authoritiesTimeout)
		}
	}
	return nil
}

// complete is true when there is the authority of passed on requests, and another one beside it. The server must not be told of
// a further one while it sets its listener up.
func (c *awaitedCA) complete() bool {
	own := len(c.requestHeader.CurrentCABundleContent())
	isOnly := c.requestHeader == c.CAContentProvider
	return own > 0 && (isOnly || len(c.CurrentCABundleContent()) > own)
}

// Run goes on with what RunOnce started.
func (c *awaitedCA) Run(context.Context, int) { c.running.Wait() }

// notification holds that something has changed since it was looked at.
type notification chan struct{}

// Enqueue is called with each change.
func (n notification) Enqueue() {
	select {
	case n <- struct{}{}:
	default:
	}
}
