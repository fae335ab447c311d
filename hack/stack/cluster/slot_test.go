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
	"fmt"
	"net"
	"testing"
)

func TestTwoStacksShareNeitherPortNorPodNetwork(t *testing.T) {
	first, second := claim(t), claim(t)
	if first.podNetwork() == second.podNetwork() {
		t.Errorf("both give their pods addresses in %s", first.podNetwork())
	}
	taken := map[int]bool{}
	for i := range usedPorts {
		taken[first.port(i)] = true
	}
	for i := range usedPorts {
		if taken[second.port(i)] {
			t.Errorf("both use port %d", second.port(i))
		}
	}
}

func TestASlotWithAPortInUseIsPassedOver(t *testing.T) {
	probe, err := claimSlot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", probe.port(usedPorts-1)))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := probe.release(); err != nil {
		t.Fatal(err)
	}
	if s := claim(t); s.number == probe.number {
		t.Errorf("claimed slot %d, whose port %d is in use", s.number, s.port(usedPorts-1))
	}
}

func TestNoPortIsOneTheKernelHandsOut(t *testing.T) {
	const ephemeral = 32768
	last := &slot{number: slots - 1}
	if port := last.port(portsPerSlot - 1); port >= ephemeral {
		t.Errorf("port %d may be that of an outgoing connection", port)
	}
	if usedPorts > portsPerSlot {
		t.Errorf("a stack uses %d ports, a slot has %d", usedPorts, portsPerSlot)
	}
}

func claim(t *testing.T) *slot {
	t.Helper()
	s, err := claimSlot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.release(); err != nil {
			t.Error(err)
		}
	})
	return s
}
