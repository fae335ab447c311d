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

package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	// documentLimit is what a ConfigMap can hold.
	documentLimit = 1 << 20
	// textLimit bounds every string of the document, so that an alias cannot make a short document long. It
	// leaves room for the rest of a source URL below the length at which shown URLs are cut.
	textLimit = 1024
	// errorLimit bounds what the YAML parser says, for it quotes the document.
	errorLimit = 256
)

// mapping is a mapping of the document. Its values are nodes, because only they tell what was written: 1.13
// from "1.13", and a key given twice from one given once.
type mapping struct {
	// keys are in the order of the document, each once.
	keys   []string
	values map[string]*yaml.Node
	// repeated holds the keys that are given more than once.
	repeated map[string]bool
}

// readDocument returns the mapping that a document consists of, an empty one for an empty document.
func readDocument(content []byte) (mapping, error) {
	if len(content) > documentLimit {
		return mapping{}, fmt.Errorf("the document has %d bytes, at most %d are accepted", len(content), documentLimit)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	root, err := nextDocument(decoder)
	if err != nil {
		return mapping{}, err
	}
	second, err := nextDocument(decoder)
	switch {
	case err != nil:
		return mapping{}, err
	case second != nil:
		return mapping{}, errors.New("more than one YAML document, exactly one is accepted")
	case isNull(root):
		return mapping{}, nil
	case root.Kind != yaml.MappingNode:
		return mapping{}, fmt.Errorf("the document is %s, a mapping with the key %s is accepted", describe(root), imagesKey)
	}
	return mappingFrom(root), nil
}

// nextDocument returns the root of the next document of the stream, nil behind the last one.
func nextDocument(decoder *yaml.Decoder) (*yaml.Node, error) {
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.New(freeform.Clip(err.Error(), errorLimit))
	}
	return document.Content[0], nil
}

// mappingFrom reads a node that is a mapping.
func mappingFrom(node *yaml.Node) mapping {
	m := mapping{values: map[string]*yaml.Node{}, repeated: map[string]bool{}}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := resolve(node.Content[i]).Value
		if _, found := m.values[key]; found {
			m.repeated[key] = true
			continue
		}
		m.keys = append(m.keys, key)
		m.values[key] = resolve(node.Content[i+1])
	}
	return m
}

// list returns the items of a list, none where it is absent or null.
func (m mapping) list(key string) ([]*yaml.Node, error) {
	node := m.values[key]
	switch {
	case m.repeated[key]:
		return nil, fmt.Errorf("%s is given more than once", key)
	case isNull(node):
		return nil, nil
	case node.Kind != yaml.SequenceNode:
		return nil, fmt.Errorf("%s is %s, a list is accepted", key, describe(node))
	}
	return node.Content, nil
}

// text returns the string of a key, empty where it is absent or null, or what is wrong with it. A whole
// number stands for the string that it is written as where one is accepted.
func (m mapping) text(key string, acceptNumber bool) (text, wrong string) {
	node := m.values[key]
	switch {
	case m.repeated[key]:
		return "", "is given more than once, exactly one value is accepted"
	case isNull(node):
		return "", ""
	case node.Kind != yaml.ScalarNode:
		return "", fmt.Sprintf("is %s, a string is accepted", describe(node))
	case node.ShortTag() != "!!str" && (!acceptNumber || node.ShortTag() != "!!int"):
		return "", fmt.Sprintf("is %s, a string is accepted: put it in quotes", describe(node))
	case len(node.Value) > textLimit:
		return "", fmt.Sprintf("has %d bytes, at most %d are accepted", len(node.Value), textLimit)
	}
	return node.Value, ""
}

// resolve returns the node that an alias stands for.
func resolve(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node == nil || node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// describe says what kind of value a node is, and nothing of what it holds.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch node.ShortTag() {
	case "!!str":
		return "a string"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a boolean"
	case "!!timestamp":
		return "a date"
	case "!!null":
		return "null"
	}
	return "a value of a type of its own"
}
