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

package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cozystack/workerimage-apiserver/hack/stack/pki"
	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

// auditPolicy records who asks for the kinds this project is about.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

// controllers are those CDI's work and the garbage collector of an aggregated API depend on.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"garbage-collector-controller",
	"namespace-controller",
	"persistentvolume-binder-controller",
	"persistentvolume-expander-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
}

// startAPIServer starts etcd and kube-apiserver, and opens the administrator's access.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	if err := c.startEtcd(); err != nil {
		return err
	}
	if err := c.makeCredentials(); err != nil {
		return err
	}
	if err := c.startNetwork(ctx); err != nil {
		return err
	}
	if err := c.startKubeAPIServer(); err != nil {
		return err
	}
	return await(ctx, "kube-apiserver", func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (c *Cluster) startEtcd() error {
	client := c.etcdAddress()
	return c.processes.Start(process.Spec{
		Name: "etcd",
		Path: c.options.Binaries.Etcd,
		Args: []string{
			"--data-dir=" + c.dir.file("etcd"),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			fmt.Sprintf("--listen-peer-urls=http://127.0.0.1:%d", c.slot.port(etcdPeerPort)),
			"--unsafe-no-fsync",
			"--log-level=error",
		},
	})
}

func (c *Cluster) etcdAddress() string {
	return fmt.Sprintf("http://127.0.0.1:%d", c.slot.port(etcdClientPort))
}

// makeCredentials makes what the control plane and its users need to know each other.
func (c *Cluster) makeCredentials() (err error) {
	c.credentials, err = newCredentials(c.dir, fmt.Sprintf("https://127.0.0.1:%d", c.slot.port(apiServerPort)))
	if err != nil {
		return err
	}
	if err := c.credentials.issue("kube-apiserver", "kube-apiserver", "kubernetes.default.svc"); err != nil {
		return err
	}
	front, err := pki.NewAuthority("stack-front-proxy")
	if err != nil {
		return err
	}
	if err := c.credentials.write("front-proxy-ca", front.KeyPair); err != nil {
		return err
	}
	proxy, err := front.Issue("front-proxy-client", nil)
	if err != nil {
		return err
	}
	if err := c.credentials.write("front-proxy", proxy); err != nil {
		return err
	}
	if err := c.credentials.issue("service-account", "service-account"); err != nil {
		return err
	}
	var made []string
	for _, tenant := range tenants {
		kubeconfig, err := c.credentials.kubeconfig(tenant, tenant, tenant, tenant)
		if err != nil {
			return err
		}
		made = append(made, kubeconfig)
	}
	admin, err := c.credentials.kubeconfig("admin", "", "admin", "system:masters")
	if err != nil {
		return err
	}
	if err := c.handOut(admin, made); err != nil {
		return err
	}
	return c.openAccess(admin)
}

// handOut copies the administrator's kubeconfig to where the user asked for it, and the tenants' beside it.
func (c *Cluster) handOut(admin string, ofTenants []string) (err error) {
	if c.options.Kubeconfig == "" {
		return nil
	}
	if c.options.Kubeconfig, err = filepath.Abs(c.options.Kubeconfig); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.options.Kubeconfig), 0o750); err != nil {
		return err
	}
	if err := copyFile(c.options.Kubeconfig, admin); err != nil {
		return err
	}
	for _, made := range ofTenants {
		if err := copyFile(c.handedOut(made), made); err != nil {
			return err
		}
	}
	return nil
}

// handedOut is where the user finds a tenant's kubeconfig.
func (c *Cluster) handedOut(made string) string {
	if c.options.Kubeconfig == "" {
		return made
	}
	return filepath.Join(filepath.Dir(c.options.Kubeconfig), filepath.Base(made))
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// openAccess makes the administrator's clients from a kubeconfig.
func (c *Cluster) openAccess(kubeconfig string) (err error) {
	if c.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	c.config.QPS = -1
	c.config.WarningHandler = rest.NoWarnings{}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.applier, err = newApplier(c.config)
	return err
}

func (c *Cluster) startKubeAPIServer() error {
	if err := os.WriteFile(c.dir.file("audit-policy.yaml"), auditPolicy, 0o600); err != nil {
		return err
	}
	return c.processes.Start(process.Spec{
		Name: "kube-apiserver",
		Path: c.options.Binaries.KubeAPIServer,
		Args: append(c.networkArgs(), []string{
			"--etcd-servers=" + c.etcdAddress(),
			fmt.Sprintf("--secure-port=%d", c.slot.port(apiServerPort)),
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none",
			"--service-cluster-ip-range=10.0.0.0/24",
			"--authorization-mode=RBAC",
			"--cert-dir=" + c.dir.file("kube-apiserver"),
			"--tls-cert-file=" + c.dir.file("kube-apiserver.crt"),
			"--tls-private-key-file=" + c.dir.file("kube-apiserver.key"),
			"--client-ca-file=" + c.dir.file("ca.crt"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + c.dir.file("service-account.key"),
			"--service-account-signing-key-file=" + c.dir.file("service-account.key"),
			"--requestheader-client-ca-file=" + c.dir.file("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + c.dir.file("front-proxy.crt"),
			"--proxy-client-key-file=" + c.dir.file("front-proxy.key"),
			"--audit-policy-file=" + c.dir.file("audit-policy.yaml"),
			"--audit-log-path=" + c.dir.file(auditLog),
			"--v=1",
		}...),
	})
}

func (c *Cluster) startControllerManager() error {
	kubeconfig, err := c.credentials.kubeconfig("kube-controller-manager", "", "system:kube-controller-manager")
	if err != nil {
		return err
	}
	return c.processes.Start(process.Spec{
		Name: "kube-controller-manager",
		Path: c.options.Binaries.KubeControllerManager,
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authorization-kubeconfig=" + kubeconfig,
			fmt.Sprintf("--secure-port=%d", c.slot.port(controllerManagerPort)),
			"--bind-address=127.0.0.1",
			"--cert-dir=" + c.dir.file("kube-controller-manager"),
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + c.dir.file("service-account.key"),
			"--root-ca-file=" + c.dir.file("ca.crt"),
			"--controllers=" + strings.Join(c.controllers(), ","),
			"--v=1",
		},
	})
}

// awaitServiceAccounts waits for the accounts without which no pod is admitted.
func (c *Cluster) awaitServiceAccounts(ctx context.Context) error {
	for _, namespace := range append([]string{goldensNamespace}, tenants...) {
		err := await(ctx, "the default service account of "+namespace, func(ctx context.Context) error {
			_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
