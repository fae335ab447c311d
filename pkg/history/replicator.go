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
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second

	// patience is how long a replica shows what it last received before it goes on by itself.
	patience = 2 * time.Second
	// patienceAtStart is how long one that has no history yet leaves it to the others to find a successor.
	patienceAtStart = 2 * leaseDuration
	// reconnectPeriod is how often it tries to reach the replica that orders.
	reconnectPeriod = 250 * time.Millisecond
)

// Config is what a Replicator needs. All of it is required.
type Config struct {
	Journal *Journal
	// Lock is the Lease. Its identity is that of Identity.
	Lock resourcelock.Interface
	// Peer returns the feeds of the replica at an address, one for each log of the Journal.
	Peer  func(ctx context.Context, address string) ([]Feed, error)
	Clock clock.Clock
}

// Identity names a process that others reach at an address, and is not that of one which was there before.
func Identity(address string) string { return address + "_" + uuid.NewString() }

func addressOf(identity string) string {
	address, _, _ := strings.Cut(identity, "_")
	return address
}

// Replicator leads, or follows who leads.
type Replicator struct {
	config Config

	// unreached is the leader of which the log says that it cannot be followed. It belongs to Run.
	unreached string

	mu      sync.Mutex
	leader  string
	changed chan struct{} // closed and replaced when the leader is another
}

// New returns a Replicator that does nothing until it runs.
func New(config Config) *Replicator {
	return &Replicator{config: config, changed: make(chan struct{})}
}

// Run leads or follows until ctx is done.
func (r *Replicator) Run(ctx context.Context) {
	var election sync.WaitGroup
	defer election.Wait()
	election.Go(func() { r.elect(ctx) })

	heard := r.config.Clock.Now()
	for ctx.Err() == nil {
		leader, changed := r.observed()
		self := r.config.Lock.Identity()
		if leader != "" && addressOf(leader) != addressOf(self) && r.follow(ctx, leader) {
			heard = r.config.Clock.Now()
		}
		if leader == self || r.config.Clock.Since(heard) >= r.patience() {
			r.lead(ctx)
		}
		var retry <-chan time.Time
		if leader != self {
			retry = r.config.Clock.After(reconnectPeriod)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-retry:
		}
	}
}

// follow follows the leader until there is another that can be followed, or it does not answer. It returns whether it
// did answer.
func (r *Replicator) follow(ctx context.Context, leader string) (answered bool) {
	answered, err := r.tryToFollow(ctx, leader)
	logger := klog.FromContext(ctx).V(1).WithValues("replica", leader)
	switch {
	case answered:
		r.unreached = ""
		logger.Info("Not following another replica any more", "err", err)
	case r.unreached != leader:
		r.unreached = leader
		logger.Info("Cannot follow another replica, will try again", "err", err)
	}
	return answered
}

func (r *Replicator) tryToFollow(ctx context.Context, leader string) (answered bool, err error) {
	feeds, err := r.config.Peer(ctx, addressOf(leader))
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		r.awaitSuccessor(ctx, leader)
	})
	return follow(ctx, feeds, r.config.Journal)
}

// awaitSuccessor returns when this replica leads after the leader, or another that answers. One that does not is no
// reason to leave the leader, which goes on until it has somebody to follow itself.
func (r *Replicator) awaitSuccessor(ctx context.Context, leader string) {
	for ctx.Err() == nil {
		next, changed := r.observed()
		if next == r.config.Lock.Identity() || next != leader && r.answers(ctx, next) {
			return
		}
		var retry <-chan time.Time
		if next != leader {
			retry = r.config.Clock.After(reconnectPeriod)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-retry:
		}
	}
}

func (r *Replicator) answers(ctx context.Context, leader string) bool {
	feeds, err := r.config.Peer(ctx, addressOf(leader))
	return err == nil && probe(ctx, feeds[0]) == nil
}

func (r *Replicator) lead(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if err := r.config.Journal.Lead(); err != nil {
		logger.Error(err, "Some objects could not be published")
	}
}

func (r *Replicator) patience() time.Duration {
	if r.config.Journal.HasHistory() {
		return patience
	}
	return patienceAtStart
}

// elect takes part in the election until ctx is done.
func (r *Replicator) elect(ctx context.Context) {
	r.abstain(ctx)
	for ctx.Err() == nil {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock:            r.config.Lock,
			LeaseDuration:   leaseDuration,
			RenewDeadline:   renewDeadline,
			RetryPeriod:     retryPeriod,
			ReleaseOnCancel: true,
			Name:            "history",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {},
				// It goes on leading until another does.
				OnStoppedLeading: func() {},
				OnNewLeader:      r.observe,
			},
		})
	}
}

// abstain returns when there is no Lease that another holds or held, or this replica has a history. One that has
// none would begin a new one if it came before those that have.
func (r *Replicator) abstain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patienceAtStart)
	defer cancel()
	// An error says that the time is over.
	_ = wait.PollUntilContextCancel(ctx, retryPeriod, true, func(ctx context.Context) (bool, error) {
		record, _, err := r.config.Lock.Get(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, nil
		}
		r.observe(record.HolderIdentity)
		return record.HolderIdentity == "" || r.config.Journal.HasHistory(), nil
	})
}

func (r *Replicator) observe(leader string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if leader == "" || leader == r.leader { // whoever released the Lease leads until another does
		return
	}
	r.leader = leader
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Replicator) observed() (leader string, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leader, r.changed
}
