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
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/hack/stack/network"
	"github.com/cozystack/workerimage-apiserver/hack/stack/nodesim"
)

// podLogs is the directory of the logs of pods that run as processes.
const podLogs = "pods"

// podControllers are those that make pods of Deployments, and know when one may be taken away and where requests may go.
var podControllers = []string{
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"replicaset-controller",
}

// PodConfig is the administrator's access to a pod that runs as a process, past its Service. It takes every certificate.
func (c *Cluster) PodConfig(address string, port int) *rest.Config {
	config := c.RESTConfig()
	config.Host = fmt.Sprintf("https://%s", net.JoinHostPort(address, fmt.Sprint(port)))
	config.CAData, config.Insecure = nil, true
	config.Proxy = http.ProxyURL(c.network.URL())
	return config
}

// PodLogs are the files with what pods that run as processes have written, by the name of the pod.
func (c *Cluster) PodLogs() (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(c.dir.file(podLogs), "*.log"))
	if err != nil {
		return nil, err
	}
	logs := make(map[string]string, len(paths))
	for _, path := range paths {
		name := filepath.Base(path)
		logs[name[:len(name)-len(".log")]] = path
	}
	return logs, nil
}

func (c *Cluster) controllers() []string {
	if c.network == nil {
		return controllers
	}
	return slices.Concat(controllers, podControllers)
}

// startNetwork has kube-apiserver connect to Services and pods through a proxy: the addresses that it knows them by are
// nobody's.
func (c *Cluster) startNetwork(ctx context.Context) (err error) {
	if len(c.options.Images) == 0 {
		return nil
	}
	if err := c.credentials.issue("network", "network"); err != nil {
		return err
	}
	address, cert, key := fmt.Sprintf("127.0.0.1:%d", c.slot.port(networkPort)), c.dir.file("network.crt"), c.dir.file("network.key")
	if c.network, err = network.Listen(ctx, address, cert, key); err != nil {
		return err
	}
	return os.WriteFile(c.dir.file("egress.yaml"), fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: %s
        tlsConfig:
          caBundle: %s
          clientCert: %s
          clientKey: %s
`, c.network.URL(), c.dir.file("ca.crt"), cert, key), 0o600)
}

func (c *Cluster) networkArgs() []string {
	if c.network == nil {
		return nil
	}
	return []string{"--egress-selector-config-file=" + c.dir.file("egress.yaml")}
}

// programs are what the node runs in the place of containers.
func (c *Cluster) programs() (nodesim.Programs, error) {
	dir := c.dir.file(podLogs)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nodesim.Programs{}, err
	}
	return nodesim.Programs{
		ByImage: c.options.Images,
		Dir:     dir,
		Arguments: func(pod, address, token string) ([]string, error) {
			kubeconfig, err := c.credentials.tokenKubeconfig(pod, ServerNamespace, token)
			return connect(kubeconfig, address), err
		},
	}, nil
}
