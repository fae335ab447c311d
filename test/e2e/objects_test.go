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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// The samples of the real platform that tests rely on.
const (
	defaultSample     = "talos-worker-ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515-v1.13.6"
	nvidiaSample      = "talos-worker-gpu-nvidia-v1.13.6"
	edgeSample        = "talos-worker-edge-v1.13.6"
	slowSample        = "talos-worker-slow-iscsi-v1.13.7"
	unpublishedSample = "talos-worker-unpublished-zfs-v1.13.6"
	classlessSample   = "talos-worker-gpu-amd-v1.13.6"
)

// samples are in the order of their names.
var samples = []string{defaultSample, edgeSample, classlessSample, nvidiaSample, slowSample, unpublishedSample}

// The schematics whose imports go as simRules says.
const (
	// steady is imported slowly enough for its progress to be seen.
	steady = "steady"
	// refused fails twice, with a message that tells too much.
	refused = "refused"
)

func simRules() []stack.Rule {
	return []stack.Rule{
		{Match: "/image/" + steady, Duration: metav1.Duration{Duration: 10 * time.Second}},
		{
			Match: "/image/" + refused, Outcome: nodesim.Fail, Failures: 2,
			Duration: metav1.Duration{Duration: time.Second}, Backoff: metav1.Duration{Duration: time.Second},
			Message: "Unable to connect to https://mirror:hunter2@factory.talos.dev/image?key=hunter3: no route to host",
		},
	}
}
