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

// awaitAuthorities has the server listen only when it knows the authority of the requests that kube-apiserver passes on. The
// authority is read in the background, from a ConfigMap. Until it is there every user is taken for anonymous, and a
// connection that is made by then goes without the certificate of its client for as long as it lasts.
func awaitAuthorities(generic *genericapiserver.Config) {
	requestHeader := generic.Authentication.RequestHeaderConfig
	runner, isRunner := generic.SecureServing.ClientCA.(dynamiccertificates.ControllerRunner)
	if requestHeader == nil || !isRunner {
		return
	}
	generic.SecureServing.ClientCA = newAwaitedCA(generic.SecureServing.ClientCA, runner, requestHeader.CAContentProvider)
}

// awaitedCA is a provider whose first run ends when another one, which it runs, has content.
type awaitedCA struct {
	dynamiccertificates.CAContentProvider
	runner  dynamiccertificates.ControllerRunner
	awaited dynamiccertificates.CAContentProvider
	changed notification
	running sync.WaitGroup
}

var _ dynamiccertificates.ControllerRunner = &awaitedCA{}

func newAwaitedCA(all dynamiccertificates.CAContentProvider, runner dynamiccertificates.ControllerRunner, awaited dynamiccertificates.CAContentProvider) *awaitedCA {
	c := &awaitedCA{CAContentProvider: all, runner: runner, awaited: awaited, changed: make(notification, 1)}
	awaited.AddListener(c.changed)
	return c
}

// RunOnce starts what reads the authorities, and returns when there is the awaited one.
func (c *awaitedCA) RunOnce(ctx context.Context) error {
	c.running.Go(func() { c.runner.Run(ctx, 1) })
	timeout := time.NewTimer(authoritiesTimeout)
	defer timeout.Stop()
	for len(c.awaited.CurrentCABundleContent()) == 0 {
		select {
		case <-c.changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return fmt.Errorf("%s has not arrived within %v", c.awaited.Name(), authoritiesTimeout)
		}
	}
	return nil
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
