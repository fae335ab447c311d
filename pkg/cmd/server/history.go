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

package server

import (
	"context"
	"net"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/cozystack/workerimage-apiserver/pkg/apiserver"
	"github.com/cozystack/workerimage-apiserver/pkg/history"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// HistoryOptions have several replicas serve one history.
type HistoryOptions struct {
	// Lease is the namespace and the name of the Lease in which the replicas agree who orders the changes. Each
	// replica serves a history of its own where it is empty.
	Lease string
	// Address is the host and port by which the other replicas reach this one.
	Address string
}

// AddFlags adds the flags to fs.
func (o *HistoryOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Lease, "history-lease", o.Lease,
		"Lease in which replicas agree which of them orders the changes, as NAMESPACE/NAME, so that all serve one history. "+
			"Without it each serves its own, and clients that change from one to another list again.")
	fs.StringVar(&o.Address, "history-address", o.Address,
		"HOST:PORT by which the other replicas reach this one; goes with --history-lease. They trust the caBundle of the APIService, and expect the name of its Service.")
}

func (o *HistoryOptions) validate() field.ErrorList {
	if o.Lease == "" {
		return nil
	}
	var errs field.ErrorList
	for _, message := range validateObjectName(o.Lease) {
		errs = append(errs, field.Invalid(field.NewPath("--history-lease"), o.Lease, message))
	}
	if host, port, err := net.SplitHostPort(o.Address); err != nil || host == "" || port == "" {
		errs = append(errs, field.Invalid(field.NewPath("--history-address"), o.Address, "must be HOST:PORT where --history-lease is given"))
	}
	return errs
}

// share returns how this replica shares a history with the others, nil if it serves its own.
func (o *HistoryOptions) share(config *rest.Config, kube kubernetes.Interface, dyn dynamic.Interface) *apiserver.SharedHistory {
	if o.Lease == "" {
		return nil
	}
	lease := objectName(o.Lease)
	return &apiserver.SharedHistory{
		Kube: kube,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
			Client:     kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: history.Identity(o.Address)},
		},
		Account: config,
		APIService: func(ctx context.Context) (*unstructured.Unstructured, error) {
			return dyn.Resource(apiServices).Get(ctx, apiService, metav1.GetOptions{})
		},
	}
}
