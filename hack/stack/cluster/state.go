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

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

const (
	stateFile = "state.json"
	auditLog  = "audit.log"
)

// State is what others need to know of a stack. It is kept in its directory.
type State struct {
	// PID is the process that owns the stack; the stack ends with it.
	PID int `json:"pid"`
	// Ready is set once everything works.
	Ready bool   `json:"ready"`
	Dir   string `json:"dir"`
	// Kubeconfig is the administrator's, Kubeconfigs are the tenants', by name.
	Kubeconfig  string            `json:"kubeconfig,omitempty"`
	Kubeconfigs map[string]string `json:"kubeconfigs,omitempty"`
	Kubectl     string            `json:"kubectl,omitempty"`
	APIServer   string            `json:"apiServer,omitempty"`
	// Etcd is the address of etcd, which lets everybody in.
	Etcd string `json:"etcd,omitempty"`
	// Server is the address of the server under development, if one was started.
	Server string `json:"server,omitempty"`
	// Replicas are the addresses of the servers behind it, if there are several.
	Replicas []string `json:"replicas,omitempty"`
	SimRules string   `json:"simRules,omitempty"`
	AuditLog string   `json:"auditLog,omitempty"`
	// Processes are those that run, by name.
	Processes map[string]process.Status `json:"processes,omitempty"`
}

// ReadState reads the state of the stack in dir.
func ReadState(dir string) (State, error) {
	var state State
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(content, &state); err != nil {
		return state, fmt.Errorf("read the state of the stack in %s: %w", dir, err)
	}
	return state, nil
}

// State is the present state of the stack.
func (c *Cluster) State() State {
	s := State{
		PID:         os.Getpid(),
		Ready:       true,
		Dir:         c.dir.path,
		Kubeconfig:  c.dir.file(adminKubeconfig),
		Kubeconfigs: map[string]string{},
		Kubectl:     c.options.Binaries.Kubectl,
		APIServer:   c.config.Host,
		Etcd:        c.etcdAddress(),
		SimRules:    c.dir.file(simRulesFile),
		AuditLog:    c.dir.file(auditLog),
		Processes:   c.processes.Running(),
	}
	if c.options.Kubeconfig != "" {
		s.Kubeconfig = c.options.Kubeconfig
	}
	for _, tenant := range tenants {
		s.Kubeconfigs[tenant] = c.handedOut(c.dir.file(tenant + ".kubeconfig"))
	}
	if c.options.Server.Path != "" {
		s.Server = c.configFor(serverPort).Host
	}
	if c.balancer != nil {
		for i := range c.Replicas() {
			s.Replicas = append(s.Replicas, c.ReplicaConfig(i).Host)
		}
	}
	return s
}

// writeState replaces the file in one step, so that a reader never sees half of one.
func writeState(dir *directory, state State) error {
	content, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	scratch := dir.file(stateFile + ".new")
	if err := os.WriteFile(scratch, append(content, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(scratch, dir.file(stateFile))
}
