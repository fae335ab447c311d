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

package apiserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
	"github.com/cozystack/workerimage-apiserver/pkg/history"
	"github.com/cozystack/workerimage-apiserver/pkg/inventory"
)

// patience is how long a request waits for a version that another replica has published already.
const patience = 3 * time.Second

// SharedHistory says how the replicas of the server reach one another.
type SharedHistory struct {
	Kube kubernetes.Interface
	// Lock is the Lease that names the replica that orders changes. Its identity is this replica's host and port.
	Lock resourcelock.Interface
	// Account is whose rights the replicas have, in the cluster and with one another.
	Account *rest.Config
	// APIService reads that of this API. Replicas trust and expect of one another what kube-apiserver does.
	APIService func(context.Context) (*unstructured.Unstructured, error)
}

func (s *SharedHistory) patience() time.Duration {
	if s == nil {
		return 0
	}
	return patience
}

// replication has this replica take part in a history that all replicas serve.
type replication struct {
	config  *SharedHistory // nil: every replica serves a history of its own
	goldens string
	journal *history.Journal
	account atomic.Pointer[string]
}

// isReplica returns whether a user is another replica, which sees everything, as it does in the cluster.
func (r *replication) isReplica(user string) bool {
	account := r.account.Load()
	return account != nil && *account == user
}

func (r *replication) run(ctx context.Context) {
	if r.config == nil {
		if err := r.journal.Lead(); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot publish what was found")
		}
		return
	}
	if err := wait.PollUntilContextCancel(ctx, time.Second, true, r.readAccount); err != nil {
		return
	}
	history.New(history.Config{Journal: r.journal, Lock: r.config.Lock, Peer: r.feeds, Clock: clock.RealClock{}}).Run(ctx)
}

func (r *replication) readAccount(ctx context.Context) (bool, error) {
	review, err := r.config.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the name of this server's account yet")
		return false, nil
	}
	r.account.Store(&review.Status.UserInfo.Username)
	return true, nil
}

// feeds are the resources of the replica at an address, in the order of the journal's logs.
func (r *replication) feeds(ctx context.Context, address string) ([]history.Feed, error) {
	service, err := r.config.APIService(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what kube-apiserver trusts: %w", err)
	}
	config, err := peerConfig(r.config.Account, service, address)
	if err != nil {
		return nil, err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the replica at %s: %w", address, err)
	}
	api := client.ImagesV1alpha1()
	return []history.Feed{
		feed(api.WorkerImages().List, api.WorkerImages().Watch, func(image *images.WorkerImage) string { return imageKey(image.Name) }),
		feed(api.CatalogEntries().List, api.CatalogEntries().Watch, func(entry *images.CatalogEntry) string { return entryKey(entry.Name) }),
		feed(api.Options(r.goldens).List, api.Options(r.goldens).Watch, optionKey),
	}, nil
}

// peerConfig connects to a replica at an address.
func peerConfig(account *rest.Config, service *unstructured.Unstructured, address string) (*rest.Config, error) {
	text, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("decode the caBundle of APIService %s: %w", service.GetName(), err)
	}
	if len(bundle) == 0 {
		return nil, fmt.Errorf("APIService %s has no caBundle, so that replicas cannot trust one another", service.GetName())
	}
	name, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(service.Object, "spec", "service", "namespace")
	config := rest.CopyConfig(account)
	config.Host = "https://" + address
	config.TLSClientConfig.CAFile, config.TLSClientConfig.CAData = "", bundle
	config.TLSClientConfig.ServerName = name + "." + namespace + ".svc"
	return config, nil
}

func feed[L runtime.Object, O metav1.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error),
	key func(O) string,
) history.Feed {
	return history.Feed{
		List:  func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return list(ctx, opts) },
		Watch: watch,
		Own: func(obj runtime.Object) (string, runtime.Object, error) {
			internal, err := Scheme.ConvertToVersion(obj, runtime.InternalGroupVersioner)
			if err != nil {
				return "", nil, err
			}
			object, ok := internal.(O)
			if !ok {
				return "", nil, fmt.Errorf("received a %T", obj)
			}
			return key(object), internal, nil
		},
	}
}

// observer tells when a write has been published here, whoever publishes.
type observer struct {
	inventory *inventory.Inventory
	journal   *history.Journal
}

// AwaitDataVolumes implements backend.Observer.
func (o observer) AwaitDataVolumes(ctx context.Context, image, resourceVersion string) error {
	if err := o.inventory.AwaitDataVolumes(ctx, image, resourceVersion); err != nil {
		return err
	}
	return o.await(ctx, image)
}

// AwaitClaims implements backend.Observer.
func (o observer) AwaitClaims(ctx context.Context, image, resourceVersion string) error {
	if err := o.inventory.AwaitClaims(ctx, image, resourceVersion); err != nil {
		return err
	}
	return o.await(ctx, image)
}

func (o observer) await(ctx context.Context, image string) error {
	if err := o.journal.Await(ctx, imageLog, imageKey(image)); err != nil {
		return err
	}
	return o.journal.Await(ctx, entryLog, entryKey(image))
}
