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

package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// standardInput is the path that stands for it.
const standardInput = "-"

// content is everything that was read.
type content struct {
	objects map[id]object
	// origins say where each object was found.
	origins map[id]origin
	// ignored counts the objects of other kinds.
	ignored map[schema.GroupVersionKind]int
	// files that were read.
	files []string
}

// origin is a place in a file. Documents count from 1, and those that are empty do not count.
type origin struct {
	file     string
	document int
}

func (o origin) String() string { return fmt.Sprintf("%s, document %d", o.file, o.document) }

// read reads files and folders. stdin is what standardInput stands for.
func read(paths []string, stdin []byte) (*content, error) {
	c := &content{
		objects: map[id]object{},
		origins: map[id]origin{},
		ignored: map[schema.GroupVersionKind]int{},
	}
	for _, path := range paths {
		if path == standardInput {
			if err := c.readDocuments("standard input", bytes.NewReader(stdin)); err != nil {
				return nil, err
			}
			continue
		}
		files, _, err := find(path)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, files...)
	}
	slices.Sort(c.files)
	c.files = slices.Compact(c.files)
	for _, file := range c.files {
		if err := c.readFile(file); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// find lists the manifests in a folder and those below it, and these folders; or a file whatever its name.
func find(path string) (files, folders []string, err error) {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil, nil
	}
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != path && isHidden(name):
			return fs.SkipDir
		case entry.IsDir():
			folders = append(folders, name)
		case isManifest(name):
			files = append(files, name)
		}
		return nil
	})
	return files, folders, err
}

func isHidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// isManifest tells by the name. Editors keep copies under hidden names.
func isManifest(path string) bool {
	switch filepath.Ext(path) {
	case ".yaml", ".yml", ".json":
		return !isHidden(path)
	}
	return false
}

func (c *content) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return c.readDocuments(path, file)
}

// readDocuments reads a stream of YAML or JSON documents.
func (c *content) readDocuments(name string, from io.Reader) error {
	const lookahead = 4096
	decoder := yaml.NewYAMLOrJSONDecoder(from, lookahead)
	at := origin{file: name, document: 1}
	for {
		var document runtime.RawExtension
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", at, err)
		}
		if raw := bytes.TrimSpace(document.Raw); len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		if err := c.addDocument(at, document.Raw); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		at.document++
	}
}

// addDocument adds an object or a list of them.
func (c *content) addDocument(at origin, raw []byte) error {
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(raw, nil, nil)
	if err != nil {
		return err
	}
	switch decoded := decoded.(type) {
	case *unstructured.UnstructuredList:
		for n := range decoded.Items {
			if err := c.add(at, &decoded.Items[n]); err != nil {
				return fmt.Errorf("item %d: %w", n+1, err)
			}
		}
		return nil
	case *unstructured.Unstructured:
		return c.add(at, decoded)
	default:
		return fmt.Errorf("unexpected object of type %T", decoded)
	}
}

func (c *content) add(at origin, u *unstructured.Unstructured) error {
	if kind := u.GroupVersionKind(); !known(kind) {
		c.ignored[kind]++
		return nil
	}
	i, o, err := objectFrom(u)
	if err != nil {
		return err
	}
	if before, ok := c.origins[i]; ok {
		return fmt.Errorf("%s is already in %s", i, before)
	}
	c.origins[i], c.objects[i] = at, o
	return nil
}
