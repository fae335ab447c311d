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
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

func TestWhatStandsInTheWayOfAGoldenIsAnEventOnIt(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	golden, err := p.Resource(objects.DataVolumes, objects.Goldens).Get(t.Context(), classlessSample, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	selector := fields.Set{"involvedObject.uid": string(golden.GetUID()), "reason": "StorageClassNotFound"}.String()
	var found []corev1.Event
	await.For(t, "an event on "+classlessSample, func(ctx context.Context) error {
		list, err := p.kube.CoreV1().Events(objects.Goldens).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err == nil && len(list.Items) == 0 {
			err = fmt.Errorf("no event matches %s", selector)
		}
		if err == nil {
			found = list.Items
		}
		return err
	})
	if len(found) != 1 || found[0].Count != 1 || found[0].Type != corev1.EventTypeWarning || found[0].Source.Component != "workerimage-apiserver" {
		t.Errorf("there are other events than one warning: %+v", found)
	}
	described := p.kubectl.run(t, "-n", objects.Goldens, "describe", "datavolume", classlessSample)
	if !strings.Contains(described, "StorageClassNotFound") {
		t.Errorf("kubectl does not show it:\n%s", described)
	}
}

// Alerts and dashboard ask for these.
func TestTheMetricsOfKubernetesThatAlertsAskForAreThere(t *testing.T) {
	t.Parallel()
	p := realPlatform(t)
	metrics := p.kubectl.run(t, "get", "--raw", "/metrics")
	for _, want := range []string{
		`aggregator_unavailable_apiservice{name="v1alpha1.images.cozystack.io"} 0`,
		"# TYPE apiserver_request_total counter",
		"# TYPE apiserver_request_duration_seconds histogram",
		"# TYPE process_resident_memory_bytes gauge",
		"# TYPE process_cpu_seconds_total counter",
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("there is no line %s", want)
		}
	}
}
