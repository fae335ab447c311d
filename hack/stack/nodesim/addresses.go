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

package nodesim

import (
	"errors"
	"fmt"
	"sync"
)

// A /24 of loopback addresses, less its first, its last and the one that is kept for the stack itself.
const (
	firstHost = 2
	lastHost  = 254
)

// Addresses hands out loopback addresses of one /24 to pods. An address that was given back is the last to be handed
// out again, since CDI may still ask it for the pod that is gone.
type Addresses struct {
	mu   sync.Mutex
	free []string
}

// NewAddresses returns the addresses of a network, given as its first three parts.
func NewAddresses(network string) *Addresses {
	a := &Addresses{}
	for host := firstHost; host <= lastHost; host++ {
		a.free = append(a.free, fmt.Sprintf("%s.%d", network, host))
	}
	return a
}

func (a *Addresses) take() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free) == 0 {
		return "", errors.New("every pod address is in use")
	}
	address := a.free[0]
	a.free = a.free[1:]
	return address, nil
}

func (a *Addresses) giveBack(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free = append(a.free, address)
}
