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

package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// item is an object as it was sent.
type item struct {
	version string
	// content is all of it but the version and the kind, which is left out in lists.
	content string
}

// state are objects by namespace and name.
type state map[string]item

type metadata struct {
	Name, Namespace, ResourceVersion string
	Continue                         string
	Annotations                      map[string]string
}

var transitionTime = regexp.MustCompile(`"lastTransitionTime":"[^"]*",?`)

// parser reads objects. Most of them it has seen before.
type parser map[string]parsed

type parsed struct {
	metadata
	item
}

// parse reads an object.
func (p parser) parse(raw []byte) (parsed, error) {
	raw = bytes.TrimSpace(raw)
	if known, ok := p[string(raw)]; ok {
		return known, nil
	}
	var o struct{ Metadata metadata }
	if err := json.Unmarshal(raw, &o); err != nil {
		return parsed{}, fmt.Errorf("%w in %s", err, raw)
	}
	content := strings.Replace(string(raw), `,"resourceVersion":"`+o.Metadata.ResourceVersion+`"`, "", 1)
	if start := strings.Index(content, `"metadata":`); start > 0 {
		content = content[start:] // kind and apiVersion are left out in lists
	}
	out := parsed{o.Metadata, item{version: o.Metadata.ResourceVersion, content: content}}
	p[string(raw)] = out
	return out, nil
}

func (m metadata) key() string { return m.Namespace + "/" + m.Name }

// withoutTimes leaves out what depends on when something was seen.
func withoutTimes(content string) string { return transitionTime.ReplaceAllString(content, "") }

// listed is a list, or a page of one.
type listed struct {
	version, token string
	items          state
	last           string
}

func (p parser) parseList(body []byte) (listed, error) {
	var list struct {
		Metadata metadata
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return listed{}, fmt.Errorf("%w in %s", err, body)
	}
	out := listed{version: list.Metadata.ResourceVersion, token: list.Metadata.Continue, items: state{}}
	for _, raw := range list.Items {
		o, err := p.parse(raw)
		if err != nil {
			return out, err
		}
		if o.key() <= out.last {
			return out, fmt.Errorf("%s is listed after %s", o.key(), out.last)
		}
		out.items[o.key()], out.last = o.item, o.key()
	}
	return out, nil
}

// event is one of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

func (e event) status() metav1.Status {
	var status metav1.Status
	if err := json.Unmarshal(e.Object, &status); err != nil {
		status.Message = err.Error()
	}
	return status
}

// difference says where two states differ, "" if nowhere. Versions are compared by the function that is given.
func difference(got, want state, versions func(got, want string) bool) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(got)) {
		g := got[key]
		w, ok := want[key]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("%s should not be there: %s", key, g.content))
		case g.content != w.content:
			out = append(out, fmt.Sprintf("%s is  %s at %s\nand not %s at %s", key, g.content, g.version, w.content, w.version))
		case !versions(g.version, w.version):
			out = append(out, fmt.Sprintf("%s has version %s and not %s", key, g.version, w.version))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[key]; !ok {
			out = append(out, fmt.Sprintf("%s is missing: %s", key, want[key].content))
		}
	}
	return strings.Join(out, "\n")
}

func sameVersion(got, want string) bool { return got == want }

func parseVersion(version string) uint64 {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// notNewer is for who does not see all: what is hidden moves an object's version, and no event tells of it.
func notNewer(got, want string) bool { return parseVersion(got) <= parseVersion(want) }

func anyVersion(string, string) bool { return true }
