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

package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/cozystack/workerimage-apiserver/pkg/history"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

// sourceChecks returns a readiness check for each source. It fails until the source has been tried, and
// passes from then on, whether the source can be read or not: a server that is taken out of its Service
// takes discovery down with it, for every kind and every client. Whether the source can be read, and what was
// read can be used, is part of the check's name, so that /readyz?verbose tells.
func sourceChecks(inv *inventory.Inventory) []healthz.HealthChecker {
	var checks []healthz.HealthChecker
	for i := range inv.Health() {
		checks = append(checks, sourceCheck{health: func() inventory.SourceHealth { return inv.Health()[i] }})
	}
	return checks
}

// historyCheck fails until the logs have a history, of this replica or of another. Until then requests are turned
// away.
func historyCheck(journal *history.Journal) healthz.HealthChecker {
	return healthz.NamedCheck("history", func(*http.Request) error {
		if journal.HasHistory() {
			return nil
		}
		return errors.New("another replica is about to order the changes, and does not answer yet")
	})
}

type sourceCheck struct {
	health func() inventory.SourceHealth
}

var _ healthz.HealthChecker = sourceCheck{}

// Name is one of a few, so that it can be a label of a metric.
func (c sourceCheck) Name() string {
	h := c.health()
	name := "source-" + h.Name
	switch {
	case settled(h) && !h.Readable:
		return name + " (cannot be read)"
	case h.Malformed:
		return name + " (does not parse)"
	}
	return name
}

// Check is the readiness of the source.
func (c sourceCheck) Check(*http.Request) error {
	if settled(c.health()) {
		return nil
	}
	return errors.New("has not been read yet")
}

func settled(h inventory.SourceHealth) bool { return h.Synced || h.LastError != nil }

// notReady says which sources a server waits for, to a client that is turned away meanwhile.
func notReady(inv *inventory.Inventory) string {
	var waiting []string
	for _, h := range inv.Health() {
		switch {
		case h.Synced:
		case h.LastError != nil:
			waiting = append(waiting, fmt.Sprintf("%s (%v)", h.Name, h.LastError))
		default:
			waiting = append(waiting, h.Name)
		}
	}
	return strings.Join(waiting, ", ")
}
