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

package view

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

const (
	// parallelQuestions bounds how many questions one request asks at a time.
	parallelQuestions = 16
	// allNamespaces is how a question names every namespace at once.
	allNamespaces = ""
)

// Config is what a View needs. All of it is required, except where it says otherwise.
type Config struct {
	// Authorizer answers what a caller may do. It is asked again at short intervals while a watch is open, so
	// it had better cache its answers.
	Authorizer authorizer.UnconditionalAuthorizer
	// PoolResource is the resource that serves the pools. Its name is * while it is not known, and pools are
	// shown only to those who may get everything of its group.
	PoolResource func() schema.GroupVersionResource
	// SeesAll names users who see everything, of whom nobody is asked. It may be nil.
	SeesAll func(user string) bool
}

// View decides which pools a caller sees.
type View struct {
	authorizer   authorizer.UnconditionalAuthorizer
	poolResource func() schema.GroupVersionResource
	knownToSee   func(user string) bool
	// refusals bounds how often refusals are asked about again, by all watches together.
	refusals flowcontrol.RateLimiter
}

// New returns a View.
func New(config Config) *View {
	return &View{
		authorizer:   config.Authorizer,
		poolResource: config.PoolResource,
		knownToSee:   config.SeesAll,
		refusals:     flowcontrol.NewTokenBucketRateLimiter(refusalsPerSecond, refusalsPerSecond*int(askAgainPeriod/time.Second)),
	}
}

type callerKey struct{}

// NewContext returns a context under which all that is done for the caller of one request shares what is
// learned about it.
func (v *View) NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, v.newCaller(ctx))
}

// Caller returns who makes the request of the context.
func (v *View) Caller(ctx context.Context) *Caller {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok && c.view == v {
		return c
	}
	return v.newCaller(ctx)
}

func (v *View) newCaller(ctx context.Context) *Caller {
	u, _ := request.UserFrom(ctx)
	return &Caller{view: v, user: u, answers: map[string]answer{}}
}

// Caller is what one caller may see. A namespace that is known is not asked about again, but by a watch.
type Caller struct {
	view *View
	user user.Info

	mu sync.Mutex
	// answers are by namespace.
	answers map[string]answer
}

type answer struct {
	allowed bool
	asked   time.Time
}

// learn asks about the namespaces of which nothing is known yet.
func (c *Caller) learn(ctx context.Context, fields []poolFields) {
	named := slices.ContainsFunc(fields, func(f poolFields) bool { return len(*f.pools) > 0 })
	if !named || c.seesAll(ctx) {
		return
	}
	if unknown := c.unknown(fields); len(unknown) > 0 {
		c.askFirst(ctx, unknown)
	}
}

// unknown returns the namespaces that decide what is shown and were not asked about, each once.
func (c *Caller) unknown(fields []poolFields) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found sets.Set[string]
	for _, f := range fields {
		pools := *f.pools
		for i := range pools {
			if i > 0 && pools[i].Namespace == pools[i-1].Namespace {
				continue
			}
			if _, known := c.answers[pools[i].Namespace]; !known {
				if found == nil {
					found = sets.New[string]()
				}
				found.Insert(pools[i].Namespace)
			}
		}
	}
	return found.UnsortedList()
}

