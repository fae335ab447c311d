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
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
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
	Object   auditedObject `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations struct {
		// Decision is allow or forbid. A request that is allowed may still be refused, by admission.
		Decision string `json:"authorization.k8s.io/decision"`
		// Reason names the binding that allows it.
		Reason string `json:"authorization.k8s.io/reason"`
	} `json:"annotations"`
	// Answer to a question whether somebody may do something.
	Answer *authorizationv1.SubjectAccessReview `json:"responseObject,omitempty"`
}

// auditedObject is what a request is for.
type auditedObject struct {
	Namespace   string `json:"namespace"`
	Group       string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Name        string `json:"name"`
}

func (o auditedObject) String() string {
	return fmt.Sprintf("%s %s", schema.GroupResource{Group: o.Group, Resource: path.Join(o.Resource, o.Subresource)}, path.Join(o.Namespace, o.Name))
}

// audit reads what there is so far.
func (p *platform) audit(t *testing.T) auditLog {
	t.Helper()
	log, err := readAuditLog(p.Stack, "")
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// readAuditLog reads the requests whose lines hold a word.
func readAuditLog(s *stack.Stack, word string) (auditLog, error) {
	content, err := os.ReadFile(s.State().AuditLog)
	if err != nil {
		return nil, err
	}
	// The last line may be on its way.
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	var log auditLog
	for line := range bytes.Lines(content) {
		if !bytes.Contains(line, []byte(word)) {
			continue
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("parse %s: %w", line, err)
		}
		log = append(log, event)
	}
	return log, nil
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

// authorizedFor returns the requests of a user, those that it sent to others among them: whoever is sent one asks whether
// the user may.
func (l auditLog) authorizedFor(user string) auditLog {
	found := l.by(user)
	for _, event := range l {
		review := event.Answer
		if review == nil || review.Spec.User != user || review.Spec.ResourceAttributes == nil {
			continue
		}
		asked := review.Spec.ResourceAttributes
		event.Verb = asked.Verb
		event.Object = auditedObject{
			Namespace: asked.Namespace, Group: asked.Group, Resource: asked.Resource, Subresource: asked.Subresource, Name: asked.Name,
		}
		event.Annotations.Reason = review.Status.Reason
		event.Annotations.Decision = "forbid"
		if review.Status.Allowed {
			event.Annotations.Decision = "allow"
		}
		event.Answer = nil
		found = append(found, event)
	}
	return found
}

// mayWrite is all that the server ever writes, as verbs of an object; an empty name stands for all of its kind.
var mayWrite = map[auditedObject][]string{
	{Namespace: objects.Goldens, Group: "cdi.kubevirt.io", Resource: "datavolumes"}:                                  {"create", "update", "delete"},
	{Namespace: objects.Goldens, Resource: "persistentvolumeclaims"}:                                                 {"update", "delete"},
	{Namespace: objects.Goldens, Resource: "events"}:                                                                 {"create", "patch"},
	{Namespace: cluster.ServerNamespace, Resource: "secrets", Name: "workerimage-apiserver-serving"}:                 {"update"},
	{Namespace: cluster.ServerNamespace, Group: "coordination.k8s.io", Resource: "leases", Name: stack.HistoryLease}: {"create", "update"},
	{Group: "apiregistration.k8s.io", Resource: "apiservices", Name: "v1alpha1.images.cozystack.io"}:                 {"patch"},
	// These are questions.
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:        {"create"},
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:  {"create"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}: {"create"},
}

// checkAudit returns what is wrong with what the server asked a stack for.
func checkAudit(s *stack.Stack) error {
	log, err := readAuditLog(s, serverUser)
	return errors.Join(err, log.trespasses())
}

// trespasses returns an error that names each kind of request by which the server went beyond its rights, or wrote what
// it never writes.
func (l auditLog) trespasses() error {
	found := sets.New[string]()
	for _, event := range l.authorizedFor(serverUser) {
		if event.Annotations.Decision != "allow" {
			found.Insert(fmt.Sprintf("the server was refused to %s %v", event.Verb, event.Object))
		}
		if !event.reads() && !event.isWriteOf(mayWrite) {
			found.Insert(fmt.Sprintf("the server wrote what it never writes: %s %v", event.Verb, event.Object))
		}
	}
	var errs []error
	for _, trespass := range sets.List(found) {
		errs = append(errs, errors.New(trespass))
	}
	return errors.Join(errs...)
}

func (e auditEvent) reads() bool {
	return slices.Contains([]string{"get", "list", "watch"}, e.Verb)
}

func (e auditEvent) isWriteOf(allowed map[auditedObject][]string) bool {
	kind := e.Object
	kind.Name = ""
	return slices.Contains(slices.Concat(allowed[e.Object], allowed[kind]), e.Verb)
}

// Guards: what is looked for in every log of requests when its stack ends.
func TestATrespassOfTheServerIsFound(t *testing.T) {
	dataVolume := auditedObject{Namespace: objects.Goldens, Group: "cdi.kubevirt.io", Resource: "datavolumes", Name: "talos-worker-a-v1.13.6"}
	elsewhere, status, class := dataVolume, dataVolume, auditedObject{Group: "storage.k8s.io", Resource: "storageclasses"}
	elsewhere.Namespace, status.Subresource = "tenant-a", "status"
	secret := auditedObject{Namespace: cluster.ServerNamespace, Resource: "secrets", Name: "another"}
	for _, test := range []struct {
		name  string
		event auditEvent
		want  string
	}{
		{"it makes a golden", newAuditEvent(serverUser, "create", dataVolume, "allow"), ""},
		{"it reads what it may read", newAuditEvent(serverUser, "watch", class, "allow"), ""},
		{"another writes", newAuditEvent("admin", "create", class, "allow"), ""},
		{"it reads what it may not read", newAuditEvent(serverUser, "list", secret, "forbid"), "refused to list secrets cozy-system/another"},
		{"it writes a golden elsewhere", newAuditEvent(serverUser, "create", elsewhere, "allow"), "never writes: create datavolumes.cdi.kubevirt.io tenant-a/"},
		{"it writes a part of a golden", newAuditEvent(serverUser, "update", status, "allow"), "never writes: update datavolumes/status"},
		{"it writes a golden otherwise", newAuditEvent(serverUser, "patch", dataVolume, "allow"), "never writes: patch datavolumes"},
		{"it writes another Secret", newAuditEvent(serverUser, "update", secret, "allow"), "never writes: update secrets cozy-system/another"},
		{"it writes another kind", newAuditEvent(serverUser, "delete", class, "allow"), "never writes: delete storageclasses"},
		{"another replica refuses it", newQuestion(serverUser, "list", class, false), "refused to list storageclasses"},
		{"another replica lets it read", newQuestion(serverUser, "list", class, true), ""},
		{"somebody else is refused", newQuestion("tenant-a", "list", class, false), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := auditLog{test.event}.trespasses()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func newAuditEvent(user, verb string, object auditedObject, decision string) auditEvent {
	event := auditEvent{Verb: verb, Object: object}
	event.User.Username = user
	event.Annotations.Decision = decision
	return event
}

// newQuestion is that of the server whether a user may do something.
func newQuestion(user, verb string, object auditedObject, allowed bool) auditEvent {
	event := newAuditEvent(serverUser, "create", auditedObject{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "allow")
	event.Answer = &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed}}
	event.Answer.Spec.User = user
	event.Answer.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: verb, Group: object.Group, Resource: object.Resource}
	return event
}
