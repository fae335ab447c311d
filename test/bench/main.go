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
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/cozystack/workerimage-apiserver/hack/stack/progress"
)

// limitCommand makes this program the handler that does nothing.
const limitCommand = "limit"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 4 && os.Args[1] == limitCommand {
		return serveLimit(ctx, os.Args[2], os.Args[3])
	}
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		return err
	}
	return o.run(ctx)
}

// options are the flags.
type options struct {
	// server is the program under test, and out where the reports go.
	server, out string
	// profiles is where profiles of the server go; empty for none.
	profiles string
	// images, clients and watchers are the sizes to measure at.
	images, clients, watchers []int
	// turn is how long a variant is measured before the next has its turn, and cell how long all of them are.
	turn, cell time.Duration
	// changes is how many changes each number of watchers is shown, requests how many lists and watches are counted.
	changes, requests int
	// pools and disks are the size of the large cluster. No disks leave it out.
	pools, disks int
	only         []string
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	fs := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	fs.StringVar(&o.server, "server", "_output/bin/workerimage-apiserver", "Program of the server.")
	fs.StringVar(&o.out, "out", "docs/performance", "Directory of the reports.")
	fs.StringVar(&o.profiles, "profiles", "", "Directory of CPU profiles of the server; empty for none. Profiling costs some of what is measured.")
	fs.IntSliceVar(&o.images, "images", []int{20, 200, 2000}, "Numbers of images, from few to many.")
	fs.IntSliceVar(&o.clients, "clients", []int{1, 16}, "Numbers of clients that list at once.")
	fs.IntSliceVar(&o.watchers, "watchers", []int{1, 100, 1000}, "Numbers of watches that a change is sent to.")
	fs.DurationVar(&o.turn, "turn", 100*time.Millisecond, "How long a variant is measured before the next has its turn.")
	fs.DurationVar(&o.cell, "cell", 3*time.Second, "How long all variants of a list are measured.")
	fs.IntVar(&o.changes, "changes", 150, "Changes that are sent to each number of watches, at most as many as there are images for.")
	fs.IntVar(&o.requests, "requests", 1000, "Lists and watches whose requests to kube-apiserver are counted.")
	fs.IntVar(&o.pools, "pools", 5000, "Pools of the large cluster.")
	fs.IntVar(&o.disks, "disks", 100_000, "Worker disks of the large cluster; none for no large cluster.")
	fs.StringSliceVar(&o.only, "only", []string{partLists, partToday, partEvents, partRequests, partScale}, "Parts to measure.")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if len(fs.Args()) > 0 || len(o.images) == 0 || len(o.clients) == 0 || len(o.watchers) == 0 {
		return nil, errors.New("usage: bench [flags]; sizes must not be empty")
	}
	var err error
	o.server, err = filepath.Abs(o.server)
	return o, err
}

// The parts of a run.
const (
	partLists    = "lists"
	partToday    = "today"
	partEvents   = "events"
	partRequests = "requests"
	partScale    = "scale"
)

func (o *options) run(ctx context.Context) error {
	report := newReport(o)
	steps := progress.NewReporter(os.Stderr)
	err := o.measure(ctx, steps, report)
	report.finish()
	return errors.Join(err, report.write(o.out))
}

func (o *options) measure(ctx context.Context, steps *progress.Reporter, report *Report) error {
	if o.wants(partLists) || o.wants(partToday) || o.wants(partEvents) || o.wants(partRequests) {
		if err := o.measureServing(ctx, steps, report); err != nil {
			return err
		}
	}
	if !o.wants(partScale) || o.disks == 0 {
		return nil
	}
	return o.withBench(ctx, func(b *bench) (err error) {
		report.Scale, err = b.measureScale(ctx)
		steps.Step("measured a cluster with %d worker disks", o.disks)
		return err
	})
}

// measureServing goes from few images to many. What is measured at one size only is measured at the one that
// the targets name, or the last before it.
func (o *options) measureServing(ctx context.Context, steps *progress.Reporter, report *Report) error {
	return o.withBench(ctx, func(b *bench) error {
		for i, images := range o.images {
			if err := b.populate(ctx, images); err != nil {
				return fmt.Errorf("make %d images: %w", images, err)
			}
			steps.Step("%d images are served", images)
			isLast := i == len(o.images)-1
			if err := b.measureAt(ctx, report, images, images <= targetImages && (isLast || o.images[i+1] > targetImages)); err != nil {
				return err
			}
			steps.Step("measured with %d images", images)
		}
		return nil
	})
}

func (b *bench) measureAt(ctx context.Context, report *Report, images int, isTarget bool) error {
	if b.options.wants(partLists) {
		cells, err := b.measureLists(ctx, images)
		if err != nil {
			return err
		}
		report.Lists = append(report.Lists, cells...)
	}
	if b.options.wants(partToday) && images <= targetImages {
		cell, err := b.measureToday(ctx, images)
		if err != nil {
			return err
		}
		report.Today = append(report.Today, cell)
	}
	if !isTarget {
		return nil
	}
	if b.options.wants(partRequests) {
		var err error
		if report.Requests, err = b.measureRequests(ctx); err != nil {
			return err
		}
	}
	if !b.options.wants(partEvents) {
		return nil
	}
	var err error
	report.Events, err = b.measureEvents(ctx, images)
	return err
}

func (o *options) wants(part string) bool {
	for _, p := range o.only {
		if p == part {
			return true
		}
	}
	return false
}

// withBench calls f with a stack of its own.
func (o *options) withBench(ctx context.Context, f func(*bench) error) (err error) {
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	return f(b)
}
