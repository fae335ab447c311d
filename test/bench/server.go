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
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// direct is a client of the server that does not go through kube-apiserver, for what only the server tells.
func (b *bench) direct() (*http.Client, error) {
	return rest.HTTPClientFor(b.stack.ReplicaConfig(0))
}

func (b *bench) askServer(ctx context.Context, path string) ([]byte, error) {
	client, err := b.direct()
	if err != nil {
		return nil, err
	}
	a, err := list{url: b.stack.State().Server + path}.ask(ctx, client)
	return a.body, err
}

// serverMemory is what the server has in use once its garbage is collected: heap and stacks.
func (b *bench) serverMemory(ctx context.Context) (float64, error) {
	if _, err := b.askServer(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	metrics, err := b.askServer(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, name := range []string{"go_memstats_heap_alloc_bytes", "go_memstats_stack_inuse_bytes"} {
		value, err := metric(metrics, name)
		if err != nil {
			return 0, err
		}
		sum += value
	}
	return sum, nil
}

func metric(metrics []byte, name string) (float64, error) {
	for lines := bufio.NewScanner(bytes.NewReader(metrics)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), name+" "); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

// profile records what the server does until the function that it returns is called.
func (b *bench) profile(ctx context.Context, name string) (stop func() error, err error) {
	dir := b.options.profiles
	if dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	seconds := max(1, int(b.options.cell/time.Second))
	result := make(chan error, 1)
	go func() {
		content, err := b.askServer(ctx, "/debug/pprof/profile?seconds="+strconv.Itoa(seconds))
		result <- errors.Join(err, os.WriteFile(filepath.Join(dir, strings.ToLower(name)+".pprof"), content, 0o600))
	}()
	return func() error { return <-result }, nil
}
