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

package nodesim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

// container runs a program again and again, asks it how it is, and ends it as the kubelet does.
type container struct {
	spec    corev1.Container
	address string
	program process.Spec
	log     string
	// reported is what the API server has been told. It belongs to the Simulator.
	reported condition

	// leaving is closed when the container has been told to end, within the grace that it then has.
	leaving chan struct{}
	grace   time.Duration
	told    sync.Once
	// cut ends it at once.
	cut  context.CancelFunc
	gone chan struct{}

	mu  sync.Mutex
	now condition
}

// condition is what there is to tell of a container.
type condition struct {
	running, started, ready bool
	since                   time.Time
	restarts                int32
}

// startContainer runs until it is told to leave or killed. ctx ends neither.
func startContainer(ctx context.Context, spec corev1.Container, address string, program process.Spec, log string) *container {
	c := &container{
		spec: spec, address: address, program: program, log: log,
		leaving: make(chan struct{}), gone: make(chan struct{}),
	}
	ctx, c.cut = context.WithCancel(context.WithoutCancel(ctx))
	go c.run(ctx)
	return c
}

// leave tells the container to end, and returns at once.
func (c *container) leave(grace time.Duration) {
	c.told.Do(func() {
		c.grace = grace
		close(c.leaving)
	})
}

// kill returns when the container has ended.
func (c *container) kill() {
	c.cut()
	<-c.gone
}

func (c *container) isGone() bool { return isClosed(c.gone) }

func (c *container) current() condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *container) change(change func(*condition)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.now)
}

func (c *container) run(ctx context.Context) {
	defer close(c.gone)
	for ctx.Err() == nil {
		if err := c.runOnce(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Running a container", "program", c.program.Name)
		}
		if isClosed(c.leaving) {
			return
		}
		c.change(func(now *condition) {
			*now = condition{restarts: now.restarts + 1, since: time.Now()}
		})
		c.pause(ctx, crashDelay)
	}
}

// runOnce returns when the process has ended, whoever wanted it.
func (c *container) runOnce(ctx context.Context) error {
	child, err := process.Start(c.program, c.log, func(err error) {
		klog.FromContext(ctx).Error(err, "A container has ended", "program", c.program.Name)
	})
	if err != nil {
		return err
	}
	c.change(func(now *condition) { now.running, now.since = true, time.Now() })
	probing, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	ill := make(chan struct{})
	probes.Go(func() { c.probe(probing, ill) })
	defer probes.Wait()
	defer stop()
	select {
	case <-child.Done():
		return nil
	case <-ill:
		return child.End(syscall.SIGTERM, crashDelay)
	case <-c.leaving:
		return c.end(ctx, child)
	case <-ctx.Done():
		return child.End(syscall.SIGKILL, 0)
	}
}

// end has the process wait as its container asks, and then end. It is asked all the while whether it is ready.
func (c *container) end(ctx context.Context, child *process.Child) error {
	deadline := time.Now().Add(c.grace)
	if lifecycle := c.spec.Lifecycle; lifecycle != nil && lifecycle.PreStop != nil && lifecycle.PreStop.Sleep != nil {
		c.pause(ctx, time.Duration(lifecycle.PreStop.Sleep.Seconds)*time.Second)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.End(syscall.SIGTERM, time.Until(deadline)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(child.End(syscall.SIGKILL, 0), <-ended)
	}
}

// probe asks the process how it is, and closes ill when that is not well.
func (c *container) probe(ctx context.Context, ill chan<- struct{}) {
	var once sync.Once
	isIll := func() { once.Do(func() { close(ill) }) }
	if !c.awaitStarted(ctx) {
		isIll()
		return
	}
	c.change(func(now *condition) { now.started, now.ready = true, c.spec.ReadinessProbe == nil })
	var running sync.WaitGroup
	if c.spec.ReadinessProbe != nil {
		running.Go(func() {
			c.repeat(ctx, c.spec.ReadinessProbe, false, func(ready bool) bool {
				c.change(func(now *condition) { now.ready = ready })
				return true
			})
		})
	}
	if c.spec.LivenessProbe != nil {
		running.Go(func() {
			c.repeat(ctx, c.spec.LivenessProbe, true, func(alive bool) bool {
				// One that leaves is not asked whether it is alive.
				if !alive && !isClosed(c.leaving) {
					isIll()
				}
				return alive
			})
		})
	}
	running.Wait()
}

func (c *container) awaitStarted(ctx context.Context) bool {
	if c.spec.StartupProbe == nil {
		return true
	}
	started := false
	c.repeat(ctx, c.spec.StartupProbe, false, func(result bool) bool {
		started = result
		return false
	})
	return started
}

// repeat probes until ctx is done or hear, which is told each result that counts, returns false.
func (c *container) repeat(ctx context.Context, probe *corev1.Probe, initially bool, hear func(result bool) bool) {
	counter := newCounter(probe, initially)
	c.pause(ctx, time.Duration(probe.InitialDelaySeconds)*time.Second)
	period := time.NewTicker(time.Duration(probe.PeriodSeconds) * time.Second)
	defer period.Stop()
	for ctx.Err() == nil {
		err := ask(ctx, c.spec, probe, c.address)
		if ctx.Err() != nil {
			return
		}
		if result, counts := counter.count(err == nil); counts && !hear(result) {
			return
		}
		select {
		case <-period.C:
		case <-ctx.Done():
		}
	}
}

func (c *container) pause(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// status is the part of the pod's status that is about its container.
func (c condition) status(p *corev1.Pod) corev1.ContainerStatus {
	state := waitingContainer("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container", crashDelay))
	if c.running {
		state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.since)}}
	}
	status := containerStatus(p, &pod{restarts: c.restarts}, state)
	status.Ready, status.Started = c.ready, ptr.To(c.started)
	return status
}
