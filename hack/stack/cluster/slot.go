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
	"net"

	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
)

// The ports of a stack, in order from the first of its slot.
const (
	etcdClientPort = iota
	etcdPeerPort
	apiServerPort
	controllerManagerPort
	cdiAPIServerPort
	cdiMetricsPort
	// serverPort is where requests for the served group go: to the server, or to what spreads them over its replicas.
	serverPort
	networkPort
	firstReplicaPort
	usedPorts = firstReplicaPort + MaxReplicas
)

const (
	slots = 256
	// firstPort and portsPerSlot keep clear of the ports the kernel gives to outgoing connections.
	firstPort    = 20000
	portsPerSlot = 32
)

// slot is a number that no other stack on this machine has at the same time. Ports and pod addresses follow from it.
type slot struct {
	number   int
	listener net.Listener
}

// claimSlot takes the first slot nobody has and whose ports are free. Listening on an address of the slot is the claim:
// it ends with the process.
func claimSlot(ctx context.Context) (*slot, error) {
	var last error
	var listen net.ListenConfig
	for number := range slots {
		s := &slot{number: number}
		listener, err := listen.Listen(ctx, "tcp", fmt.Sprintf("%s.1:%d", s.podNetwork(), nodesim.MetricsPort))
		if err != nil {
			last = err
			continue
		}
		if err := s.portsAreFree(ctx); err != nil {
			last = errors.Join(err, listener.Close())
			continue
		}
		s.listener = listener
		return s, nil
	}
	return nil, fmt.Errorf("no room for another stack, or another program listens on port %d of all addresses: %w", nodesim.MetricsPort, last)
}

func (s *slot) port(i int) int {
	return firstPort + s.number*portsPerSlot + i
}

// podNetwork is the first three parts of the addresses of this stack's pods.
func (s *slot) podNetwork() string {
	return fmt.Sprintf("127.77.%d", s.number)
}

func (s *slot) portsAreFree(ctx context.Context) error {
	var listen net.ListenConfig
	for i := range usedPorts {
		listener, err := listen.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.port(i)))
		if err != nil {
			return err
		}
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (s *slot) release() error {
	return s.listener.Close()
}
