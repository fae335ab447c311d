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

package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/cmd/server"
)

const (
	chart     = "../../artifacts/chart"
	deploy    = "../../artifacts/deploy"
	namespace = "cozy-system"
	name      = "workerimage-apiserver"
)

// helm runs helm and returns what it writes.
func helm(args ...string) ([]byte, error) {
	program := os.Getenv("HELM")
	if program == "" {
		program = "helm"
	}
	command := exec.Command(program, args...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return out, nil
}

// objects are those of a release.
type objects []*unstructured.Unstructured

func render(t *testing.T, args ...string) objects {
	t.Helper()
	out, err := helm(append([]string{"template", name, chart, "--namespace", namespace}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, out)
}

func parse(t *testing.T, manifests []byte) objects {
	t.Helper()
	var all objects
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// find returns the one object of a kind and a name.
func (o objects) find(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(o, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kind && object.GetName() == name
	})
	if i < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return o[i]
}

func into[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}

// forAllValues runs a test on the default values, and on each file of others.
func forAllValues(t *testing.T, test func(t *testing.T, release objects)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no values to test with", err)
	}
	t.Run("default", func(t *testing.T) { test(t, render(t)) })
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { test(t, render(t, "--values", file)) })
	}
}

func TestKubernetesKnowsEveryField(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	forAllValues(t, func(t *testing.T, release objects) {
		for _, object := range release {
			if !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
				continue // a kind of others, which nothing here knows
			}
			content, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := decoder.Decode(content, nil, nil); err != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	})
}

func TestTheServerUnderstandsItsArguments(t *testing.T) {
	forAllValues(t, func(t *testing.T, release objects) {
		options := server.NewOptions()
		flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
		for _, set := range options.Flags().FlagSets {
			flags.AddFlagSet(set)
		}
		if err := flags.Parse(args(t, release)); err != nil {
			t.Error(err)
		}
		if err := options.Validate(); err != nil {
			t.Error(err)
		}
	})
}

func args(t *testing.T, release objects) []string {
	t.Helper()
	return container(t, release).Args
}

func container(t *testing.T, release objects) corev1.Container {
	t.Helper()
	deployment := into[appsv1.Deployment](t, release.find(t, "Deployment", name))
	if n := len(deployment.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("there are %d containers", n)
	}
	return deployment.Spec.Template.Spec.Containers[0]
}

// arg returns the value of a flag.
func arg(t *testing.T, release objects, flag string) string {
	t.Helper()
	for _, argument := range args(t, release) {
		if value, found := strings.CutPrefix(argument, flag+"="); found {
			return value
		}
	}
	return ""
}

// Rights to single objects are of use if they are those that the arguments name.
func TestRightsAreForWhatTheArgumentsName(t *testing.T) {
	forAllValues(t, func(t *testing.T, release objects) {
		for _, test := range []struct{ role, flag string }{
			{name + ":catalog", "--catalog"},
			{name + ":serving", "--serving-secret"},
		} {
			want := arg(t, release, test.flag)
			if want == "" {
				continue
			}
			role := into[rbacv1.Role](t, release.find(t, "Role", test.role))
			if got := role.Namespace + "/" + role.Rules[0].ResourceNames[0]; got != want {
				t.Errorf("%s is %s, and Role %s for %s", test.flag, want, test.role, got)
			}
		}
		if role := into[rbacv1.Role](t, release.find(t, "Role", name+":goldens")); role.Namespace != arg(t, release, "--goldens-namespace") {
			t.Errorf("goldens are in %s, and the rights in %s", arg(t, release, "--goldens-namespace"), role.Namespace)
		}
	})
}

func TestEveryBindingIsToARoleThatIsThere(t *testing.T) {
	others := sets.New("system:auth-delegator", "extension-apiserver-authentication-reader")
	forAllValues(t, func(t *testing.T, release objects) {
		for _, object := range release {
			if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
				continue
			}
			// A ClusterRoleBinding has the same fields.
			binding := into[rbacv1.RoleBinding](t, object)
			if !others.Has(binding.RoleRef.Name) {
				release.find(t, binding.RoleRef.Kind, binding.RoleRef.Name)
			}
		}
	})
}

