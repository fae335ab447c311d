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

package history

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// longEnough is how long it takes until a replica goes on by itself.
const longEnough = patienceAtStart + 2*retryPeriod

func TestAVersionOfOneReplicaIsGoodAtAllOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		c.complete()
		<-time.After(longEnough)
		c.found("p1", "1")
		reader := &client{t: t}
		for i, address := range []string{"a", "b", "c", "a", "c", "b"} {
			c.found("p1", string(rune('a'+i)))
			c.found("p2", string(rune('a'+i)))
			reader.read(c.replicas[address])
			if diff := cmp.Diff(map[string]string{"p1": string(rune('a' + i)), "p2": string(rune('a' + i))}, reader.state); diff != "" {
				t.Errorf("at %s:\n%s", address, diff)
			}
		}
		if reader.relists != 1 {
			t.Errorf("listed %d times", reader.relists)
		}
	})
}

func TestTheHistoryGoesOnWhenTheReplicaThatOrdersIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.complete()
		<-time.After(longEnough)
		c.found("p1", "1")
		reader := &client{t: t}
		reader.read(c.replicas["a"])

		c.kill("a")
		c.found("p1", "2")
		<-time.After(longEnough)
		reader.read(c.replicas["b"])
		if diff := cmp.Diff(map[string]string{"p1": "2"}, reader.state); diff != "" {
			t.Error(diff)
		}
		if reader.relists != 1 {
			t.Errorf("listed %d times", reader.relists)
		}

		c.start("a")
		c.replicas["a"].found(t, "p1", "2")
		c.complete()
		<-time.After(longEnough)
		reader.read(c.replicas["a"])
		c.kill("b")
		c.found("p1", "3")
		<-time.After(longEnough)
		reader.read(c.replicas["a"])
		if diff := cmp.Diff(map[string]string{"p1": "3"}, reader.state); diff != "" {
			t.Error(diff)
		}
		if reader.relists != 1 {
			t.Errorf("listed %d times", reader.relists)
		}
	})
}

// It is tried several times a second, for as long as it has the Lease.
func TestTheLogSaysOnceThatAReplicaCannotBeFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.complete()
		<-time.After(longEnough)
		const lost, unreached = "Not following another replica any more", "Cannot follow another replica, will try again"
		before := c.logged(unreached)
		for turn, address := range []string{"a", "b"} {
			c.kill(address)
			<-time.After(longEnough)
			if got := c.logged(lost); got > turn+1 {
				t.Errorf("after %d deaths %d lines say that nobody is followed any more", turn+1, got)
			}
			if got := c.logged(unreached) - before; got > turn+1 {
				t.Errorf("after %d deaths %d lines say that nobody can be followed", turn+1, got)
			}
			c.start(address)
			c.complete()
			<-time.After(longEnough)
		}
		if c.logged(lost) == 0 || c.logged(unreached) == before {
			t.Error("nothing is said of a leader that dies")
		}
	})
}

// Whoever comes to order begins an epoch, also where nothing changes.
func TestAVersionOfWhoComesToOrderIsGoodEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		c.complete()
		<-time.After(longEnough)
		c.found("p1", "1")
		for before := c.lease.leader(); c.lease.leader() == before; {
			c.lease.give(Identity("nowhere"))
			<-time.After(longEnough)
		}
		for _, from := range c.replicas {
			version := strconv.FormatUint(from.log.ResourceVersion(), 10)
			for address, r := range c.replicas {
				err := r.storage.GetList(t.Context(), "/pods", storage.ListOptions{
					ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Recursive: true, Predicate: storage.Everything,
				}, &example.PodList{})
				if err != nil {
					t.Errorf("at %s: %v", address, err)
				}
			}
		}
	})
}

// Who gets the Lease of one that is gone is a matter of chance between those that stand for election.
func TestAReplicaThatComesBackBeginsNoNewHistory(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, "a", "b")
			c.complete()
			<-time.After(longEnough)
			c.found("p1", "1")
			reader := &client{t: t}
			reader.read(c.replicas["b"])

			c.kill("a")
			c.start("a")
			c.found("p1", "2")
			c.complete()
			<-time.After(2 * longEnough)
			c.found("p1", "3")
			for _, address := range []string{"b", "a"} {
				reader.read(c.replicas[address])
				if diff := cmp.Diff(map[string]string{"p1": "3"}, reader.state); diff != "" {
					t.Errorf("at %s:\n%s", address, diff)
				}
			}
			if reader.relists != 1 {
				t.Errorf("listed %d times", reader.relists)
			}
		})
	}
}

// The Lease names one that nobody reaches, such as a server that was cut off when it had just acquired it.
func TestReplicasStayWithTheOneThatTheyReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b", "c")
		c.complete()
		<-time.After(longEnough)
		c.found("p1", "1")
		reader := &client{t: t}
		reader.read(c.replicas["a"])
		c.lease.give(Identity("nowhere"))
		for i, address := range []string{"b", "c", "a", "c", "b", "a"} {
			<-time.After(2 * time.Second)
			label := string(rune('a' + i))
			c.found("p1", label)
			reader.read(c.replicas[address])
			if diff := cmp.Diff(map[string]string{"p1": label}, reader.state); diff != "" {
				t.Errorf("at %s:\n%s", address, diff)
			}
		}
		if reader.relists != 1 {
			t.Errorf("listed %d times", reader.relists)
		}
	})
}

