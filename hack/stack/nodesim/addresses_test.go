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

import "testing"

func TestAnAddressIsHandedOutOnceUntilItIsGivenBack(t *testing.T) {
	addresses := NewAddresses("127.77.3")
	seen := map[string]bool{}
	var last string
	for range lastHost - firstHost + 1 {
		address, err := addresses.take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was handed out twice", address)
		}
		seen[address], last = true, address
	}
	if seen["127.77.3.1"] {
		t.Error("the address that is the claim on the network was handed out")
	}
	if _, err := addresses.take(); err == nil {
		t.Error("an address was handed out when all were in use")
	}
	addresses.giveBack(last)
	if address, err := addresses.take(); err != nil || address != last {
		t.Errorf("got %q, %v; want %s, the only free address", address, err, last)
	}
}