// seesAll asks about all namespaces at once unless the answer is known.
func (c *Caller) seesAll(ctx context.Context) bool {
	c.mu.Lock()
	_, ok := c.answers[allNamespaces]
	c.mu.Unlock()
	if !ok {
		c.askFirst(ctx, []string{allNamespaces})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[allNamespaces].allowed
}

func (c *Caller) askFirst(ctx context.Context, namespaces []string) {
	allowed, err := c.ask(ctx, namespaces)
	if err != nil {
		logFailure(ctx, err)
	}
	c.remember(namespaces, allowed)
}

// askAgain asks about all that the caller sees, and about some of what it does not see, as often as the
// bound on that allows. It returns whether any answer differs from the one before.
func (c *Caller) askAgain(ctx context.Context) (changed bool) {
	answerBy, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	namespaces := c.due()
	allowed, err := c.ask(answerBy, namespaces)
	isOver := ctx.Err() != nil
	if isOver || !c.remember(namespaces, allowed) {
		return false
	}
	if err != nil {
		logFailure(ctx, err)
	}
	return true
}

// due returns the namespaces to ask about again. Of those that were refused it is those that have waited
// longest.
func (c *Caller) due() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var seen, refused []string
	for namespace, a := range c.answers {
		if a.allowed {
			seen = append(seen, namespace)
		} else {
			refused = append(refused, namespace)
		}
	}
	budget := 0
	for budget < len(refused) && c.view.refusals.TryAccept() {
		budget++
	}
	if 0 < budget && budget < len(refused) {
		slices.SortFunc(refused, func(a, b string) int { return c.answers[a].asked.Compare(c.answers[b].asked) })
	}
	return append(seen, refused[:budget]...)
}

// remember returns whether any answer differs from the one before.
func (c *Caller) remember(namespaces []string, allowed []bool) (changed bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, namespace := range namespaces {
		before, known := c.answers[namespace]
		changed = changed || known && before.allowed != allowed[i]
		c.answers[namespace] = answer{allowed: allowed[i], asked: now}
	}
	return changed
}

// visible returns those of the pools that the caller is known to see. It returns pools itself where that is all
// of them, and modifies nothing.
func (c *Caller) visible(pools []images.PoolStatus) []images.PoolStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[allNamespaces].allowed {
		return pools
	}
	var shown []images.PoolStatus
	hidden, allowed := false, false
	for i := range pools {
		if i == 0 || pools[i].Namespace != pools[i-1].Namespace {
			allowed = c.answers[pools[i].Namespace].allowed
		}
		switch {
		case !allowed && !hidden:
			hidden, shown = true, append(shown, pools[:i]...)
		case allowed && hidden:
			shown = append(shown, pools[i])
		}
	}
	if !hidden {
		return pools
	}
	return shown
}

// ask returns for each namespace whether the caller may see its pools. Where there is no answer it may not,
// and the error is one of the reasons for that.
func (c *Caller) ask(ctx context.Context, namespaces []string) (allowed []bool, err error) {
	allowed = make([]bool, len(namespaces))
	if c.user == nil {
		return allowed, nil
	}
	if c.view.knownToSee != nil && c.view.knownToSee(c.user.GetName()) {
		for i := range allowed {
			allowed[i] = true
		}
		return allowed, nil
	}
	resource := c.view.poolResource()
	failures := make([]error, len(namespaces))
	question := func(i int) {
		decision, _, err := c.view.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User:            c.user,
			Verb:            "get",
			Namespace:       namespaces[i],
			APIGroup:        resource.Group,
			APIVersion:      resource.Version,
			Resource:        resource.Resource,
			ResourceRequest: true,
		})
		allowed[i], failures[i] = err == nil && decision == authorizer.DecisionAllow, err
	}
	if len(namespaces) == 1 {
		question(0)
	} else {
		workqueue.ParallelizeUntil(ctx, parallelQuestions, len(namespaces), question)
	}
	if ctx.Err() != nil {
		return allowed, ctx.Err()
	}
	i := slices.IndexFunc(failures, func(err error) bool { return err != nil })
	if i < 0 {
		return allowed, nil
	}
	return allowed, failures[i]
}

// logFailure tells at default verbosity what kind of error it was: the error itself may name a namespace. From a caller
// who has left nothing is hidden.
func logFailure(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	logger := klog.FromContext(ctx)
	logger.Info("Pools are hidden from a caller, because the question what it may see is not answered", "reason", apierrors.ReasonForError(err))
	logger.V(4).Info("A question about what a caller may see failed", "err", err)
}
