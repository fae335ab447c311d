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

package lifecycle

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"

	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/objects"
)

// shortest has a certificate due for renewal when it is made: it is dated back by an hour.
const shortest = "65m"

func TestClientsDoNotNoticeARenewalAndOutliveALeak(t *testing.T) {
	values := valuesOf(newVersion(), read, dry, busy)
	values["certificates"] = map[string]any{"validity": shortest}
	p := installed(t, newVersion(), values)
	p.awaitAvailable(t)
	pods := p.awaitOnly(t, newVersion().image())
	l := p.startLoad(t)
	l.awaitAnswers(t, 2)

	leaked := p.bundle(t)
	began := time.Now()
	p.kubectl(t, "patch", "secret", servingSecret, "--namespace", namespace, "--type=json", "-p", `[{"op":"remove","path":"/data"}]`)
	took := await.For(t, "a caBundle without what leaked", func(ctx context.Context) error {
		bundle, err := p.readBundle(ctx)
		if err == nil && (len(bundle) == 0 || slices.ContainsFunc(bundle, func(c *x509.Certificate) bool { return contains(leaked, c) })) {
			err = fmt.Errorf("%d certificates", len(bundle))
		}
		return err
	})
	served := await.For(t, "requests to be answered", func(ctx context.Context) error {
		_, err := p.images.List(ctx, metav1.ListOptions{})
		return err
	})
	back := time.Now()
	t.Logf("a new certificate after %v, answers after %v", took, took+served)
	if away := back.Sub(began); away > 10*time.Second {
		t.Errorf("clients were not answered for %v", away)
	}
	l.awaitAnswers(t, 2)
	for _, f := range l.failuresAfter(time.Time{}) {
		t.Logf("after %v, %s: %v", f.at.Sub(began), f.what, f.err)
		if f.at.After(back.Add(time.Second)) {
			t.Errorf("%s still failed after %v: %v", f.what, f.at.Sub(began), f.err)
		}
	}

	p.awaitRenewal(t, pods)
	l.check(t, "renewal")

	p.kubectl(t, "patch", "apiservice", apiService, "--type=json", "-p", `[{"op":"remove","path":"/spec/caBundle"}]`)
	took = await.For(t, "the caBundle to be back", func(ctx context.Context) error {
		bundle, err := p.readBundle(ctx)
		if err == nil && len(bundle) == 0 {
			err = errors.New("it is empty")
		}
		return err
	})
	t.Logf("a caBundle after %v", took)
	p.awaitAvailable(t)
	l.checkInformers(t)
	p.checkLogs(t)
}

// awaitRenewal waits until each of the pods presents another certificate than it does now.
func (p *platform) awaitRenewal(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	before := make([]string, len(pods))
	var err error
	for i := range pods {
		if before[i], err = p.servingSerial(t.Context(), &pods[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range pods {
		took := await.For(t, pods[i].Name+" to have another certificate", func(ctx context.Context) error {
			now, err := p.servingSerial(ctx, &pods[i])
			if err == nil && now == before[i] {
				err = errors.New("it has the old one")
			}
			return err
		})
		t.Logf("%s has another certificate after %v", pods[i].Name, took.Round(time.Second))
	}
}

// servingSerial tells the certificate that a pod presents from others.
func (p *platform) servingSerial(ctx context.Context, pod *corev1.Pod) (string, error) {
	config := p.PodConfig(pod.Status.PodIP, servingPort)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	// Each call makes a connection of its own.
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	return response.TLS.PeerCertificates[0].SerialNumber.String(), nil
}

// servingCertificate is the one that the servers share.
func (p *platform) servingCertificate(t *testing.T) string {
	t.Helper()
	secret, err := p.kube.CoreV1().Secrets(namespace).Get(t.Context(), servingSecret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[corev1.TLSCertKey])
}

// bundle is whom clients of the server trust.
func (p *platform) bundle(t *testing.T) []*x509.Certificate {
	t.Helper()
	bundle, err := p.readBundle(t.Context())
	if err != nil || len(bundle) == 0 {
		t.Fatalf("%d certificates in the caBundle, %v", len(bundle), err)
	}
	return bundle
}

func (p *platform) readBundle(ctx context.Context) ([]*x509.Certificate, error) {
	object, err := p.Resource(objects.APIServices, "").Get(ctx, apiService, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	text, found, err := unstructured.NestedString(object.Object, "spec", "caBundle")
	if err != nil || !found {
		return nil, err
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return certutil.ParseCertsPEM(content)
}

func contains(all []*x509.Certificate, one *x509.Certificate) bool {
	return slices.ContainsFunc(all, one.Equal)
}
