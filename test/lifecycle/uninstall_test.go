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

package lifecycle

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

const catalogName = "worker-image-catalog"

// kinds are those of all that an installation may consist of.
const kinds = "apiservices,clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,secrets,services,endpointslices," +
	"deployments,replicasets,pods,poddisruptionbudgets,networkpolicies,configmaps,leases"

func TestUninstallingLeavesEveryGolden(t *testing.T) {
	p := installed(t, newVersion(), valuesOf(newVersion(), read, dry, busy))
	p.awaitAvailable(t)
	goldens, images := p.goldenUIDs(t), p.imageUIDs(t)

	p.uninstall(t)
	p.checkGone(t, goldens)
	if _, err := p.catalog(t); !apierrors.IsNotFound(err) {
		t.Errorf("the catalog that came with the release is still there: %v", err)
	}

	p.upgrade(t, newVersion(), valuesOf(newVersion(), read, dry, busy))
	p.awaitAvailable(t)
	if diff := cmp.Diff(images, p.imageUIDs(t)); diff != "" {
		t.Errorf("images are others than before (-before +after):\n%s", diff)
	}
}

func TestWhatKubectlHasInstalledHelmTakesOver(t *testing.T) {
	p := newPlatform(t)
	p.helm(t, "uninstall", release, "--namespace", namespace, "--ignore-not-found")
	manifests := filepath.Join(root, "artifacts", "deploy")
	catalog := filepath.Join(root, "artifacts", "samples", "stack", "catalog.yaml")
	p.kubectl(t, "apply", "-f", catalog)
	p.kubectl(t, "apply", "-k", manifests)
	p.awaitAvailable(t)
	goldens, images := p.goldenUIDs(t), p.imageUIDs(t)
	p.kubectl(t, "delete", "-k", manifests)
	p.checkGone(t, goldens)

	p.kubectl(t, "apply", "-k", manifests)
	p.awaitAvailable(t)
	p.kubectl(t, "delete", "apiservice", apiService)
	p.kubectl(t, "apply", "-k", manifests)
	p.awaitAvailable(t)
	certificate := p.servingCertificate(t)
	p.upgrade(t, newVersion(), values{"image": newVersion().image()}, "--take-ownership", "--force-conflicts")
	p.upgrade(t, newVersion(), values{"image": newVersion().image(), "verbosity": 2}, "--force-conflicts")
	p.upgrade(t, newVersion(), values{"image": newVersion().image()})
	p.awaitAvailable(t)
	if p.servingCertificate(t) != certificate {
		t.Error("the servers have another certificate than before")
	}
	if diff := cmp.Diff(images, p.imageUIDs(t)); diff != "" {
		t.Errorf("images are others than before (-before +after):\n%s", diff)
	}

	p.uninstall(t)
	p.checkGone(t, goldens)
	if _, err := p.catalog(t); err != nil {
		t.Errorf("the catalog that was not of the release: %v", err)
	}
	p.kubectl(t, "delete", "-f", catalog)
}

func (p *platform) uninstall(t *testing.T) {
	t.Helper()
	p.helm(t, "uninstall", release, "--namespace", namespace, "--wait", "--timeout", await.Patience.String())
}

func (p *platform) catalog(t *testing.T) (*corev1.ConfigMap, error) {
	t.Helper()
	return p.kube.CoreV1().ConfigMaps(objects.Goldens).Get(t.Context(), catalogName, metav1.GetOptions{})
}

// checkGone makes sure that nothing of an installation is left in the end, and that every golden is.
func (p *platform) checkGone(t *testing.T, before map[string]types.UID) {
	t.Helper()
	await.For(t, "all to be gone", func(ctx context.Context) error {
		left, err := p.run(ctx, p.Kubectl(), "get", kinds, "--all-namespaces", "-l", selector, "-o", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("there is still\n%s", left)
		}
		return err
	})
	p.forgetLogs(t)
	if diff := cmp.Diff(before, p.goldenUIDs(t)); diff != "" {
		t.Errorf("goldens are others than before (-before +after):\n%s", diff)
	}
}
