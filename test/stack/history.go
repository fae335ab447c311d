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

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cozystack/workerimage-apiserver/hack/stack/cluster"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

const (
	// HistoryLease is the name of the Lease of replicas that serve one history.
	HistoryLease = "workerimage-apiserver"
	// HistoryRights is the file of the repository with what such replicas may do.
	HistoryRights = "test/stack/testdata/rbac-shared-history.yaml"
)

// withOneHistory has the server installed so that its replicas serve one history.
func (s *Server) withOneHistory(o Options, root string) (Options, error) {
	manifests := filepath.Join(s.dir, "one-history")
	if err := os.RemoveAll(manifests); err != nil {
		return o, err
	}
	if err := os.CopyFS(manifests, os.DirFS(o.Manifests)); err != nil {
		return o, err
	}
	rights, err := os.ReadFile(filepath.Join(root, HistoryRights))
	if err != nil {
		return o, err
	}
	o.Manifests = manifests
	o.ServerArgs = append([]string{"--history-lease=" + cluster.ServerNamespace + "/" + HistoryLease}, o.ServerArgs...)
	return o, os.WriteFile(filepath.Join(manifests, "rbac.yaml"), rights, 0o600)
}

// HistoryLeader returns the number of the replica that orders the changes of the one history.
func (s *Stack) HistoryLeader(ctx context.Context) (replica int, err error) {
	lease, err := s.Resource(objects.Leases, cluster.ServerNamespace).Get(ctx, HistoryLease, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	holder, _, err := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if err != nil {
		return 0, err
	}
	if holder == "" {
		return 0, errors.New("nobody holds the Lease")
	}
	for i := range s.Replicas() {
		if strings.HasPrefix(holder, strings.TrimPrefix(s.ReplicaConfig(i).Host, "https://")+"_") {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the Lease is held by %s", holder)
}
