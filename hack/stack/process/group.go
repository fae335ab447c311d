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

package process

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// Spec is a program to run. Its output goes to NAME.log in the directory of the group.
type Spec struct {
	Name string
	Path string
	Args []string
	// Env is added to the environment of this process.
	Env []string
}

// Status is what is known of a process of a group.
type Status struct {
	PID int    `json:"pid"`
	Log string `json:"log"`
}

// Group is a set of child processes that start and end together.
type Group struct {
	dir    string
	failed chan error

	mu      sync.Mutex
	members []*member
}

// member is a process of a group over all its restarts.
type member struct {
	spec    Spec
	current *Child
}

// NewGroup returns an empty group that keeps its logs in dir.
func NewGroup(dir string) *Group {
	return &Group{dir: dir, failed: make(chan error, 1)}
}

// Failed delivers an error when a process ended that nobody told to.
func (g *Group) Failed() <-chan error {
	return g.failed
}

// Start runs a program. Starting a name again replaces the one that ended.
func (g *Group) Start(spec Spec) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.find(spec.Name)
	if m == nil {
		m = &member{}
	} else if !m.current.ended() {
		return fmt.Errorf("%s is running already", spec.Name)
	}
	c, err := Start(spec, g.log(spec.Name), g.fail)
	if err != nil {
		return err
	}
	if m.current == nil {
		g.members = append(g.members, m)
	}
	m.spec, m.current = spec, c
	return nil
}

// Stop ends a process with SIGTERM and waits until it is gone.
func (g *Group) Stop(name string) error {
	return g.end(name, syscall.SIGTERM)
}

// Kill ends a process with SIGKILL, as a crash would, and waits until it is gone.
func (g *Group) Kill(name string) error {
	return g.end(name, syscall.SIGKILL)
}

// Restart stops a process, if it still runs, and starts it as it was.
func (g *Group) Restart(name string) error {
	if err := g.Stop(name); err != nil {
		return err
	}
	g.mu.Lock()
	spec := g.find(name).spec
	g.mu.Unlock()
	return g.Start(spec)
}

// StopAll ends all processes, the last one started first, and waits until they are gone.
func (g *Group) StopAll() error {
	g.mu.Lock()
	members := slices.Clone(g.members)
	g.mu.Unlock()
	var errs []error
	for _, m := range slices.Backward(members) {
		errs = append(errs, g.Stop(m.spec.Name))
	}
	return errors.Join(errs...)
}

// Running lists the processes that run now, by name.
func (g *Group) Running() map[string]Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	running := make(map[string]Status, len(g.members))
	for _, m := range g.members {
		if !m.current.ended() {
			running[m.spec.Name] = Status{PID: m.current.pid(), Log: g.log(m.spec.Name)}
		}
	}
	return running
}

func (g *Group) end(name string, signal syscall.Signal) error {
	g.mu.Lock()
	m := g.find(name)
	g.mu.Unlock()
	if m == nil {
		return fmt.Errorf("no process %s", name)
	}
	return m.current.End(signal, stopGrace)
}

func (g *Group) find(name string) *member {
	for _, m := range g.members {
		if m.spec.Name == name {
			return m
		}
	}
	return nil
}

func (g *Group) log(name string) string {
	return filepath.Join(g.dir, name+".log")
}

// fail keeps the first failure: the others follow from it.
func (g *Group) fail(err error) {
	select {
	case g.failed <- err:
	default:
	}
}
