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
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/test/await"
)

// What a drain does is to evict pods, again and again until it may.
func TestServersAreEvictedOneAfterTheOtherAndClientsDoNotNotice(t *testing.T) {
	p := installed(t, newVersion(), valuesOf(newVersion(), read, dry, busy))
	p.awaitAvailable(t)
	pods := p.awaitOnly(t, newVersion().image())
	l := p.startLoad(t)
	l.awaitAnswers(t, 2)
	await.For(t, "the first to be evicted", func(ctx context.Context) error { return p.evict(ctx, pods[0].Name) })
	if err := p.evict(t.Context(), pods[1].Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second is evicted while the first is away: %v", err)
	}
	await.For(t, "the second to be evicted", func(ctx context.Context) error { return p.evict(ctx, pods[1].Name) })
	now := p.awaitOnly(t, newVersion().image())
	for _, before := range pods {
		for i := range now {
			if now[i].UID == before.UID {
				t.Errorf("%s is still there", before.Name)
			}
		}
	}
	l.check(t, "eviction")
	l.checkInformers(t)
	p.checkLogs(t)
}

func (p *platform) evict(ctx context.Context, pod string) error {
	return p.kube.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}})
}
