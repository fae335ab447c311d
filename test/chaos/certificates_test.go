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

package chaos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/hack/stack/pki"
	"github.com/cozystack/workerimage-apiserver/test/await"
	"github.com/cozystack/workerimage-apiserver/test/stack"
)

// shortest has a certificate due for renewal when it is made: it is dated back by an hour.
const shortest = "--serving-validity=65m"

func TestServingCertificatesAreRotated(t *testing.T) {
	s, err := shared.start(stack.Options{KindsOnly: true, Replicas: 2, ServerArgs: []string{shortest}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	p := newPlatform(t, s)
	users := p.look(t, workerImages)
	for round := range 2 {
		before := make([]string, p.Replicas())
		for i := range before {
			if before[i], err = p.servingSerial(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		for i, serial := range before {
			await.For(t, fmt.Sprintf("replica %d to have its certificate %d", i, round+2), func(ctx context.Context) error {
				now, err := p.servingSerial(ctx, i)
				if err == nil && now == serial {
					err = errors.New("it has the old one")
				}
				return err
			})
		}
	}
	users.check(t, "a list of images", http.StatusOK)
	p.Balancer().Spread()
	p.Balancer().Cut()
	p.awaitServed(t)
}

// awaitAsked waits until the onlooker has asked once more.
func (p *platform) awaitAsked(t *testing.T, o *onlooker) {
	t.Helper()
	count := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.answers)
	}
	before := count()
	await.For(t, "another answer", func(context.Context) error {
		if count() == before {
			return errors.New("there is none")
		}
		return nil
	})
}

// servingSerial tells the certificate of a replica from others.
func (p *platform) servingSerial(ctx context.Context, replica int) (string, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(p.ReplicaConfig(replica).Host, "https://"))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

func TestAuthoritiesAreRotated(t *testing.T) {
	p := singleServer(t)
	p.populate(t)
	users, others := p.look(t, workerImages), p.look(t, otherKind)
	rotate := func(who, file, user string, groups []string, header map[string]string) pki.KeyPair {
		authority := newAuthority(t)
		pair, err := authority.Issue(user, groups)
		if err != nil {
			t.Fatal(err)
		}
		if p.present(t.Context(), pair, header) == nil {
			t.Errorf("%s of an authority that nobody knows is let in", who)
		}
		p.trust(t, authority, file)
		began := time.Now()
		p.awaitAccepted(t, who, pair, header)
		shared.figures.note(t, "until "+who+" of a new authority is known", "%v", rounded(time.Since(began)))
		return pair
	}
	rotate("a client", "ca.crt", "someone-new", []string{"system:masters"}, nil)
	proxy := rotate("a front proxy", "front-proxy-ca.crt", "front-proxy-client", nil,
		map[string]string{"X-Remote-User": "someone", "X-Remote-Group": "system:masters"})

	// From here on kube-apiserver connects with a certificate of the new authority.
	p.replaceFile(t, "front-proxy.key", proxy.Key)
	p.replaceFile(t, "front-proxy.crt", proxy.Cert)
	p.awaitAsked(t, users)
	if err := p.Processes().Restart("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	users.stop()
	others.stop()
	p.awaitServed(t)
	for _, o := range []*onlooker{users, others} {
		for _, a := range o.answers {
			if a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		}
	}
	p.awaitHealthy(t)
	p.checkNothingLost(t)
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	authority, err := pki.NewAuthority("chaos")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// trust has kube-apiserver trust an authority besides those in a file of the stack.
func (p *platform) trust(t *testing.T, authority *pki.Authority, name string) {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	p.replaceFile(t, name, append(before, authority.Cert...))
}

// replaceFile changes a file of the stack in one step.
func (p *platform) replaceFile(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join(p.Dir, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// awaitAccepted waits until the server lets somebody in who comes to it with a certificate, past kube-apiserver.
func (p *platform) awaitAccepted(t *testing.T, who string, pair pki.KeyPair, header map[string]string) {
	t.Helper()
	await.For(t, who+" to be let in", func(ctx context.Context) error { return p.present(ctx, pair, header) })
}

// present returns an error unless the server lets somebody in who comes to it with a certificate, past kube-apiserver.
func (p *platform) present(ctx context.Context, pair pki.KeyPair, header map[string]string) error {
	config := rest.CopyConfig(p.ReplicaConfig(0))
	config.CertData, config.KeyData = pair.Cert, pair.Key
	// A connection keeps what was known of its client when it was made.
	config.Dial = (&net.Dialer{}).DialContext
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withHeader{next, header} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+workerImages, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(response.Body)
		return errors.Join(fmt.Errorf("%s: %s", response.Status, body), err)
	}
	return nil
}

// withHeader adds to the header of each request.
type withHeader struct {
	next   http.RoundTripper
	header map[string]string
}

func (w withHeader) RoundTrip(request *http.Request) (*http.Response, error) {
	for name, value := range w.header {
		request.Header.Set(name, value)
	}
	return w.next.RoundTrip(request)
}
