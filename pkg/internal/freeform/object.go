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
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// malformedLimit is how many paths are recorded: enough to find the mistake.
	malformedLimit = 16
	// pathLimit is far longer than any path of a field that is asked for.
	pathLimit = 253
)

// Object is a JSON object. The zero value is an empty one.
type Object struct {
	fields    map[string]any
	path      string
	malformed *[]string
}

// From returns an Object that passes over fields of the wrong type.
func From(content map[string]any) Object {
	return Object{fields: content}
}

// Recording returns an Object that adds to malformed the paths of the fields it is asked for that hold a
// value of the wrong type, of the first few of them.
func Recording(content map[string]any, malformed *[]string) Object {
	return Object{fields: content, malformed: malformed}
}

// Exists is true for an object that was there, if only an empty one.
func (o Object) Exists() bool {
	return o.fields != nil
}

// Has is true for a field that is present and not null, whatever its type.
func (o Object) Has(key string) bool {
	return o.fields[key] != nil
}

// Object returns the object in a field, empty if there is none.
func (o Object) Object(key string) Object {
	value := o.fields[key]
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		o.wrong(key)
	}
	child := Object{fields: fields, malformed: o.malformed}
	if o.malformed != nil {
		child.path = o.pathOf(key)
	}
	return child
}

// Objects returns the objects in a list, none if there is no list.
func (o Object) Objects(key string) []Object {
	value := o.fields[key]
	list, ok := value.([]any)
	if !ok && value != nil {
		o.wrong(key)
	}
	objects := make([]Object, 0, len(list))
	for i, item := range list {
		element := key + "[" + strconv.Itoa(i) + "]"
		fields, ok := item.(map[string]any)
		if !ok {
			o.wrong(element)
			continue
		}
		objects = append(objects, Object{fields: fields, path: o.pathOf(element), malformed: o.malformed})
	}
	return objects
}

// Text returns the string in a field, cut after limit bytes, empty if there is none.
func (o Object) Text(key string, limit int) string {
	value := o.fields[key]
	text, ok := value.(string)
	if !ok && value != nil {
		o.wrong(key)
	}
	return Clip(text, limit)
}

// OptionalText is Text that tells a field that is absent (nil) from one that is empty.
func (o Object) OptionalText(key string, limit int) *string {
	text, ok := o.fields[key].(string)
	if !ok {
		_ = o.Text(key, limit)
		return nil
	}
	text = Clip(text, limit)
	return &text
}

// Written returns the string or the number in a field as it was written, cut after limit bytes, empty if
// there is neither.
func (o Object) Written(key string, limit int) string {
	switch value := o.fields[key].(type) {
	case int:
		return strconv.Itoa(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		return Clip(strconv.FormatFloat(value, 'f', -1, 64), limit)
	}
	return o.Text(key, limit)
}

// Int32 returns the whole number in a field, or the nearest one that fits; nil if there is none.
func (o Object) Int32(key string) *int32 {
	var number float64
	switch value := o.fields[key].(type) {
	case nil:
		return nil
	case int:
		number = float64(value)
	case int64:
		number = float64(value)
	case float64:
		number = value
	default:
		number = math.NaN()
	}
	if number != math.Trunc(number) {
		o.wrong(key)
		return nil
	}
	fitting := int32(min(max(number, math.MinInt32), math.MaxInt32))
	return &fitting
}

// Time returns the point in time in a field, the zero time if there is none.
func (o Object) Time(key string) time.Time {
	text := o.Text(key, len(time.RFC3339Nano))
	if text == "" {
		return time.Time{}
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		o.wrong(key)
		return time.Time{}
	}
	return parsed.Local()
}

// Clip returns text as valid UTF-8 of at most limit bytes, cut between two characters.
func Clip(text string, limit int) string {
	if len(text) > limit {
		// Looking at a few bytes more than fit tells whether the cut goes through a character.
		end := limit
		for end > 0 && limit-end < utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	valid := strings.ToValidUTF8(text, "")
	if len(valid) == len(text) {
		return text
	}
	return valid
}

func (o Object) wrong(key string) {
	if o.malformed != nil && len(*o.malformed) < malformedLimit {
		*o.malformed = append(*o.malformed, Clip(o.pathOf(key), pathLimit))
	}
}

func (o Object) pathOf(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}
