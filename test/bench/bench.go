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

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

const (
	version = "v1alpha1"
	// The same resource three times: what is measured, the custom resource, and the handler that does nothing.
	servedGroup = "images.cozystack.io"
	storedGroup = "stored.images.cozystack.io"
	limitGroup  = "limit.images.cozystack.io"

	goldensNamespace = "cozy-public"
	tenant           = "tenant-a"

	serverProcess = "workerimage-apiserver"
	apiServer     = "kube-apiserver"
	limitProcess  = "limit"

	patience = 3 * time.Minute
)

var tenants = []string{tenant, "tenant-b", "tenant-c"}

// bench is a stack with all variants on it.
type bench struct {
	options *options
	stack   *stack.Stack
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	etcd    *clientv3.Client
	limit   limit
	images  int
}

func newBench(ctx context.Context, o *options) (*bench, error) {
	running, err := stack.Start(ctx, stack.Options{
		KindsOnly: true,
		Server:    o.server,
		Manifests: filepath.Join("artifacts", "deploy"),
	})
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, stack: running}
	if err := b.prepare(ctx); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

func (b *bench) prepare(ctx context.Context) (err error) {
	config := b.stack.RESTConfig()
	if b.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if b.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if b.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{b.stack.State().Etcd}}); err != nil {
		return err
	}
	if err := b.startLimit(ctx); err != nil {
		return err
	}
	definition, err := b.customResource(ctx)
	if err != nil {
		return err
	}
	if err := b.create(ctx, append(permissions(), storageClass(), definition)...); err != nil {
		return err
	}
	for _, group := range []string{storedGroup, limitGroup} {
		if err := b.awaitGroup(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) stop() error {
	var err error
	if b.etcd != nil {
		err = b.etcd.Close()
	}
	return errors.Join(err, b.stack.Stop())
}

// startLimit runs the handler that does nothing as a process of its own, behind an APIService of its own.
func (b *bench) startLimit(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	b.limit = limit{dir: filepath.Join(b.stack.Dir, limitProcess)}
	if err := os.MkdirAll(b.limit.dir, 0o750); err != nil {
		return err
	}
	spec := process.Spec{Name: limitProcess, Path: program, Args: []string{limitCommand, address.String(), b.limit.dir}}
	if err := b.stack.Processes().Start(spec); err != nil {
		return err
	}
	return b.create(ctx, limitService(address.Port)...)
}

func freeAddress(ctx context.Context) (*net.TCPAddr, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return listener.Addr().(*net.TCPAddr), listener.Close()
}

func (b *bench) awaitGroup(ctx context.Context, group string) error {
	return poll(ctx, group, func(ctx context.Context) error {
		return b.kube.Discovery().RESTClient().Get().AbsPath(listPath(group)).Do(ctx).Error()
	})
}

func (b *bench) create(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		resource, ok := resources[object.GetKind()]
		if !ok {
			return fmt.Errorf("it is not known which resource serves %s", object.GetKind())
		}
		var client dynamic.ResourceInterface = b.dynamic.Resource(resource)
		if namespace := object.GetNamespace(); namespace != "" {
			client = b.dynamic.Resource(resource).Namespace(namespace)
		}
		if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

var resources = map[string]schema.GroupVersionResource{
	"APIService":               {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	"ClusterRole":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":       {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"RoleBinding":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	"Service":                  {Version: "v1", Resource: "services"},
	"StorageClass":             {Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
}

// listPath is where a group serves its images.
func listPath(group string) string {
	return "/apis/" + group + "/" + version + "/workerimages"
}

// connections returns clients of a caller with a connection each: clients of one configuration share theirs.
func (b *bench) connections(caller string, count int) ([]*http.Client, error) {
	config := b.stack.RESTConfig()
	if caller != operator {
		var err error
		if config, err = b.stack.UserConfig(caller); err != nil {
			return nil, err
		}
	}
	clients := make([]*http.Client, count)
	for i := range clients {
		own := rest.CopyConfig(config)
		own.Dial = (&net.Dialer{}).DialContext
		var err error
		if clients[i], err = rest.HTTPClientFor(own); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

func (b *bench) url(path string) string { return b.stack.RESTConfig().Host + path }

// resourceVersion is where a watch of a group begins that is to be sent nothing old.
func (b *bench) resourceVersion(ctx context.Context, group string) (string, error) {
	list, err := b.dynamic.Resource(imagesOf(group)).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.GetResourceVersion(), nil
}

func imagesOf(group string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "workerimages"}
}

// count returns how many images a group serves.
func (b *bench) count(ctx context.Context, group string) (int, error) {
	list, err := b.dynamic.Resource(imagesOf(group)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

// poll waits until the condition holds.
func poll(ctx context.Context, what string, condition await.Condition) error {
	if err := await.Within(ctx, patience, condition); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

func object(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// permissions let everybody read the variants, and the tenant the pools of its namespace: no controller puts the
// tenant's role together here.
func permissions() []*unstructured.Unstructured {
	const rbac = "rbac.authorization.k8s.io"
	rule := func(resource string, groups ...any) []any {
		return []any{map[string]any{"apiGroups": groups, "resources": []any{resource}, "verbs": []any{"get", "list", "watch"}}}
	}
	binding := func(kind, namespace, role, group string) *unstructured.Unstructured {
		return object(rbac+"/v1", kind, namespace, role, map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "Group", "name": group}},
		})
	}
	return []*unstructured.Unstructured{
		object(rbac+"/v1", "ClusterRole", "", "bench-variants", map[string]any{"rules": rule("*", storedGroup, limitGroup)}),
		object(rbac+"/v1", "ClusterRole", "", "bench-pools", map[string]any{"rules": rule("*", "apps.cozystack.io")}),
		binding("ClusterRoleBinding", "", "bench-variants", "system:authenticated"),
		binding("RoleBinding", tenant, "bench-pools", tenant),
	}
}

func storageClass() *unstructured.Unstructured {
	return object("storage.k8s.io/v1", "StorageClass", "", class, map[string]any{"provisioner": "linstor.csi.linbit.com"})
}

// limitService has kube-apiserver pass requests on to a port. Endpoints refuse loopback addresses; a name is not
// looked at.
func limitService(port int) []*unstructured.Unstructured {
	service := object("v1", "Service", "default", limitProcess, map[string]any{
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
	})
	api := object("apiregistration.k8s.io/v1", "APIService", "", version+"."+limitGroup, map[string]any{
		"spec": map[string]any{
			"group": limitGroup, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "default", "name": limitProcess, "port": int64(port)},
		},
	})
	return []*unstructured.Unstructured{service, api}
}

// pid returns the process that a name of the report stands for.
func (b *bench) pid(name string) string {
	if name == clientProcess {
		return strconv.Itoa(os.Getpid())
	}
	pid, _ := b.stack.Process(name)
	return strconv.Itoa(pid)
}
