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

package main

import (
	"strings"
	"testing"
)

func TestEveryValueHasARow(t *testing.T) {
	rows, err := table([]byte("# What to run.\nimage: a\n# A group.\ngroup:\n  # How\n  # many.\n  size: 2\n  # Free of form.\n  free: {a: b}\n"))
	want := "| `image` | `\"a\"` | What to run. |\n| `group.size` | `2` | How many. |\n| `group.free` | `{\"a\":\"b\"}` | Free of form. |\n"
	if err != nil || rows != want {
		t.Errorf("%v\n%s", err, rows)
	}
}

func TestAValueWithoutACommentIsAnError(t *testing.T) {
	for _, values := range []string{"a: 1\n", "group:\n  # One.\n  a: 1\n  b: 2\n", "[]"} {
		if _, err := table([]byte(values)); err == nil {
			t.Errorf("none for %q", strings.TrimSpace(values))
		}
	}
}
