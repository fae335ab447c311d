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

package metrics

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestQuestionsByAnswer(t *testing.T) {
	r := NewRecorder()
	for _, test := range []struct {
		name     string
		decision authorizer.Decision
		err      error
		want     string
	}{
		{"allowed", authorizer.DecisionAllow, nil, answerAllowed},
		{"denied", authorizer.DecisionDeny, nil, answerDenied},
		{"nobody has an opinion", authorizer.DecisionNoOpinion, nil, answerDenied},
		{"nobody answers", authorizer.DecisionNoOpinion, errors.New("timeout"), answerFailed},
		{"an error comes with the answer", authorizer.DecisionAllow, errors.New("half of it"), answerFailed},
	} {
		before := r.questions.get(test.want)
		asked := r.Authorizer(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return test.decision, "because", test.err
		}))
		decision, reason, err := asked.Authorize(t.Context(), authorizer.AttributesRecord{})
		if decision != test.decision || reason != "because" || !errors.Is(err, test.err) {
			t.Errorf("%s: the answer became %v, %q, %v", test.name, decision, reason, err)
		}
		if got := r.questions.get(test.want); got != before+1 {
			t.Errorf("%s: it is not counted as %s", test.name, test.want)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	asked := r.Authorizer(authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", ctx.Err()
	}))
	if _, _, err := asked.Authorize(gone, authorizer.AttributesRecord{}); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left is answered %v", err)
	}
	check(t, r, nothing(), "workerimage_view_questions_total", `workerimage_view_questions_total{answer="allowed"} 1
workerimage_view_questions_total{answer="denied"} 2
workerimage_view_questions_total{answer="failed"} 2
`)
}
