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

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const (
	// serverUser is whom the server is to the cluster.
	serverUser = "system:serviceaccount:cozy-system:workerimage-apiserver"
	// controllerManagerUser watches for the controllers, the garbage collector among them; they act as users of their own.
	controllerManagerUser = "system:kube-controller-manager"
	controllerUsers       = "system:serviceaccount:kube-system:"
)

// auditLog is what the API server was asked for, as far as the policy of the stack records it.
type auditLog []auditEvent

// auditEvent is a request.
type auditEvent struct {
	Verb string `json:"verb"`
	URI  string `json:"requestURI"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Group    string `json:"apiGroup"`
		Resource string `json:"resource"`
		Name     string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// audit reads what there is so far.
func (p *platform) audit(t *testing.T) auditLog {
	t.Helper()
	content, err := os.ReadFile(p.State().AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	// The last line may be on its way.
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	var log auditLog
	for line := range bytes.Lines(content) {
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("parse %s: %v", line, err)
		}
		log = append(log, event)
	}
	return log
}

// by returns the requests of a user.
func (l auditLog) by(user string) auditLog {
	var found auditLog
	for _, event := range l {
		if event.User.Username == user {
			found = append(found, event)
		}
	}
	return found
}

// of returns the requests for a group.
func (l auditLog) of(group string) auditLog {
	var found auditLog
	for _, event := range l {
		if event.Object.Group == group {
			found = append(found, event)
		}
	}
	return found
}

// isStreamedList is true for a list that comes as the beginning of a watch.
func (e auditEvent) isStreamedList() bool {
	return e.Verb == "watch" && strings.Contains(e.URI, "sendInitialEvents=true")
}
