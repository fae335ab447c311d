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

package chaos

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// leader returns which replica orders the changes, once one does.
func (p *platform) leader(t *testing.T) (replica int) {
	t.Helper()
	await.For(t, "a replica to hold the Lease", func(ctx context.Context) (err error) {
		replica, err = p.HistoryLeader(ctx)
		return err
	})
	return replica
}

// awaitOtherLeader returns which replica orders the changes, once it is another, and how long that took.
func (p *platform) awaitOtherLeader(t *testing.T, before int) (replica int, took time.Duration) {
	t.Helper()
	took = await.For(t, "another replica to hold the Lease", func(ctx context.Context) (err error) {
		if replica, err = p.HistoryLeader(ctx); err == nil && replica == before {
			err = errors.New("it is the same")
		}
		return err
	})
	return replica, took
}

// awaitOneHistory waits until every replica knows the newest version of every other.
func (p *platform) awaitOneHistory(t *testing.T) time.Duration {
	t.Helper()
	replicas := make([]access, p.Replicas())
	for i := range replicas {
		replicas[i] = p.direct(t, i)
	}
	return await.For(t, "the replicas to serve one history", func(ctx context.Context) error {
		for i, from := range replicas {
			list, err := from.images.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return fmt.Errorf("replica %d: %w", i, err)
			}
			for j, to := range replicas {
				_, err := to.images.List(ctx, metav1.ListOptions{
					Limit: 1, ResourceVersion: list.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				})
				if err != nil {
					return fmt.Errorf("version %s of replica %d at %d: %w", list.ResourceVersion, i, j, err)
				}
			}
		}
		return nil
	})
}

