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
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// calm is the share of a CPU that kube-apiserver uses at most when it has taken in what etcd holds.
	calm = 0.1
	// look is how long that is looked at.
	look = 500 * time.Millisecond
)

// Scale is a start of the server in a large cluster.
type Scale struct {
	Images int `json:"images"`
	Pools  int `json:"pools"`
	Disks  int `json:"disks"`
	// Ready is when the server says so, and Complete when a list has every image with all pools and disks, in
	// seconds from the start of the process.
	Ready    float64 `json:"readySeconds"`
	Complete float64 `json:"completeSeconds"`
	// CPU until then, in seconds.
	ServerCPU    float64 `json:"serverCPUSeconds"`
	APIServerCPU float64 `json:"kubeAPIServerCPUSeconds"`
	// Memory is heap and stacks after a collection, Resident and Peak are the process's, in MiB.
	Memory   float64 `json:"memoryMiB"`
	Resident float64 `json:"residentMiB"`
	Peak     float64 `json:"peakMiB"`
}

// measureScale starts the server when everything is there already.
func (b *bench) measureScale(ctx context.Context) (*Scale, error) {
	o := b.options
	s := &Scale{Images: min(targetImages, o.images[len(o.images)-1]), Pools: o.pools, Disks: o.disks}
	if err := b.stack.Processes().Stop(serverProcess); err != nil {
		return nil, err
	}
	if err := b.fill(ctx, s); err != nil {
		return nil, err
	}
	if err := b.awaitCalm(ctx); err != nil {
		return nil, err
	}
	before, err := cpuTime(b.pid(apiServer))
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := b.stack.Processes().Restart(serverProcess); err != nil {
		return nil, err
	}
	if err := poll(ctx, "the server to be ready", b.ready); err != nil {
		return nil, err
	}
	s.Ready = time.Since(start).Seconds()
	if err := b.awaitImages(ctx, s.Images, s.Pools/s.Images, s.Disks); err != nil {
		return nil, err
	}
	s.Complete = time.Since(start).Seconds()
	return s, b.weigh(ctx, s, before)
}

func (b *bench) ready(ctx context.Context) error {
	_, err := b.askServer(ctx, "/readyz")
	return err
}

// fill writes the cluster.
func (b *bench) fill(ctx context.Context, s *Scale) error {
	var records []record
	for i := range s.Images {
		golden, err := goldenRecords(i)
		if err != nil {
			return err
		}
		records = append(records, golden...)
	}
	for i := range s.Pools {
		pool, err := poolOf(i, i%s.Images).records(s.Disks / s.Pools)
		if err != nil {
			return err
		}
		records = append(records, pool...)
	}
	return b.put(ctx, records)
}

// awaitCalm waits until kube-apiserver has nothing more to do.
func (b *bench) awaitCalm(ctx context.Context) error {
	return poll(ctx, "kube-apiserver to come to rest", func(ctx context.Context) error {
		before, err := cpuTime(b.pid(apiServer))
		if err != nil {
			return err
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
		after, err := cpuTime(b.pid(apiServer))
		if err == nil && float64(after-before) > calm*float64(look) {
			err = errors.New("it is at work")
		}
		return err
	})
}

// weigh fills in what the server has taken since it started.
func (b *bench) weigh(ctx context.Context, s *Scale, apiServerBefore time.Duration) error {
	server, err := cpuTime(b.pid(serverProcess))
	if err != nil {
		return err
	}
	kube, err := cpuTime(b.pid(apiServer))
	if err != nil {
		return err
	}
	s.ServerCPU, s.APIServerCPU = server.Seconds(), (kube - apiServerBefore).Seconds()
	if s.Peak, err = b.status(serverProcess, "VmHWM"); err != nil {
		return err
	}
	memory, err := b.serverMemory(ctx)
	if err != nil {
		return err
	}
	s.Memory = memory / (1 << 20)
	s.Resident, err = b.status(serverProcess, "VmRSS")
	return err
}

// status returns a size from a process's status, in MiB.
func (b *bench) status(process, field string) (float64, error) {
	content, err := os.ReadFile("/proc/" + b.pid(process) + "/status")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), field+":"); found {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s of %s", field, process)
}
