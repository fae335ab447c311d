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

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

func TestAClientOutlivesTheServer(t *testing.T) {
	p := realPlatform(t)
	p.createGolden(t, objects.NewGolden("outlived"))
	p.awaitReady(t, objects.NameOf("outlived"))
	p.awaitReady(t, nvidiaSample)
	i := p.startInformer(t, t, "")
	i.awaitSync(t)
	uids, before := p.uids(t)

	if err := p.Processes().Kill(cluster.ServerName); err != nil {
		t.Fatal(err)
	}
	// What happens in the meantime is found by the list that follows.
	p.Remove(t, objects.DataVolumes, objects.Goldens, objects.NameOf("outlived"))
	p.createGolden(t, objects.NewGolden("newborn"))
	lists := p.listWhile(t, func() { p.restartServer(t) })
	for _, a := range lists {
		whole := a.Status == http.StatusOK && strings.Contains(string(a.Body), nvidiaSample)
		if !whole && a.Status != http.StatusServiceUnavailable {
			t.Errorf("neither a whole list nor none: %d %s", a.Status, a.Body)
		}
	}
	p.awaitReady(t, objects.NameOf("newborn"))
	await.For(t, "the informer to have what a list has", func(ctx context.Context) error { return p.compare(ctx, i.GetStore()) })

	again, after := p.uids(t)
	for _, name := range samples {
		if again[name] != uids[name] || uids[name] == "" {
			t.Errorf("the uid of %s was %s and is %s", name, uids[name], again[name])
		}
	}
	if _, found := again[objects.NameOf("outlived")]; found {
		t.Errorf("%s is still there", objects.NameOf("outlived"))
	}
	if version(t, after) <= version(t, before) {
		t.Errorf("version %s comes after %s", after, before)
	}
}

// uids returns the uid of each image by its name, and the version of the list.
func (p *platform) uids(t *testing.T) (uids map[string]types.UID, resourceVersion string) {
	t.Helper()
	list, err := p.images.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids = map[string]types.UID{}
	for i := range list.Items {
		uids[list.Items[i].Name] = list.Items[i].UID
	}
	return uids, list.ResourceVersion
}
