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

// chartdocs writes the README of the chart: what it is, and a table of its values, made from the comments in values.yaml.
// A value without a comment is an error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const introduction = `# workerimage-apiserver

The Helm chart. [docs/operations.md](../../docs/operations.md) says how to install, size, upgrade and remove what it installs.

` + "```" + `
helm upgrade --install workerimage-apiserver artifacts/chart --namespace cozy-system
` + "```" + `

The names of the objects are fixed, whatever the release is called: an APIService belongs to the cluster, so there is one
of everything. ` + "`artifacts/deploy`" + ` is this chart, rendered with its default values for namespace ` + "`cozy-system`" + `.

## Values

` + "`values.schema.json`" + ` refuses a value that is not in this table. The table is made from the comments in ` + "`values.yaml`" + `.

| value | default | |
|---|---|---|
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chartdocs CHART")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(chart string) error {
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	rows, err := table(content)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(chart, "README.md"), []byte(introduction+rows), 0o644)
}

// table returns a row for each value.
func table(values []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return "", err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("the values are no mapping")
	}
	var rows strings.Builder
	err := describe(&rows, "", document.Content[0])
	return rows.String(), err
}

// describe writes the rows of a group of values.
func describe(rows *strings.Builder, prefix string, group *yaml.Node) error {
	for i := 0; i < len(group.Content); i += 2 {
		key, value := group.Content[i], group.Content[i+1]
		name := prefix + key.Value
		if isGroup(value) {
			if err := describe(rows, name+".", value); err != nil {
				return err
			}
			continue
		}
		comment := strings.Join(strings.Fields(strings.ReplaceAll(key.HeadComment, "#", "")), " ")
		if comment == "" {
			return fmt.Errorf("line %d: %s has no comment", key.Line, name)
		}
		var content any
		if err := value.Decode(&content); err != nil {
			return err
		}
		text, err := json.Marshal(content)
		if err != nil {
			return err
		}
		fmt.Fprintf(rows, "| `%s` | `%s` | %s |\n", name, text, strings.ReplaceAll(comment, "|", `\|`))
	}
	return nil
}

// isGroup is true for a mapping whose members are values of their own, which have comments.
func isGroup(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode || len(node.Content) == 0 {
		return false
	}
	return node.Content[0].HeadComment != "" || isGroup(node.Content[1])
}
