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

package certs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// firstTimeout is how long a server waits for its first certificate before it listens without.
const firstTimeout = 10 * time.Second

// fieldManager is who writes.
const fieldManager = "workerimage-apiserver"

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Config is what a Manager is made from.
type Config struct {
	Policy Policy
	// Secret is where servers share their certificate. It is there, if only empty.
	Secret types.NamespacedName
	// APIService is the name of the one whose clients are to trust the servers.
	APIService string
	Kube       kubernetes.Interface
	Dynamic    dynamic.Interface
}

// Manager provides the certificate that servers share, and does its part in keeping it.
type Manager struct {
	config     Config
	secret     cache.SharedIndexInformer
	apiService cache.SharedIndexInformer
	queue      workqueue.TypedRateLimitingInterface[string]

	// announced is the bundle that the APIService was last seen with, and since when.
	announced struct {
		bundle []byte
		since  time.Time
	}

	current   atomic.Pointer[Pair]
	listeners []dynamiccertificates.Listener
	// first is closed when there is a certificate.
	first   chan struct{}
	running sync.WaitGroup
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Manager{}
	_ dynamiccertificates.ControllerRunner       = &Manager{}
)

// NewManager returns a Manager that has no certificate yet.
func NewManager(config Config) (*Manager, error) {
	m := &Manager{
		config: config,
		secret: coreinformers.NewFilteredSecretInformer(config.Kube, config.Secret.Namespace, 0, cache.Indexers{},
			named(config.Secret.Name)),
		apiService: dynamicinformer.NewFilteredDynamicInformer(config.Dynamic, apiServices, metav1.NamespaceNone, 0, cache.Indexers{},
			named(config.APIService)).Informer(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "serving-certificate"}),
		first: make(chan struct{}),
	}
	for _, informer := range []cache.SharedIndexInformer{m.secret, m.apiService} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { m.enqueue() },
			UpdateFunc: func(any, any) { m.enqueue() },
			DeleteFunc: func(any) { m.enqueue() },
		}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// named selects the one object of that name, which is all that the server may see.
func named(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

func (m *Manager) enqueue() { m.queue.Add(m.Name()) }

// Name says where the certificate is from.
func (m *Manager) Name() string { return "secret " + m.config.Secret.String() }

// CurrentCertKeyContent returns the certificate and its key, or nothing if there is none yet.
func (m *Manager) CurrentCertKeyContent() (cert, key []byte) {
	if pair := m.current.Load(); pair != nil {
		return pair.Cert, pair.Key
	}
	return nil, nil
}

// AddListener adds one that is told of every new certificate. It must not be called any more when the Manager runs.
func (m *Manager) AddListener(listener dynamiccertificates.Listener) {
	m.listeners = append(m.listeners, listener)
}

// RunOnce starts the Manager, and returns when there is a certificate.
func (m *Manager) RunOnce(ctx context.Context) error {
	m.running.Go(func() { m.secret.RunWithContext(ctx) })
	m.running.Go(func() { m.apiService.RunWithContext(ctx) })
	m.running.Go(func() { m.work(ctx) })
	timeout := time.NewTimer(firstTimeout)
	defer timeout.Stop()
	select {
	case <-m.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return fmt.Errorf("no certificate in %s within %v", m.Name(), firstTimeout)
	}
}

// Run goes on with what RunOnce started, until ctx is done.
func (m *Manager) Run(context.Context, int) { m.running.Wait() }

func (m *Manager) work(ctx context.Context) {
	defer m.queue.ShutDown()
	defer context.AfterFunc(ctx, m.queue.ShutDown)()
	if !cache.WaitForCacheSync(ctx.Done(), m.secret.HasSynced, m.apiService.HasSynced) {
		return
	}
	// That a Secret is missing is no event.
	m.enqueue()
	for m.next(ctx) {
	}
}

func (m *Manager) next(ctx context.Context) bool {
	key, shutdown := m.queue.Get()
	if shutdown {
		return false
	}
	defer m.queue.Done(key)
	again, err := m.sync(ctx)
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Cannot keep the serving certificate", "secret", m.config.Secret, "apiService", m.config.APIService)
		m.queue.AddRateLimited(key)
		return true
	}
	m.queue.Forget(key)
	if !again.IsZero() {
		m.queue.AddAfter(key, time.Until(again))
	}
	return true
}

