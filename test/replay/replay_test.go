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

package replay

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	"github.com/cozystack/workerimage-apiserver/test/cases"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

const (
	// patience is how long an answer may take to be what is expected.
	patience = 10 * time.Second
	interval = 50 * time.Millisecond

	root    = "../.."
	serving = "/apis/" + v1alpha1.GroupName + "/v1alpha1/workerimages"
	asTable = "application/json;as=Table;g=meta.k8s.io;v=v1"
)

func TestRecordedCasesAreServedAsTheyHappened(t *testing.T) {
	all, err := cases.LoadAll()
	if err != nil {
		t.Fatal(err)
	}
	plane := startControlPlane(t)
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) { replay(t, plane, c) })
	}
}

func startControlPlane(t *testing.T) *stack.Stack {
	t.Helper()
	plane, err := stack.Start(t.Context(), stack.Options{
		KindsOnly: true,
		Server:    buildServer(t),
		Manifests: filepath.Join(root, "artifacts", "deploy"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := kubernetes.NewForConfig(plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-demo"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), tenant, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return plane
}

func buildServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "workerimage-apiserver")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/workerimage-apiserver")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		t.Fatalf("build the server: %v", err)
	}
	return path
}

// replay leaves the control plane as it found it.
func replay(t *testing.T, plane *stack.Stack, c *cases.Case) {
	c.AddToken()
	r := start(t, plane, c)
	checkpoints := c.Want.Checkpoints
	for i, event := range c.Events {
		if err := r.replayer.Apply(t.Context(), event); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		for len(checkpoints) > 0 && checkpoints[0].After == i {
			r.await(&checkpoints[0])
			checkpoints = checkpoints[1:]
		}
	}
	r.end()
}

// replaying is a case on its way.
type replaying struct {
	t        *testing.T
	c        *cases.Case
	client   versioned.Interface
	inputs   *cases.Inputs
	replayer *cases.Replayer
	monitor  *cases.Monitor
	watch    watch.Interface
	// settled is how many changes had been written at the checkpoint before.
	settled int
}

func start(t *testing.T, plane *stack.Stack, c *cases.Case) *replaying {
	t.Helper()
	r := &replaying{t: t, c: c, inputs: cases.NewInputs()}
	r.monitor = cases.NewMonitor(c, r.inputs)
	var err error
	if r.client, err = versioned.NewForConfig(plane.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if r.replayer, err = cases.NewReplayer(plane.RESTConfig(), r.inputs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.clear)
	before, err := r.client.ImagesV1alpha1().WorkerImages().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Items) > 0 {
		t.Fatalf("%d images are left of the case before", len(before.Items))
	}
	from := metav1.ListOptions{ResourceVersion: before.ResourceVersion}
	if r.watch, err = r.client.ImagesV1alpha1().WorkerImages().Watch(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.watch.Stop)
	return r
}

// await waits until get answers what the checkpoint expects and the watch has told the same.
func (r *replaying) await(checkpoint *cases.Checkpoint) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		image := r.get(checkpoint.Name())
		differences := checkpoint.Check(image, r.c.Want.Pool)
		if len(differences) == 0 {
			r.follow(ctx, checkpoint.Name(), image)
			break
		}
		if !r.next(ctx) {
			for _, difference := range differences {
				r.t.Errorf("after event %d: %s", checkpoint.After, difference)
			}
			break
		}
	}
	// An event that changes nothing visible may not have been read yet. By the checkpoint after this one
	// it has.
	r.inputs.Settle(r.settled)
	r.settled = r.inputs.Count()
}

// follow reads the watch until it has told what get answered.
func (r *replaying) follow(ctx context.Context, name string, image *v1alpha1.WorkerImage) {
	r.t.Helper()
	for {
		seen := r.monitor.Image(name)
		switch {
		case image == nil && seen == nil:
			return
		case image != nil && seen != nil && versionOf(r.t, seen) == versionOf(r.t, image):
			if diff := cmp.Diff(image, seen); diff != "" {
				r.t.Errorf("get and watch differ (-get +watch):\n%s", diff)
			}
			return
		case image != nil && seen != nil && versionOf(r.t, seen) > versionOf(r.t, image):
			return
		}
		if !r.next(ctx) {
			r.t.Errorf("the watch does not tell what get answers of %s", name)
			return
		}
	}
}

// next reads one event of the watch, and is false if none comes.
func (r *replaying) next(ctx context.Context) bool {
	r.t.Helper()
	select {
	case <-ctx.Done():
		return false
	case event, open := <-r.watch.ResultChan():
		if !open {
			r.t.Fatal("the watch ended")
		}
		image, ok := event.Object.(*v1alpha1.WorkerImage)
		if !ok {
			r.t.Fatalf("the watch sends %s: %v", event.Type, event.Object)
		}
		r.report(r.monitor.Deliver(event.Type, image))
		return true
	}
}

func (r *replaying) get(name string) *v1alpha1.WorkerImage {
	r.t.Helper()
	image, err := r.client.ImagesV1alpha1().WorkerImages().Get(r.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return image
}

// end checks what must hold when the case is over.
func (r *replaying) end() {
	r.t.Helper()
	r.report(r.monitor.End())
	if err := r.replayer.Untouched(r.t.Context()); err != nil {
		r.t.Errorf("inputs-untouched: %v", err)
	}
	for _, accept := range []string{"application/json", "application/yaml", asTable} {
		answer, err := r.client.ImagesV1alpha1().RESTClient().Get().AbsPath(serving).SetHeader("Accept", accept).Do(r.t.Context()).Raw()
		if err != nil {
			r.t.Fatal(err)
		}
		r.report(cases.TokensIn(answer))
	}
}

// clear deletes what was replayed and waits until nothing of it is served.
func (r *replaying) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.replayer.Clear(ctx); err != nil {
		r.t.Error(err)
	}
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		list, err := r.client.ImagesV1alpha1().WorkerImages().List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
	if err != nil {
		r.t.Errorf("wait for the images to be gone: %v", err)
	}
}

func (r *replaying) report(broken []string) {
	r.t.Helper()
	for _, b := range broken {
		r.t.Error(b)
	}
}

func versionOf(t *testing.T, image *v1alpha1.WorkerImage) uint64 {
	t.Helper()
	version, err := strconv.ParseUint(image.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}