// A version begins with the time at which its replica started, and rises all the same.
func TestClocksThatDifferDoNotMatter(t *testing.T) {
	for first, second := range map[string]string{"a": "b", "b": "a"} {
		t.Run("first the one at "+first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.skew = map[string]time.Duration{"a": 24 * time.Hour, "b": -24 * time.Hour}
				c.start(first)
				c.complete()
				<-time.After(longEnough)
				c.start(second)
				c.complete()
				<-time.After(longEnough)
				reader := &client{t: t}
				var version uint64
				for i, gone := range []string{first, second, first} {
					label := strconv.Itoa(i)
					c.found("p1", label)
					reader.read(c.replicas[gone])
					c.kill(gone)
					<-time.After(longEnough)
					c.start(gone)
					c.replicas[gone].found(t, "p1", label)
					c.complete()
					<-time.After(longEnough)
					for address, r := range c.replicas {
						reader.read(r)
						if diff := cmp.Diff(map[string]string{"p1": label}, reader.state); diff != "" {
							t.Errorf("at %s:\n%s", address, diff)
						}
						if now := r.log.ResourceVersion(); now < version {
							t.Errorf("at %s: %d after %d", address, now, version)
						} else {
							version = now
						}
					}
				}
			})
		})
	}
}

func TestAReplicaThatReachesNobodyGoesOnByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a", "b")
		c.complete()
		<-time.After(longEnough)
		c.kill("a")
		c.found("p1", "1")
		<-time.After(patience + answerTimeout)
		reader := &client{t: t}
		reader.read(c.replicas["b"])
		if diff := cmp.Diff(map[string]string{"p1": "1"}, reader.state); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTheFirstReplicaWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "a")
		c.complete()
		if !c.replicas["a"].log.Ready() {
			t.Error("there is no Lease, and the only replica is not ready")
		}
	})
}

// Replicas find changes at different times, end and start; the Lease names one that nobody reaches; clients read now here,
// now there.
func TestWhateverHappensReplicasAndClientsEndUpAlike(t *testing.T) {
	relists, reads := 0, 0
	for seed := range uint64(200) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				for range 100 {
					w.step()
				}
				w.settle()
				relists, reads = relists+w.reader.relists, reads+w.reads
			})
		})
	}
	t.Logf("%d reads, %d lists", reads, relists)
}

// world is a cluster in which things happen at random.
type world struct {
	*cluster
	*rand.Rand
	there  map[string]string
	late   map[string][]string // names that a replica has yet to find, by address
	reader *client
	reads  int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		cluster: newCluster(t, "a", "b", "c"), Rand: rand.New(rand.NewPCG(seed, 0)),
		there: map[string]string{}, late: map[string][]string{}, reader: &client{t: t},
	}
	w.complete()
	<-time.After(longEnough)
	return w
}

func (w *world) step() {
	address := string(rune('a' + w.IntN(3)))
	r, runs := w.replicas[address]
	switch what := w.IntN(20); {
	case what < 8:
		w.change("p" + strconv.Itoa(w.IntN(6)))
	case what < 11:
		w.catchUp(address)
	case what < 17 && runs && r.log.Ready():
		w.reads++
		w.reader.read(r)
	case what < 18 && runs && len(w.replicas) > 1:
		w.kill(address)
	case what < 19 && !runs:
		w.late[address] = nil
		w.start(address)
		for name, label := range w.there {
			w.replicas[address].found(w, name, label)
		}
		w.complete()
	case what == 19 && w.IntN(4) == 0:
		w.lease.give(Identity("nowhere"))
	}
	<-time.After(time.Duration(w.IntN(1500)) * time.Millisecond)
}

// change has some replicas find a change at once, and others later.
func (w *world) change(name string) {
	delete(w.there, name)
	if w.IntN(4) > 0 {
		w.there[name] = strconv.Itoa(w.IntN(5))
	}
	for address, r := range w.replicas {
		if w.IntN(3) > 0 {
			r.found(w, name, w.there[name])
		} else {
			w.late[address] = append(w.late[address], name)
		}
	}
	synctest.Wait()
}

func (w *world) catchUp(address string) {
	if r, runs := w.replicas[address]; runs {
		for _, name := range w.late[address] {
			r.found(w, name, w.there[name])
		}
	}
	w.late[address] = nil
	synctest.Wait()
}

func (w *world) settle() {
	for address := range w.replicas {
		w.catchUp(address)
	}
	<-time.After(longEnough)
	for address, r := range w.replicas {
		w.reader.read(r)
		if diff := cmp.Diff(w.there, w.reader.state); diff != "" {
			w.Errorf("a client at %s (-there +seen):\n%s", address, diff)
		}
		another := &client{t: w}
		another.list(r)
		if diff := cmp.Diff(w.there, another.state); diff != "" {
			w.Errorf("listed at %s (-there +seen):\n%s", address, diff)
		}
	}
}
