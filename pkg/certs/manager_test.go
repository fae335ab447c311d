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
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const apiServiceName = "v1alpha1.images.cozystack.io"

// beginning is longer than a server takes to begin.
const beginning = time.Second

var secretName = types.NamespacedName{Namespace: "cozy-system", Name: "serving"}

// world is a cluster with an empty Secret and an APIService, and servers in it.
type world struct {
	kube    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient

	mu sync.Mutex
	// writes is how often the Secret has been written, and its version.
	writes int
}

func newWorld() *world {
	apiService := &unstructured.Unstructured{}
	apiService.SetAPIVersion("apiregistration.k8s.io/v1")
	apiService.SetKind("APIService")
	apiService.SetName(apiServiceName)
	w := &world{kube: fake.NewClientset(emptySecret("0")), dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), apiService)}
	w.kube.PrependReactor("update", "secrets", w.guard)
	return w
}

func emptySecret(version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretName.Namespace, Name: secretName.Name, ResourceVersion: version}}
}

// guard refuses a write to a version of the Secret that is not its last, which the clientset would not.
func (w *world) guard(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	secret := action.(clienttesting.UpdateAction).GetObject().(*corev1.Secret)
	if secret.ResourceVersion != strconv.Itoa(w.writes) {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), secret.Name, errors.New("it has changed"))
	}
	w.writes++
	secret.ResourceVersion = strconv.Itoa(w.writes)
	return false, nil, nil
}

// written returns how often the Secret has been written.
func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// server is a Manager that runs, and how often its listener has been told of a certificate.
type server struct {
	*Manager
	told atomic.Int32
}

func (s *server) Enqueue() { s.told.Add(1) }

// start runs servers until the test ends, and returns when they have begun.
func (w *world) start(t *testing.T, n int) []*server {
	t.Helper()
	var servers []*server
	for range n {
		servers = append(servers, w.startOne(t))
	}
	pass(beginning)
	return servers
}

func (w *world) startOne(t *testing.T) *server {
	t.Helper()
	m, err := NewManager(Config{Policy: policy, Secret: secretName, APIService: apiServiceName, Kube: w.kube, Dynamic: w.dynamic})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Manager: m}
	m.AddListener(s)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.RunOnce(ctx); err != nil {
			t.Error(err)
		}
		m.Run(ctx, 1)
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

func (s *server) pair() Pair {
	cert, key := s.CurrentCertKeyContent()
	return Pair{Cert: cert, Key: key}
}

func (w *world) state(t *testing.T) State {
	t.Helper()
	secret, err := w.kube.CoreV1().Secrets(secretName.Namespace).Get(t.Context(), secretName.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stateOf(secret)
}

func (w *world) caBundle(t *testing.T) []byte {
	t.Helper()
	object, err := w.dynamic.Resource(apiServices).Get(t.Context(), apiServiceName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return bundleOf(object)
}

// check fails if a server presents what a client of the APIService does not trust.
func (w *world) check(t *testing.T, when string, servers ...*server) {
	t.Helper()
	bundle := w.caBundle(t)
	for i, s := range servers {
		if !trusts(t, State{Bundle: bundle}, s.pair()) {
			t.Errorf("%s, server %d is not trusted", when, i)
		}
		if !s.pair().Equal(servers[0].pair()) {
			t.Errorf("%s, server %d has a certificate of its own", when, i)
		}
	}
}

func TestServersShareACertificateThatClientsTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		servers := w.start(t, 2)
		w.check(t, "at the beginning", servers...)
		for i, s := range servers {
			if n := s.told.Load(); n != 1 {
				t.Errorf("server %d was told %d times", i, n)
			}
		}
	})
}

func TestACertificateIsRenewedWithoutAMomentOfMistrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		servers := w.start(t, 2)
		first := servers[0].pair()
		pass(validity*2/3 - backdating)
		w.check(t, "when the successor is announced", servers...)
		if !servers[0].pair().Equal(first) || len(w.state(t).Next.Cert) == 0 {
			t.Error("there is no successor, or it is in use already")
		}
		pass(settling)
		w.check(t, "when the successor is in use", servers...)
		if servers[0].pair().Equal(first) {
			t.Error("the certificate is the first one")
		}
		if !trusts(t, State{Bundle: w.caBundle(t)}, first) {
			t.Error("a server that has not seen the change is not trusted")
		}
	})
}

func TestOfServersThatBeginAtOnceOneMakesTheCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		servers := w.start(t, 3)
		if n := w.written(); n != 1 {
			t.Errorf("the Secret was written %d times", n)
		}
		w.check(t, "at the beginning", servers...)
	})
}

func TestABundleThatIsTakenAwayComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.start(t, 1)[0]
		want := w.caBundle(t)
		for _, bundle := range []string{"", base64.StdEncoding.EncodeToString([]byte("another"))} {
			patch := []byte(`{"spec":{"caBundle":"` + bundle + `"}}`)
			if _, err := w.dynamic.Resource(apiServices).Patch(t.Context(), apiServiceName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if !bytes.Equal(w.caBundle(t), want) {
				t.Errorf("in place of %q: %q", bundle, w.caBundle(t))
			}
		}
		w.check(t, "at the end", s)
	})
}

func TestAnAPIServiceThatComesLaterIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		object, err := w.dynamic.Resource(apiServices).Get(t.Context(), apiServiceName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.dynamic.Resource(apiServices).Delete(t.Context(), apiServiceName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s := w.start(t, 1)[0]
		if len(s.pair().Cert) == 0 {
			t.Fatal("without an APIService there is no certificate")
		}
		if _, err := w.dynamic.Resource(apiServices).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.check(t, "with an APIService", s)
	})
}

func TestASecretThatIsEmptiedIsFilledAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.start(t, 1)[0]
		first := s.pair()
		if _, err := w.kube.CoreV1().Secrets(secretName.Namespace).Update(t.Context(), emptySecret("1"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.check(t, "at the end", s)
		if trusts(t, State{Bundle: w.caBundle(t)}, first) {
			t.Error("the former certificate is trusted still")
		}
	})
}

func TestAServerKeepsItsCertificateWhenItCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var isReadOnly atomic.Bool
		w.kube.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return isReadOnly.Load(), nil, errors.New("no")
		})
		first := w.start(t, 1)[0].pair()
		isReadOnly.Store(true)
		pass(validity * 3 / 4)
		late := w.start(t, 1)[0]
		if !late.pair().Equal(first) {
			t.Error("a server that begins when a successor is due has no certificate")
		}
	})
}

func TestWithoutASecretThereIsNoCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		if err := w.kube.CoreV1().Secrets(secretName.Namespace).Delete(t.Context(), secretName.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		m, err := NewManager(Config{Policy: policy, Secret: secretName, APIService: apiServiceName, Kube: w.kube, Dynamic: w.dynamic})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := m.RunOnce(ctx); err == nil {
			t.Error("there is")
		}
		if cert, key := m.CurrentCertKeyContent(); cert != nil || key != nil {
			t.Error("it is presented")
		}
		cancel()
		m.Run(ctx, 1)
	})
}
