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
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/test/objects"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// waiting is a configuration that makes an image and waits for it.
func waiting(schematic string) string {
	return resource(schematic, "") + `
data "workerimage_worker_image" "ready" {
  name       = workerimage_worker_image.this.name
  wait_for   = "Ready"
  depends_on = [workerimage_worker_image.this]
}

output "phase" {
  value = data.workerimage_worker_image.ready.status.phase
}
`
}

func data(arguments string) string {
	return "data \"workerimage_worker_image\" \"this\" {\n" + arguments + "\n}\n"
}

func TestAnImportIsWaitedFor(t *testing.T) {
	p := newPlatform(t)
	w := newWorkspace(t, p, waiting("steady-tofu"))
	log := filepath.Join(t.TempDir(), "log")
	w.env["TF_LOG_PROVIDER"], w.env["TF_LOG_PATH"] = "INFO", log
	w.apply(t)
	if phase := w.output(t, "phase"); phase != "Ready" {
		t.Errorf("the image is %v", phase)
	}
	w.planIsEmpty(t)
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"waiting for the worker image to be ready", "phase=Pending", "phase=Importing", "progress="} {
		if !strings.Contains(string(content), text) {
			t.Errorf("the log does not say %q", text)
		}
	}
	w.run(t, "destroy", "-auto-approve")
}

func TestAWaitOutlivesTheServer(t *testing.T) {
	p := newPlatform(t)
	w := newWorkspace(t, p, waiting("steady-restart"))
	applied := w.start(t, "apply", "-auto-approve", "-input=false")
	p.await(t, objects.NameOf("steady-restart"), "on its way", advancedFrom(0))
	if err := p.RestartServer(t.Context()); err != nil {
		t.Error(err)
	}
	if r := applied(); r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	w.run(t, "destroy", "-auto-approve")
}

func TestWhatCannotBeHadIsAnErrorThatHelps(t *testing.T) {
	p := newPlatform(t)
	p.awaitReady(t, objects.NameOf("gpu-nvidia"))
	p.await(t, objects.NameOf("gpu-amd"), "without a class", func(image *v1alpha1.WorkerImage) bool {
		if image == nil {
			return false
		}
		condition := apimeta.FindStatusCondition(image.Status.Conditions, v1alpha1.ConditionReady)
		return condition != nil && condition.Reason == "StorageClassNotFound"
	})
	elsewhere := map[string]string{"KUBE_CONFIG_PATH": ""}
	for name, test := range map[string]struct {
		config string
		env    map[string]string
		says   string
	}{
		"an image that waits for a person": {config: data(`name = "talos-worker-gpu-amd-v1.13.6", wait_for = "Ready"`),
			says: "StorageClassNotFound: StorageClass does-not-exist does not exist."},
		"an import that is tried for ever": {config: data(`name = "talos-worker-unpublished-zfs-v1.13.6", wait_for = "Ready", timeouts = { read = "3s" }`),
			says: "is not ready in time"},
		"a name nearly right": {config: data(`name = "talos-worker-gpu-nvidia-v1.13.5"`),
			says: "The nearest names are: - talos-worker-gpu-nvidia-v1.13.6"},
		"several": {config: data(`version = "v1.13.6", most_recent = true`),
			says: "match where one is asked for: - talos-worker-"},
		"a context that is not there": {config: data(`name = "a"`), env: map[string]string{"KUBE_CTX": "elsewhere"},
			says: `config_context: the kubeconfig has no context "elsewhere"`},
		"a cluster that is not there": {config: provider(`host = "http://127.0.0.1:1"`) + data(`name = "a"`), env: elsewhere,
			says: "The WorkerImage API does not answer"},
		"a certificate that is not trusted": {config: provider(`host = %q`, p.RESTConfig().Host) + data(`name = "a"`), env: elsewhere,
			says: "The server's certificate was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkspace(t, p, strings.ReplaceAll(test.config, ", ", "\n"))
			maps.Copy(w.env, test.env)
			w.refused(t, test.says, "plan", "-input=false")
		})
	}
}

func provider(format string, args ...any) string {
	return "provider \"workerimage\" {\n" + fmt.Sprintf(format, args...) + "\n}\n"
}

func TestATenantReadsAndDoesNotWrite(t *testing.T) {
	p := newPlatform(t)
	p.awaitReady(t, objects.NameOf("gpu-nvidia"))
	w := newWorkspace(t, p, data(`name = "talos-worker-gpu-nvidia-v1.13.6"`))
	w.env["KUBE_CONFIG_PATH"] = p.State().Kubeconfigs["tenant-a"]
	w.apply(t)
	w.write(t, resource("tofu-life", ""))
	w.refused(t, "Access to worker images was refused", "apply", "-auto-approve")
}

func TestAnAPIThatIsNotInstalledIsSaidToBeMissing(t *testing.T) {
	p := newPlatform(t)
	bare, err := stack.Start(t.Context(), stack.Options{KindsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bare.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := newWorkspace(t, p, data(`name = "a"`))
	w.env["KUBE_CONFIG_PATH"] = bare.Kubeconfig()
	w.refused(t, "The WorkerImage API is not installed", "plan", "-input=false")
}
