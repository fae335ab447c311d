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
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// declaredLater is an image that the catalog declares only in the values of the new version.
const declaredLater = "declared-later"

func TestClientsDoNotNoticeAnUpgradeAndTheWayBack(t *testing.T) {
	p := installed(t, oldVersion(), valuesOf(oldVersion(), read, dry, busy))
	p.awaitAvailable(t)
	uids, secret := p.imageUIDs(t), p.servingCertificate(t)
	l := p.startLoad(t)
	l.awaitAnswers(t, 5)

	p.while(t, oldVersion(), newVersion(), func() {
		p.upgrade(t, newVersion(), valuesOf(newVersion(), read, dry, busy, declaredLater))
	})
	p.awaitOnly(t, newVersion().image())
	l.check(t, "upgrade")
	l.checkInformers(t)
	p.checkDeclared(t, declaredLater, true)

	p.while(t, newVersion(), oldVersion(), func() {
		p.helm(t, "rollback", release, "--namespace", namespace, "--wait", "--timeout", await.Patience.String())
	})
	p.awaitOnly(t, oldVersion().image())
	l.check(t, "rollback")
	l.checkInformers(t)
	p.checkDeclared(t, declaredLater, false)

	l.stop()
	now := p.imageUIDs(t)
	for name, uid := range uids {
		if now[name] != uid && name != objects.NameOf(busy) {
			t.Errorf("the uid of %s was %s and is %s", name, uid, now[name])
		}
	}
	if p.servingCertificate(t) != secret {
		t.Error("the servers have another certificate than before")
	}
	p.checkLogs(t)
}

// while makes sure that, while something is done, servers of two versions answer, each as its version, with the same:
// images that are equal, or those of the same uids where the versions are of different trees.
func (p *platform) while(t *testing.T, leaving, coming version, do func()) {
	t.Helper()
	compared := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	go func() {
		compared <- await.Poll(ctx, func(ctx context.Context) error { return p.compareVersions(ctx, leaving, coming) })
	}()
	do()
	if err := <-compared; err != nil {
		t.Errorf("%s and %s do not serve the same side by side: %v", leaving.name, coming.name, err)
	}
}

func (p *platform) compareVersions(ctx context.Context, versions ...version) error {
	pods, err := p.pods(ctx)
	if err != nil {
		return err
	}
	var states []any
	for _, v := range versions {
		pod := readyPodOf(pods, v)
		if pod == nil {
			return fmt.Errorf("no pod of %s is ready", v.name)
		}
		state, err := p.stateOf(ctx, pod, v)
		if err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		states = append(states, state)
	}
	// The version of an object is each server's own, and one that has just begun does not know since when what it reads
	// for the first time has been so.
	apart := cmp.Options{
		cmpopts.IgnoreTypes(metav1.TypeMeta{}),
		cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"),
		cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime"),
	}
	if diff := cmp.Diff(states[0], states[1], apart); diff != "" {
		return errors.New("(-leaving +coming):\n" + diff)
	}
	return nil
}

// readyPodOf returns a pod of a version that answers. It may be about to leave.
func readyPodOf(pods []corev1.Pod, v version) *corev1.Pod {
	for i := range pods {
		if pods[i].Spec.Containers[0].Image == v.image() && isReady(&pods[i]) {
			return &pods[i]
		}
	}
	return nil
}

// stateOf is what a pod itself answers, if it is of the version.
func (p *platform) stateOf(ctx context.Context, pod *corev1.Pod, v version) (any, error) {
	config := p.PodConfig(pod.Status.PodIP, servingPort)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	running, err := kube.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	if running.GitVersion != v.name {
		return nil, fmt.Errorf("it is %s, and not %s", running.GitVersion, v.name)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	images, err := state(ctx, client.ImagesV1alpha1().WorkerImages())
	if *from == "" || err != nil {
		return images, err
	}
	// Another tree may say more of an image, or less.
	uids := map[string]types.UID{}
	for name, image := range images {
		uids[name] = image.UID
	}
	return uids, nil
}

// checkDeclared makes sure that an image can be made, or that it cannot.
func (p *platform) checkDeclared(t *testing.T, schematic string, want bool) {
	t.Helper()
	await.For(t, fmt.Sprintf("the catalog to declare %s: %v", schematic, want), func(ctx context.Context) error {
		_, err := p.images.Create(ctx, newImage(schematic), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case want:
			return err
		case err == nil:
			return errors.New("it is declared")
		case apierrors.IsInvalid(err):
			return nil
		default:
			return err
		}
	})
}
