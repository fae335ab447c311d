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

package stack

import (
	"sync"
	"testing"
)

// Shared is a stack that starts with the first test that asks for it and serves all that follow.
type Shared struct {
	start   func() (*Stack, error)
	running *Stack
}

// NewShared returns a stack that is started by the function. What it returns besides an error is ended all the same.
func NewShared(start func() (*Stack, error)) *Shared {
	s := &Shared{}
	s.start = sync.OnceValues(func() (_ *Stack, err error) {
		s.running, err = start()
		return s.running, err
	})
	return s
}

// Get returns the stack.
func (s *Shared) Get(t *testing.T) *Stack {
	t.Helper()
	running, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	return running
}

// End ends the stack after the last test, if there is one. See Stack.End.
func (s *Shared) End(failed bool) error {
	if s.running == nil {
		return nil
	}
	return s.running.End(failed)
}
