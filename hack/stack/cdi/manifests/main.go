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

// manifests prints what cdi-operator would install for CDI's controller and API server: the CRDs, service accounts,
// RBAC and webhook configurations, as CDI's own operator packages make them.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kubevirt.io/containerized-data-importer/pkg/operator/resources"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/cluster"
	"kubevirt.io/containerized-data-importer/pkg/operator/resources/namespaced"
)

const namespace = "cdi"

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(out io.Writer) error {
	for _, crd := range sortedCRDs() {
		if _, err := fmt.Fprintf(out, "---\n%s\n", strings.TrimSpace(crd)); err != nil {
			return err
		}
	}
	objects, err := operatorObjects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("encode %s: %w", object.GetName(), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", document); err != nil {
			return err
		}
	}
	return nil
}

func sortedCRDs() []string {
	var crds []string
	for _, crd := range resources.CDICRDs {
		crds = append(crds, crd)
	}
	slices.Sort(crds)
	return crds
}

// operatorObjects leaves out what runs in pods: deployments, services and their policies.
func operatorObjects() ([]client.Object, error) {
	args := &cluster.FactoryArgs{Namespace: namespace, Logger: logr.Discard()}
	static, err := cluster.CreateAllStaticResources(args)
	if err != nil {
		return nil, err
	}
	inNamespace, err := namespaced.CreateAllResources(&namespaced.FactoryArgs{Namespace: namespace, Verbosity: "1", PullPolicy: "IfNotPresent"})
	if err != nil {
		return nil, err
	}
	dynamic, err := cluster.CreateAllDynamicResources(args)
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	for _, object := range slices.Concat(static, inNamespace, dynamic) {
		switch object.(type) {
		case *corev1.ServiceAccount,
			*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.Role, *rbacv1.RoleBinding,
			*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfiguration:
			objects = append(objects, object)
		}
	}
	slices.SortStableFunc(objects, func(a, b client.Object) int {
		return strings.Compare(key(a), key(b))
	})
	return objects, nil
}

func key(o client.Object) string {
	return o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetNamespace() + "/" + o.GetName()
}