// sync brings the cluster, and then this server, closer to what the policy wants, and returns when to do so again at the
// latest. What it writes to the Secret it acts upon when it is seen there, as the other servers do.
func (m *Manager) sync(ctx context.Context) (again time.Time, err error) {
	secret, err := m.readSecret()
	if err != nil {
		return time.Time{}, err
	}
	apiService := m.readAPIService()
	now := time.Now()
	state := stateOf(secret)
	following, again, err := m.config.Policy.Advance(state, m.announcedSince(apiService, state.Bundle, now), now)
	if err != nil {
		return time.Time{}, err
	}
	if following.Serving.Equal(state.Serving) {
		m.use(ctx, state.Serving)
	}
	if !following.isIn(secret) {
		return time.Time{}, m.write(ctx, secret, following)
	}
	return again, m.announce(ctx, apiService, state.Bundle)
}

func (m *Manager) readSecret() (*corev1.Secret, error) {
	object, exists, err := m.secret.GetStore().GetByKey(m.config.Secret.String())
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, errors.New("there is no such Secret; it comes with the manifests of the server")
	}
	return object.(*corev1.Secret), nil
}

// readAPIService returns nil where there is none.
func (m *Manager) readAPIService() *unstructured.Unstructured {
	object, exists, err := m.apiService.GetStore().GetByKey(m.config.APIService)
	if err != nil || !exists {
		return nil
	}
	return object.(*unstructured.Unstructured)
}

// announcedSince returns since when the APIService has been seen with this bundle. A server that has just begun has not
// seen it for long, and then its certificate changes the later.
func (m *Manager) announcedSince(apiService *unstructured.Unstructured, bundle []byte, now time.Time) time.Time {
	seen := bundleOf(apiService)
	if !bytes.Equal(m.announced.bundle, seen) {
		m.announced.bundle, m.announced.since = seen, now
	}
	if len(seen) == 0 || !bytes.Equal(seen, bundle) {
		return time.Time{}
	}
	return m.announced.since
}

func bundleOf(apiService *unstructured.Unstructured) []byte {
	if apiService == nil {
		return nil
	}
	text, _, _ := unstructured.NestedString(apiService.Object, "spec", "caBundle")
	// What the API server would not take is no bundle.
	bundle, _ := base64.StdEncoding.DecodeString(text)
	return bundle
}

// write puts a state into the Secret, unless another server has changed it meanwhile: then that one's counts.
func (m *Manager) write(ctx context.Context, secret *corev1.Secret, state State) error {
	before := stateOf(secret)
	secret = secret.DeepCopy()
	secret.Data = state.data()
	_, err := m.config.Kube.CoreV1().Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("update Secret %s: %w", m.config.Secret, err)
	}
	klog.FromContext(ctx).Info("Changed the serving certificate", "secret", m.config.Secret,
		"replaced", !state.Serving.Equal(before.Serving), "announced", len(state.Next.Cert) > 0)
	return nil
}

// use has this server present a certificate.
func (m *Manager) use(ctx context.Context, pair Pair) {
	before := m.current.Swap(&pair)
	if before != nil && before.Equal(pair) {
		return
	}
	klog.FromContext(ctx).Info("Using a serving certificate", "secret", m.config.Secret)
	for _, listener := range m.listeners {
		listener.Enqueue()
	}
	if before == nil {
		close(m.first)
	}
}

// announce has clients of the APIService trust a bundle.
func (m *Manager) announce(ctx context.Context, apiService *unstructured.Unstructured, bundle []byte) error {
	if apiService == nil || bytes.Equal(bundleOf(apiService), bundle) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": apiService.GetResourceVersion()},
		"spec":     map[string]any{"caBundle": bundle},
	})
	if err != nil {
		return err
	}
	_, err = m.config.Dynamic.Resource(apiServices).Patch(ctx, m.config.APIService, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch APIService %s: %w", m.config.APIService, err)
	}
	klog.FromContext(ctx).Info("Told clients whom to trust", "apiService", m.config.APIService)
	return nil
}
