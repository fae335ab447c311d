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

package terraform

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// await returns an image once a check passes. A nil image is one that is not there.
func (p *platform) await(t *testing.T, name, what string, check func(*v1alpha1.WorkerImage) bool) *v1alpha1.WorkerImage {
	t.Helper()
	var image *v1alpha1.WorkerImage
	await.For(t, fmt.Sprintf("image %s to be %s", name, what), func(ctx context.Context) error {
		var err error
		image, err = p.images.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			image, err = nil, nil
		}
		if err == nil && !check(image) {
			err = fmt.Errorf("it is %+v", image)
		}
		return err
	})
	return image
}

func (p *platform) awaitReady(t *testing.T, name string) *v1alpha1.WorkerImage {
	t.Helper()
	return p.await(t, name, "ready", ready)
}

func ready(image *v1alpha1.WorkerImage) bool {
	return image != nil && image.Status.Phase == v1alpha1.WorkerImageReady
}

func gone(image *v1alpha1.WorkerImage) bool { return image == nil }

func inUse(image *v1alpha1.WorkerImage) bool {
	return image != nil && apimeta.IsStatusConditionFalse(image.Status.Conditions, v1alpha1.ConditionDeletable)
}

// advancedFrom says whether an import that goes on has come further.
func advancedFrom(percent int32) func(*v1alpha1.WorkerImage) bool {
	return func(image *v1alpha1.WorkerImage) bool {
		return image != nil && image.Status.Phase == v1alpha1.WorkerImageImporting && image.Status.Progress != nil && *image.Status.Progress > percent
	}
}

// kubectl runs kubectl as the administrator, with a manifest on its standard input.
func (p *platform) kubectl(t *testing.T, manifest string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.Kubectl(), append([]string{"--kubeconfig", p.Kubeconfig()}, args...)...)
	command.Stdin = strings.NewReader(manifest)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// createPool makes a pool that asks for an image.
func (p *platform) createPool(t *testing.T, name, schematic string) {
	t.Helper()
	p.kubectl(t, fmt.Sprintf(`{"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "KubernetesNodes",
		"metadata": {"namespace": "tenant-a", "name": %q},
		"spec": {"cluster": "tofu", "storageClass": "replicated", "osImage": {"builtin": {"schematicID": %q, "version": %q}}}}`,
		name, schematic, objects.Release), "apply", "-f", "-")
}

func (p *platform) deletePool(t *testing.T, name string) {
	t.Helper()
	p.kubectl(t, "", "-n", "tenant-a", "delete", "kubernetesnodeses", name)
}
