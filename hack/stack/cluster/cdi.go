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
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/hack/stack/pki"
	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

const (
	cdiNamespace = "cdi"
	tokenKey     = "cdi-token"
)

// cdiSigners are the authorities of CDI's upload servers and of their clients.
var cdiSigners = []string{"cdi-uploadserver-signer", "cdi-uploadserver-client-signer"}

// startControllers starts kube-controller-manager, and CDI with the webhooks in front of its kinds.
func (c *Cluster) startControllers(ctx context.Context) error {
	if err := c.startControllerManager(); err != nil {
		return err
	}
	if err := c.makeCDISecrets(ctx); err != nil {
		return err
	}
	if err := c.startCDIAPIServer(); err != nil {
		return err
	}
	if err := c.startCDIController(); err != nil {
		return err
	}
	if err := c.awaitCDIAPIServer(ctx); err != nil {
		return err
	}
	if err := c.installWebhooks(ctx); err != nil {
		return err
	}
	return await(ctx, "cdi-controller", c.profilesKnown)
}

// makeCDISecrets makes the keys cdi-operator would: CDI reads them from files and from the cluster.
func (c *Cluster) makeCDISecrets(ctx context.Context) error {
	for _, name := range cdiSigners {
		authority, err := pki.NewRSAAuthority(name)
		if err != nil {
			return err
		}
		if err := c.credentials.write(name, authority.KeyPair); err != nil {
			return err
		}
		secret := secret(name, "kubernetes.io/tls", map[string][]byte{"tls.crt": authority.Cert, "tls.key": authority.Key})
		bundle := object("v1", "ConfigMap", cdiNamespace, name+"-bundle", map[string]any{"data": map[string]any{"ca-bundle.crt": string(authority.Cert)}})
		if err := c.applier.apply(ctx, secret, bundle); err != nil {
			return err
		}
	}
	public, private, err := pki.NewRSAKeyPair()
	if err != nil {
		return err
	}
	if err := c.credentials.write(tokenKey, pki.KeyPair{Cert: public, Key: private}); err != nil {
		return err
	}
	return c.applier.apply(ctx, secret("cdi-api-signing-key", "Opaque", map[string][]byte{"id_rsa": private, "id_rsa.pub": public}))
}

func (c *Cluster) startCDIAPIServer() error {
	kubeconfig, err := c.cdiKubeconfig("cdi-apiserver")
	if err != nil {
		return err
	}
	if err := c.credentials.issue("cdi-api", "cdi-api.cdi.svc"); err != nil {
		return err
	}
	return c.processes.Start(process.Spec{
		Name: "cdi-apiserver",
		Path: c.options.Binaries.CDIAPIServer,
		Args: []string{"-v=1"},
		Env: []string{
			"KUBECONFIG=" + kubeconfig,
			fmt.Sprintf("PORT=%d", c.slot.port(cdiAPIServerPort)),
			"CERT_FILE=" + c.dir.file("cdi-api.crt"),
			"KEY_FILE=" + c.dir.file("cdi-api.key"),
		},
	})
}

func (c *Cluster) startCDIController() error {
	kubeconfig, err := c.cdiKubeconfig("cdi-sa")
	if err != nil {
		return err
	}
	image := func(name string) string {
		return fmt.Sprintf("quay.io/kubevirt/%s:%s", name, c.options.Binaries.CDIVersion)
	}
	return c.processes.Start(process.Spec{
		Name: "cdi-controller",
		Path: c.options.Binaries.CDIController,
		// One of its two clients reads the flag and the other the environment.
		Args: []string{"-kubeconfig=" + kubeconfig, "-v=1"},
		Env: []string{
			"KUBECONFIG=" + kubeconfig,
			fmt.Sprintf("METRICS_ADDRESS=127.0.0.1:%d", c.slot.port(cdiMetricsPort)),
			"READY_FILE=" + c.dir.file("cdi-controller.ready"),
			"TOKEN_PUBLIC_KEY=" + c.dir.file(tokenKey+".crt"),
			"TOKEN_PRIVATE_KEY=" + c.dir.file(tokenKey+".key"),
			"UPLOAD_SERVER_CERT_FILE=" + c.dir.file("cdi-uploadserver-signer.crt"),
			"UPLOAD_SERVER_KEY_FILE=" + c.dir.file("cdi-uploadserver-signer.key"),
			"UPLOAD_CLIENT_CERT_FILE=" + c.dir.file("cdi-uploadserver-client-signer.crt"),
			"UPLOAD_CLIENT_KEY_FILE=" + c.dir.file("cdi-uploadserver-client-signer.key"),
			"IMPORTER_IMAGE=" + image("cdi-importer"),
			"CLONER_IMAGE=" + image("cdi-cloner"),
			"UPLOADSERVER_IMAGE=" + image("cdi-uploadserver"),
			"OVIRT_POPULATOR_IMAGE=" + image("cdi-importer"),
			"UPLOADPROXY_SERVICE=cdi-uploadproxy",
			"PULL_POLICY=IfNotPresent",
		},
	})
}

// cdiKubeconfig is for one of CDI's service accounts.
func (c *Cluster) cdiKubeconfig(account string) (string, error) {
	return c.credentials.kubeconfig(account, cdiNamespace, serviceAccountUser(cdiNamespace, account), serviceAccountGroups(cdiNamespace)...)
}

func (c *Cluster) awaitCDIAPIServer(ctx context.Context) error {
	client, err := rest.UnversionedRESTClientFor(c.configFor(cdiAPIServerPort))
	if err != nil {
		return err
	}
	return await(ctx, "cdi-apiserver", func(ctx context.Context) error {
		return client.Get().AbsPath("/healthz").Do(ctx).Error()
	})
}

// installWebhooks applies CDI's webhook configurations, turned from a service in the cluster to the process beside it.
func (c *Cluster) installWebhooks(ctx context.Context) error {
	objects, err := readManifests(c.options.Binaries.CDIManifests)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !isWebhookConfiguration(object) {
			continue
		}
		if err := c.redirectWebhooks(object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if err := c.applier.apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) redirectWebhooks(configuration *unstructured.Unstructured) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		webhook, ok := webhook.(map[string]any)
		if !ok {
			return fmt.Errorf("webhook is a %T", webhook)
		}
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		webhook["clientConfig"] = map[string]any{
			"url":      fmt.Sprintf("https://127.0.0.1:%d%s", c.slot.port(cdiAPIServerPort), path),
			"caBundle": base64.StdEncoding.EncodeToString(c.credentials.authority.Cert),
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

// profilesKnown says whether CDI's controller has come to the storage classes, the last thing it does as it starts.
func (c *Cluster) profilesKnown(ctx context.Context) error {
	profile, err := c.applier.get(ctx, "cdi.kubevirt.io/v1beta1", "StorageProfile", "replicated")
	if err != nil {
		return err
	}
	if provisioner, _, err := unstructured.NestedString(profile.Object, "status", "provisioner"); provisioner == "" || err != nil {
		return fmt.Errorf("storage profile %s has no provisioner yet", profile.GetName())
	}
	return nil
}

func isWebhookConfiguration(o *unstructured.Unstructured) bool {
	return o.GetKind() == "ValidatingWebhookConfiguration" || o.GetKind() == "MutatingWebhookConfiguration"
}

func secret(name, kind string, data map[string][]byte) *unstructured.Unstructured {
	encoded := make(map[string]any, len(data))
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	return object("v1", "Secret", cdiNamespace, name, map[string]any{"type": kind, "data": encoded})
}
