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

package model

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const operator = "operator"

// noticeTime is how long a watch may go on with what its caller may see no more.
const noticeTime = 2100 * time.Millisecond

// access is what the cluster's API server says of who may see the pools of a namespace. The operator may see all.
type access struct {
	mu sync.Mutex
	// granted are the namespaces whose pools a user may see, and revoked says since when not any more.
	granted map[string]sets.Set[string]
	revoked map[string]map[string]time.Time
	// silent are the users about whom there is no answer.
	silent sets.Set[string]
	// changes counts those of each user, and changed says when the last one was.
	changes map[string]int
	changed map[string]time.Time
}

func newAccess() *access {
	a := &access{
		granted: map[string]sets.Set[string]{}, revoked: map[string]map[string]time.Time{}, silent: sets.New[string](),
		changes: map[string]int{}, changed: map[string]time.Time{},
	}
	for _, tenant := range tenants {
		a.granted[tenant], a.revoked[tenant] = sets.New(tenant), map[string]time.Time{}
	}
	return a
}

func (a *access) authorizer() authorizer.AuthorizerFunc {
	return func(_ context.Context, q authorizer.Attributes) (authorizer.Decision, string, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		caller := q.GetUser().GetName()
		switch {
		case caller == operator, q.GetAPIGroup() == "images.cozystack.io":
			return authorizer.DecisionAllow, "", nil
		case a.silent.Has(caller):
			return authorizer.DecisionNoOpinion, "", errors.New("nobody answers")
		case q.GetVerb() == "get" && a.granted[caller].Has(q.GetNamespace()):
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}
}

// toggle grants what is not granted and revokes what is.
func (a *access) toggle(user, namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.granted[user].Has(namespace) {
		a.granted[user].Delete(namespace)
		a.revoked[user][namespace] = time.Now()
	} else {
		a.granted[user].Insert(namespace)
	}
	a.note(user)
}

// toggleSilence makes that nobody answers, or somebody again.
func (a *access) toggleSilence(user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent.Has(user) {
		a.silent.Delete(user)
	} else {
		a.silent.Insert(user)
		for namespace := range a.granted[user] {
			a.revoked[user][namespace] = time.Now()
		}
	}
	a.note(user)
}

func (a *access) note(user string) {
	a.changes[user]++
	a.changed[user] = time.Now()
}

// generation is another one whenever what a user may see has changed.
func (a *access) generation(user string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changes[user]
}

// isSettled is true once every watch must have noticed the last change.
func (a *access) isSettled(user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.changed[user]
	return !ok || time.Since(at) > noticeTime
}

// hidden returns the words that what a user is sent at a time must not contain. A watch may be late by grace.
func (a *access) hidden(user string, at time.Time, grace time.Duration) []string {
	if user == operator {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, namespace := range tenants {
		isSeen := a.granted[user].Has(namespace) && !a.silent.Has(user)
		since, wasSeen := a.revoked[user][namespace]
		if !isSeen && (!wasSeen || at.Sub(since) > grace) {
			out = append(out, namespace)
		}
	}
	return out
}

// namespaces are what a user was granted, for the report of a failure.
func (a *access) namespaces(user string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return sets.List(sets.KeySet(maps.Collect(maps.All(a.granted[user]))))
}
