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

package freeform

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestFieldOfTheWrongTypeIsAbsentAndRecorded(t *testing.T) {
	content := map[string]any{
		"text":    []any{"x"},
		"number":  "3",
		"half":    2.5,
		"object":  "x",
		"list":    map[string]any{},
		"time":    "yesterday",
		"nothing": nil,
		"items":   []any{map[string]any{"name": true}, 7},
	}
	var malformed []string
	object := Recording(content, &malformed)

	if got := object.Text("text", 10); got != "" {
		t.Errorf("Text of a list is %q", got)
	}
	if got := object.OptionalText("text", 10); got != nil {
		t.Errorf("OptionalText of a list is %q", *got)
	}
	if got := object.Written("object", 10); got != "x" {
		t.Errorf("Written of a string is %q", got)
	}
	if got := object.Written("list", 10); got != "" {
		t.Errorf("Written of an object is %q", got)
	}
	if got := object.Int32("number"); got != nil {
		t.Errorf("Int32 of a string is %d", *got)
	}
	if got := object.Int32("half"); got != nil {
		t.Errorf("Int32 of a half is %d", *got)
	}
	if object.Object("object").Exists() {
		t.Error("Object of a string exists")
	}
	if got := object.Object("object").Object("deeper").Text("still", 10); got != "" {
		t.Errorf("Text below a string is %q", got)
	}
	if got := object.Objects("list"); len(got) != 0 {
		t.Errorf("Objects of an object are %v", got)
	}
	if got := object.Time("time"); !got.IsZero() {
		t.Errorf("Time of a word is %v", got)
	}
	if got := object.Objects("items"); len(got) != 1 || got[0].Text("name", 10) != "" {
		t.Errorf("Objects of a mixed list are %v", got)
	}
	want := []string{"text", "text", "list", "number", "half", "object", "object", "list", "time", "items[1]", "items[0].name"}
	if diff := cmp.Diff(want, malformed); diff != "" {
		t.Errorf("malformed (-want +got):\n%s", diff)
	}
}

func TestAbsentAndNullAreNotMalformed(t *testing.T) {
	var malformed []string
	object := Recording(map[string]any{"null": nil}, &malformed)
	for _, key := range []string{"null", "absent"} {
		if object.Has(key) || object.Object(key).Exists() || object.Text(key, 10) != "" || object.OptionalText(key, 10) != nil ||
			object.Written(key, 10) != "" || object.Int32(key) != nil || len(object.Objects(key)) != 0 || !object.Time(key).IsZero() {
			t.Errorf("%s holds something", key)
		}
	}
	if len(malformed) != 0 {
		t.Errorf("malformed: %v", malformed)
	}
}

func TestWrittenKeepsTheFormOfANumber(t *testing.T) {
	for want, value := range map[string]any{
		"6Gi":        "6Gi",
		"6442450944": int64(6442450944),
		"7":          7,
		"1.35":       1.35,
		"6000000000": 6e9,
	} {
		if got := From(map[string]any{"key": value}).Written("key", 10); got != want {
			t.Errorf("Written(%v) = %q, want %q", value, got, want)
		}
	}
}

func TestInt32TakesTheNearestThatFits(t *testing.T) {
	for _, test := range []struct {
		value any
		want  int32
	}{
		{value: 3, want: 3},
		{value: int64(3), want: 3},
		{value: 3.0, want: 3},
		{value: int64(1) << 40, want: 1<<31 - 1},
		{value: -1e300, want: -1 << 31},
	} {
		got := From(map[string]any{"key": test.value}).Int32("key")
		if got == nil || *got != test.want {
			t.Errorf("Int32(%v) = %v, want %d", test.value, got, test.want)
		}
	}
}

func TestTimeIsAPointInTime(t *testing.T) {
	got := From(map[string]any{"key": "2026-11-30T20:27:30+02:00"}).Time("key")
	if want := time.Date(2026, 11, 30, 18, 27, 30, 0, time.UTC); !got.Equal(want) {
		t.Errorf("Time is %v, want %v", got, want)
	}
}

func TestRecordingIsBounded(t *testing.T) {
	var malformed []string
	Recording(map[string]any{"list": make([]any, 1000)}, &malformed).Objects("list")
	if len(malformed) != malformedLimit {
		t.Errorf("%d paths are recorded, want %d", len(malformed), malformedLimit)
	}
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	for _, test := range []struct {
		name  string
		text  string
		limit int
		want  string
	}{
		{name: "text that fits is kept", text: "grün", limit: 5, want: "grün"},
		{name: "a character that does not fit is left out", text: "grün", limit: 3, want: "gr"},
		{name: "nothing fits into nothing", text: "ü", limit: 0, want: ""},
		{name: "a cut through bytes that are no character leaves nothing", text: "\x80\x80\x80", limit: 2, want: ""},
		{name: "bytes that are no character are dropped", text: "a\xff\xfeb", limit: 10, want: "ab"},
		{name: "a long run of bytes that are no character is cut", text: strings.Repeat("\x80", 50), limit: 20, want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Clip(test.text, test.limit)
			if got != test.want || !utf8.ValidString(got) || len(got) > test.limit {
				t.Errorf("Clip(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
			}
		})
	}
}