// What is written into these by others must not be taken away by whoever applies them again.
func TestAnUpgradeTakesNoCertificateAway(t *testing.T) {
	forAllValues(t, func(t *testing.T, release objects) {
		apiService := release.find(t, "APIService", "v1alpha1.images.cozystack.io")
		for _, field := range []string{"caBundle", "insecureSkipTLSVerify"} {
			if _, found, _ := unstructured.NestedFieldNoCopy(apiService.Object, "spec", field); found {
				t.Errorf("the APIService has a %s", field)
			}
		}
		for _, object := range release {
			_, hasData := object.Object["data"]
			if object.GetKind() == "Secret" && hasData {
				t.Errorf("Secret %s has data", object.GetName())
			}
		}
	})
}

func TestTheCatalogIsOneThatTheServerReads(t *testing.T) {
	release := render(t, "--values", filepath.Join(chart, "ci", "everything.yaml"))
	namespace, name, _ := strings.Cut(arg(t, release, "--catalog"), "/")
	declared := into[corev1.ConfigMap](t, release.find(t, "ConfigMap", name))
	if declared.Namespace != namespace {
		t.Errorf("it is in %s, and read in %s", declared.Namespace, namespace)
	}
	parsed, err := catalog.Parse([]byte(declared.Data[arg(t, release, "--catalog-key")]))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Entries) != 2 || len(parsed.Rejected) != 0 {
		t.Errorf("got %+v", parsed)
	}
}

func TestThePodIsStoppedOnlyAfterTheServerHasLeft(t *testing.T) {
	forAllValues(t, func(t *testing.T, release objects) {
		deployment := into[appsv1.Deployment](t, release.find(t, "Deployment", name))
		delay, _ := strings.CutSuffix(arg(t, release, "--shutdown-delay-duration"), "s")
		var seconds int64
		if _, err := fmt.Sscan(delay, &seconds); err != nil {
			t.Fatal(err)
		}
		pre := container(t, release).Lifecycle.PreStop.Sleep.Seconds
		if grace := *deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; grace < pre+seconds+60 {
			t.Errorf("%d seconds of grace for %d and %d, and a request of 60", grace, pre, seconds)
		}
	})
}

func TestThePodRunsAsTheUserOfTheImage(t *testing.T) {
	content, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	forAllValues(t, func(t *testing.T, release objects) {
		pod := into[appsv1.Deployment](t, release.find(t, "Deployment", name)).Spec.Template.Spec
		want := fmt.Sprintf("\nUSER %d:%d\n", *pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsGroup)
		if !strings.Contains(string(content), want) {
			t.Errorf("the Dockerfile does not say%s", want)
		}
	})
}

func TestTheImageIsThatOfTheChart(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(content, &about); err != nil {
		t.Fatal(err)
	}
	if image := container(t, render(t)).Image; !strings.HasSuffix(image, ":"+about.AppVersion) || about.AppVersion != "v"+about.Version {
		t.Errorf("chart %s for %s runs %s", about.Version, about.AppVersion, image)
	}
}

func TestTheManifestsAreRenderedFromTheChart(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(deploy, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shipped := map[string]any{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range parse(t, content) {
			if object.GetKind() != "Kustomization" {
				shipped[keyOf(object)] = object.Object
			}
		}
	}
	rendered := map[string]any{}
	for _, object := range render(t) {
		rendered[keyOf(object)] = object.Object
	}
	if diff := cmp.Diff(rendered, shipped); diff != "" {
		t.Errorf("run `make generate` (-rendered +shipped):\n%s", diff)
	}
}

func keyOf(object *unstructured.Unstructured) string {
	return strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")
}
