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

package chaos

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// otherKind is what has nothing to do with images.
const otherKind = "/api/v1/namespaces/kube-system/configmaps"

func TestTheServerIsKilledAtAnyMoment(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	work := p.startLoad(t)
	old := p.startInformers(t)
	users, others := p.look(t, workerImages), p.look(t, otherKind)
	var outages, converged []time.Duration
	for range 5 {
		work.awaitSteps(t, rand.IntnRange(1, 60))
		converged = append(converged, p.follow(t, func() {
			if err := p.Processes().Kill(cluster.ServerName); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := p.RestartServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.awaitServed(t)
			outages = append(outages, time.Since(began))
		})...)
	}
	work.end()
	users.check(t, "a list of images", http.StatusOK, http.StatusServiceUnavailable)
	others.check(t, "a list of another kind", http.StatusOK)
	for _, a := range users.answers {
		checkWhole(t, a)
	}
	shared.figures.note(t, "from kill -9 to the next list through kube-apiserver", "%s", spread(outages))
	shared.figures.note(t, "informers up to date after that", "%s", spread(converged))
	for _, i := range old {
		i.checkEqual(t, p.access)
	}
	p.awaitHealthy(t)
	p.checkNothingLost(t)
}

func TestKubeAPIServerIsKilled(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	work := p.startLoad(t)
	work.awaitSteps(t, 20)
	kill := func() {
		if err := p.Processes().Kill("kube-apiserver"); err != nil {
			t.Fatal(err)
		}
	}
	start := func() {
		if err := p.Processes().Restart("kube-apiserver"); err != nil {
			t.Fatal(err)
		}
	}
	var took []time.Duration
	converged := p.follow(t, func() {
		kill()
		began := time.Now()
		start()
		p.awaitServed(t)
		took = append(took, time.Since(began))
	})
	shared.figures.note(t, "from kill -9 of kube-apiserver, run again at once, to the next list", "%s", spread(took))
	shared.figures.note(t, "informers up to date after that", "%s", spread(converged))

	kill()
	server := p.direct(t, 0)
	shared.figures.note(t, "until everything is Unknown without kube-apiserver", "%v", rounded(server.every(t, "Unknown", unknown)))
	server.checkDeleteRefused(t, spare, http.StatusConflict, http.StatusServiceUnavailable)
	start()
	began := time.Now()
	work.end()
	p.awaitHealthy(t)
	shared.figures.note(t, "from the start of kube-apiserver until everything is known", "%v", rounded(time.Since(began)))
	p.checkNothingLost(t)
}

func TestEtcdIsKilled(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	informers := p.startInformers(t)
	work := p.startLoad(t)
	users := p.direct(t, 0).look(t, workerImages)
	if err := p.Processes().Kill("etcd"); err != nil {
		t.Fatal(err)
	}
	p.direct(t, 0).checkDeleteRefused(t, spare, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusConflict, http.StatusTooManyRequests)
	// Nobody can write, so that what was true when etcd was killed is true now.
	users.check(t, "a list of images", http.StatusOK)
	if err := p.Processes().Restart("etcd"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await.For(t, "a write", func(ctx context.Context) error {
		_, err := p.Resource(objects.DataVolumes, objects.Goldens).Patch(ctx, spare, types.MergePatchType, []byte(`{"metadata":{"labels":{"after":"etcd"}}}`), metav1.PatchOptions{})
		return err
	})
	shared.figures.note(t, "from the start of etcd to the next write of anybody", "%v", rounded(time.Since(began)))
	work.end()
	for _, i := range informers {
		i.awaitMark(t, p.mark(t))
	}
	p.awaitHealthy(t)
	for _, i := range informers {
		i.checkEqual(t, p.access)
	}
	p.checkNothingLost(t)
}

// unknown is the check of an image of which nothing can be known.
func unknown(image *v1alpha1.WorkerImage) error {
	if err := has(v1alpha1.ConditionReady, metav1.ConditionUnknown)(image); err != nil {
		return err
	}
	return has(v1alpha1.ConditionDeletable, metav1.ConditionFalse)(image)
}
