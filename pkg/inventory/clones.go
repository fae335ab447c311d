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

package inventory

import (
	"cmp"

	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
)

// clone is what one disk adds to the counters of the claim that it is cloned from. The zero value adds
// nothing.
type clone struct {
	source   text
	pool     poolKey
	state    pool.DiskState
	inFlight bool
	// class of a disk that is cloned.
	class text
}

// poolKey names a pool the way its disks do.
type poolKey struct{ namespace, annotation text }

// newClone is what a disk adds while its claim has the given class.
func newClone(k key, d disk, claimClass text) clone {
	if d.pool == (text{}) {
		if !d.inFlight {
			return clone{}
		}
		return clone{source: d.source, inFlight: true}
	}
	c := clone{source: d.source, pool: poolKey{k.namespace, d.pool}, state: d.state, inFlight: d.inFlight}
	if d.state == pool.DiskCloned {
		c.class = cmp.Or(d.class, claimClass)
	}
	return c
}

// clones adds up the disks that are cloned from one claim.
type clones struct {
	pools map[poolKey]*counters
	// loose counts the clones in flight that belong to no pool.
	loose int
}

// counters are those of one pool.
type counters struct {
	cloned, cloning, failed, inFlight int32
	// classes counts the cloned disks on each class that is known.
	classes map[text]int32
}

func newClones() *clones { return &clones{pools: map[poolKey]*counters{}} }

func (c *clones) empty() bool { return len(c.pools) == 0 && c.loose == 0 }

// count adds by times one, which is 1 or -1.
func (c *clones) count(one clone, by int32) {
	if one.pool == (poolKey{}) {
		c.loose += int(by)
		return
	}
	n := c.pools[one.pool]
	if n == nil {
		n = &counters{classes: map[text]int32{}}
		c.pools[one.pool] = n
	}
	n.count(one, by)
	if n.cloned+n.cloning+n.failed == 0 {
		delete(c.pools, one.pool)
	}
}

func (n *counters) count(one clone, by int32) {
	switch one.state {
	case pool.DiskCloned:
		n.cloned += by
	case pool.DiskCloning:
		n.cloning += by
	case pool.DiskFailed:
		n.failed += by
	}
	if one.inFlight {
		n.inFlight += by
	}
	if one.class == (text{}) {
		return
	}
	if n.classes[one.class] += by; n.classes[one.class] == 0 {
		delete(n.classes, one.class)
	}
}

func (c *clones) poolDisks() []projection.PoolDisks {
	out := make([]projection.PoolDisks, 0, len(c.pools))
	for k, n := range c.pools {
		out = append(out, projection.PoolDisks{
			Namespace:    k.namespace.String(),
			Pool:         k.annotation.String(),
			Cloned:       n.cloned,
			Cloning:      n.cloning,
			Failed:       n.failed,
			InFlight:     n.inFlight,
			StorageClass: n.commonest(),
		})
	}
	return out
}

// commonest class, the first by name among equals.
func (n *counters) commonest() string {
	var most int32
	var class string
	for c, count := range n.classes {
		if name := c.String(); count > most || count == most && name < class {
			most, class = count, name
		}
	}
	return class
}

// consumers are the pools that ask for one image.
type consumers struct {
	pools map[key]*pool.Pool
	// values is nil until it is asked for. It is handed out, so a change makes a new one.
	values []pool.Pool
}

func (c *consumers) add(k key, p *pool.Pool) {
	c.pools[k] = p
	c.values = nil
}

func (c *consumers) remove(k key) {
	delete(c.pools, k)
	c.values = nil
}

func (c *consumers) list() []pool.Pool {
	if c.values == nil {
		c.values = make([]pool.Pool, 0, len(c.pools))
		for _, p := range c.pools {
			c.values = append(c.values, *p)
		}
	}
	return c.values
}