// awaitPublished waits until the replicas that are given show a change that is made now.
func (p *platform) awaitPublished(t *testing.T, replicas ...int) time.Duration {
	t.Helper()
	mark := p.mark(t)
	return await.For(t, fmt.Sprintf("a change to be at the replicas %v", replicas), func(ctx context.Context) error {
		for _, i := range replicas {
			image, err := p.direct(t, i).images.Get(ctx, spare, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if image.Status.DataVolume.RestartCount != mark {
				return fmt.Errorf("replica %d is at %d", i, image.Status.DataVolume.RestartCount)
			}
		}
		return nil
	})
}

func (p *platform) others(replica int) []int {
	var all []int
	for i := range p.Replicas() {
		if i != replica {
			all = append(all, i)
		}
	}
	return all
}

// settleHistory ends a test of one history: whatever has happened, the replicas and all that watch them end up alike.
func (p *platform) settleHistory(t *testing.T, work *load, w *witness, all []*observer) {
	t.Helper()
	work.end()
	shared.figures.note(t, "until all replicas serve one history again", "%v", rounded(p.awaitOneHistory(t)))
	p.awaitPublished(t, 0, 1, 2)
	checkConverged(t, w, all)
	shared.figures.note(t, "lists of an observer at each replica and one that is moved", "%v", lists(all))
}

// Guards: that a version of one is good at another. An observer that is moved goes on where it was.
func TestWhoIsMovedInOneHistoryNeedsNoList(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	for flip := range 9 {
		work.awaitSteps(t, 20)
		p.Balancer().FlipTo(flip % p.Replicas())
		p.awaitServed(t)
	}
	p.Balancer().Spread()
	p.settleHistory(t, work, w, all)
	checkNobodyListed(t, all)
	if _, ended := all[3].counts(); ended == 0 {
		t.Error("nobody was moved")
	}
}

func TestTheReplicaThatOrdersIsKilled(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	work.awaitSteps(t, 20)
	leader := p.leader(t)
	if err := p.Processes().Kill(p.Replica(leader)); err != nil {
		t.Fatal(err)
	}
	shared.figures.note(t, "from kill -9 until the others publish again", "%v", rounded(p.awaitPublished(t, p.others(leader)...)))
	_, took := p.awaitOtherLeader(t, leader)
	shared.figures.note(t, "until another orders, after that", "%v", rounded(took))
	p.restartReplica(t, leader)
	p.settleHistory(t, work, w, all)
}

func (p *platform) restartReplica(t *testing.T, replica int) {
	t.Helper()
	if err := p.RollReplica(t.Context(), replica); err != nil {
		t.Fatal(err)
	}
}

// A follower that goes and comes is noticed by nobody but its own clients.
func TestAReplicaThatFollowsIsKilled(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	work.awaitSteps(t, 20)
	leader := p.leader(t)
	victim := p.others(leader)[0]
	if err := p.Processes().Kill(p.Replica(victim)); err != nil {
		t.Fatal(err)
	}
	work.awaitSteps(t, 20)
	p.restartReplica(t, victim)
	p.settleHistory(t, work, w, all)
	if now := p.leader(t); now != leader {
		t.Errorf("replica %d orders, and before %d did", now, leader)
	}
	for i, o := range all[:3] {
		if count, ended := o.counts(); i != victim && (count > 1 || ended > 0) {
			t.Errorf("the observer at replica %d has listed %d times, and its watch has ended %d times", i, count, ended)
		}
	}
}

func TestReplicasOfOneHistoryAreRolled(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	for range 2 {
		work.awaitSteps(t, 20)
		if err := p.RestartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.settleHistory(t, work, w, all)
}

// The one that orders is stopped for longer than its Lease lasts, and goes on where it was, as if no time had passed.
//
// Guards: that what it publishes then is a history apart, and that it gives that up for the others'.
func TestTheReplicaThatOrdersIsFrozen(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	for range 2 {
		work.awaitSteps(t, 20)
		leader := p.leader(t)
		thaw := p.freeze(t, leader)
		p.Balancer().FlipTo(p.others(leader)[0])
		shared.figures.note(t, "from the freeze until the others publish again", "%v", rounded(p.awaitPublished(t, p.others(leader)...)))
		p.awaitOtherLeader(t, leader)
		work.awaitSteps(t, 20)
		thaw()
		shared.figures.note(t, "from the thaw until it has what the others have", "%v", rounded(p.awaitPublished(t, 0, 1, 2)))
		p.Balancer().Spread()
	}
	p.settleHistory(t, work, w, all)
}

// The same for a shorter time than the Lease lasts.
func TestTheReplicaThatOrdersIsFrozenForAMoment(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	for range 3 {
		work.awaitSteps(t, 20)
		leader := p.leader(t)
		thaw := p.freeze(t, leader)
		p.awaitPublished(t, p.others(leader)...)
		thaw()
		p.awaitPublished(t, 0, 1, 2)
	}
	p.settleHistory(t, work, w, all)
}

// freeze stops a process until it is told to thaw, or the test ends.
func (p *platform) freeze(t *testing.T, replica int) (thaw func()) {
	t.Helper()
	signal := func(s syscall.Signal) {
		pid, runs := p.Process(p.Replica(replica))
		if !runs {
			t.Errorf("replica %d does not run", replica)
			return
		}
		if err := syscall.Kill(pid, s); err != nil {
			t.Error(err)
		}
	}
	signal(syscall.SIGSTOP)
	thaw = func() { signal(syscall.SIGCONT) }
	t.Cleanup(thaw)
	return thaw
}

func TestKubeAPIServerRestartsUnderOneHistory(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	for range 3 {
		work.awaitSteps(t, 20)
		if err := p.Processes().Restart("kube-apiserver"); err != nil {
			t.Fatal(err)
		}
		p.awaitServed(t)
	}
	p.settleHistory(t, work, w, all)
}

func TestTheLeaseIsDeleted(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	for range 3 {
		work.awaitSteps(t, 20)
		if err := p.leases().Delete(t.Context(), stack.HistoryLease, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.leader(t)
	}
	p.settleHistory(t, work, w, all)
}

func (p *platform) leases() dynamic.ResourceInterface {
	return p.Resource(objects.Leases, cluster.ServerNamespace)
}

// A Lease says that a server orders which nobody reaches.
//
// Guards: that replicas go on following the one that they reach.
func TestTheLeaseIsHeldByADeadStranger(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	work.awaitSteps(t, 20)
	p.giveLeaseToStranger(t)
	p.awaitLeaseAge(t, leaseDuration/2)
	shared.figures.note(t, "until a change is everywhere, while a dead stranger holds the Lease", "%v", rounded(p.awaitPublished(t, 0, 1, 2)))
	awaitAlike(t, all)
	if replica, err := p.HistoryLeader(t.Context()); err == nil {
		t.Errorf("they came to hold the same no sooner than replica %d held the Lease", replica)
	}
	checkNobodyListed(t, all)
	shared.figures.note(t, "until a replica holds it again", "%v", rounded(await.For(t, "a replica to hold the Lease", func(ctx context.Context) error {
		_, err := p.HistoryLeader(ctx)
		return err
	})))
	p.settleHistory(t, work, w, all)
}

// giveLeaseToStranger has the Lease say that it has just been renewed by somebody at an address where nobody answers.
func (p *platform) giveLeaseToStranger(t *testing.T) {
	t.Helper()
	await.For(t, "the Lease to be a stranger's", func(ctx context.Context) error {
		lease, err := p.leases().Get(ctx, stack.HistoryLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for field, value := range map[string]string{
			"holderIdentity": "127.0.0.1:1_stranger",
			"renewTime":      time.Now().UTC().Format(metav1.RFC3339Micro),
		} {
			if err := unstructured.SetNestedField(lease.Object, value, "spec", field); err != nil {
				return err
			}
		}
		_, err = p.leases().Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// Nobody can renew the Lease or take it over for longer than it lasts.
func TestTheRightToTheLeaseIsRevoked(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	work.awaitSteps(t, 20)
	before, err := p.leases().Get(t.Context(), stack.HistoryLease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role := p.Resource(objects.Roles, cluster.ServerNamespace)
	const name = "workerimage-apiserver:history"
	granted, err := role.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	giveBack := func() {
		restored := objects.New("rbac.authorization.k8s.io/v1", "Role", cluster.ServerNamespace, name)
		restored.Object["rules"] = granted.Object["rules"]
		if _, err := role.Update(context.WithoutCancel(t.Context()), restored, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(giveBack)
	p.Patch(t, objects.Roles, cluster.ServerNamespace, name, `{"rules":[]}`)
	p.awaitLeaseAge(t, 2*leaseDuration)
	p.awaitPublished(t, 0, 1, 2)
	checkNobodyListed(t, all)
	giveBack()
	await.For(t, "the Lease to be renewed", func(ctx context.Context) error {
		lease, err := p.leases().Get(ctx, stack.HistoryLease, metav1.GetOptions{})
		if err == nil && lease.GetResourceVersion() == before.GetResourceVersion() {
			err = errors.New("it is as before")
		}
		return err
	})
	p.settleHistory(t, work, w, all)
}

// awaitLeaseAge waits until the Lease was last renewed so long ago.
func (p *platform) awaitLeaseAge(t *testing.T, least time.Duration) {
	t.Helper()
	await.For(t, fmt.Sprintf("the Lease to be %v old", least), func(ctx context.Context) error {
		lease, err := p.leases().Get(ctx, stack.HistoryLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, _, err := unstructured.NestedString(lease.Object, "spec", "renewTime")
		if err != nil {
			return err
		}
		renewed, err := time.Parse(metav1.RFC3339Micro, text)
		if age := time.Since(renewed); err == nil && age < least {
			err = fmt.Errorf("it was renewed %v ago", age)
		}
		return err
	})
}

// leaseDuration is how long a Lease lasts that nobody renews.
const leaseDuration = 15 * time.Second

// All replicas are gone at once and come back at once, and the Lease says that one of them orders which was before.
func TestAllReplicasCrashAndStartAtOnce(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	w, all := p.observe(t)
	work := p.startLoad(t)
	work.awaitSteps(t, 20)
	for i := range p.Replicas() {
		if err := p.Processes().Kill(p.Replica(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.Replicas() {
		if err := p.Processes().Restart(p.Replica(i)); err != nil {
			t.Fatal(err)
		}
	}
	shared.figures.note(t, "from the start until a list", "%v", rounded(p.awaitServed(t)))
	for i := range p.Replicas() {
		if err := p.AwaitReplica(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	p.settleHistory(t, work, w, all)
}

// A version that no replica has issued is refused by all of them.
func TestAVersionOfNobodyIsExpiredEverywhere(t *testing.T) {
	p := oneHistory(t)
	p.populate(t)
	p.awaitOneHistory(t)
	for i := range p.Replicas() {
		_, err := p.direct(t, i).images.List(t.Context(), metav1.ListOptions{ResourceVersion: "4194305", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("replica %d: %v", i, err)
		}
	}
}
