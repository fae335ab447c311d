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
	"crypto/x509"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

const (
	validity = 6 * 24 * time.Hour
	settling = time.Minute
)

var policy = Policy{Names: []string{"images.cozy-system.svc", "images"}, Validity: validity, Settling: settling}

// advance goes on from a state at this moment.
func advance(t *testing.T, s State, announced time.Time) (State, time.Time) {
	t.Helper()
	following, again, err := policy.Advance(s, announced, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return following, again
}

// pass lets time go by, and what is due by then happen. It works in a bubble of synctest alone.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// begin returns the state that follows from nothing.
func begin(t *testing.T) State {
	t.Helper()
	s, _ := advance(t, State{}, time.Time{})
	return s
}

// announceNext returns a state in which a successor has been made.
func announceNext(t *testing.T) State {
	t.Helper()
	s, again := advance(t, begin(t), time.Time{})
	pass(time.Until(again))
	s, _ = advance(t, s, time.Now().Add(-validity/3))
	if len(s.Next.Cert) == 0 {
		t.Fatal("there is no successor")
	}
	return s
}

// trusts is true if clients that trust the bundle of a state take a certificate for the servers'.
func trusts(t *testing.T, s State, pair Pair) bool {
	t.Helper()
	certs, err := certutil.ParseCertsPEM(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.Bundle)
	for _, name := range policy.Names {
		if _, err := certs[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: time.Now()}); err != nil {
			return false
		}
	}
	return true
}

func authorities(t *testing.T, s State) int {
	t.Helper()
	certs, err := certutil.ParseCertsPEM(s.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	return len(certs)
}

func equal(a, b State) bool {
	return a.Serving.Equal(b.Serving) && a.Next.Equal(b.Next) && slices.Equal(a.Bundle, b.Bundle)
}

func TestTheFirstCertificateIsTrustedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t)
		if !trusts(t, s, s.Serving) || len(s.Next.Cert) > 0 || authorities(t, s) != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestNothingChangesUntilAThirdIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := begin(t)
		announced := time.Now()
		s, again := advance(t, first, announced)
		if !equal(s, first) {
			t.Error("it has changed at once")
		}
		if left := announced.Add(validity - backdating).Sub(again); left != validity/3 {
			t.Errorf("looks again when %v is left", left)
		}
		pass(time.Until(again) - time.Second)
		if s, _ = advance(t, first, announced); !equal(s, first) {
			t.Error("it has changed too early")
		}
	})
}

func TestASuccessorIsAnnouncedBeforeItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := announceNext(t)
		if !trusts(t, before, before.Serving) || !trusts(t, before, before.Next) {
			t.Fatal("the bundle does not hold both authorities")
		}
		s, again := advance(t, before, time.Time{})
		if !equal(s, before) || !again.IsZero() {
			t.Errorf("without having been announced, it changes or looks again at %v", again)
		}
		announced := time.Now()
		s, again = advance(t, before, announced)
		if !equal(s, before) || again != announced.Add(settling) {
			t.Errorf("just announced, it changes or looks again at %v", again)
		}
		pass(settling)
		s, _ = advance(t, before, announced)
		if !s.Serving.Equal(before.Next) || len(s.Next.Cert) > 0 {
			t.Error("the successor is not used")
		}
		if !trusts(t, s, before.Serving) || !trusts(t, s, s.Serving) {
			t.Error("servers that have not seen the change, or those that have, are not trusted")
		}
	})
}

func TestAnAuthorityLeavesTheBundleWhenItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		announced := announceNext(t)
		pass(settling)
		s, _ := advance(t, announced, time.Now().Add(-settling))
		pass(validity/3 - 2*settling)
		if s, _ = advance(t, s, time.Now()); authorities(t, s) != 2 {
			t.Errorf("%d authorities before the first has expired", authorities(t, s))
		}
		pass(2 * settling)
		if s, _ = advance(t, s, time.Now()); authorities(t, s) != 1 {
			t.Errorf("%d authorities after the first has expired", authorities(t, s))
		}
	})
}

func TestWhatIsOfNoUseIsReplacedAtOnce(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(s *State, other State)
	}{
		{"a certificate without its key", func(s *State, _ State) { s.Serving.Key = nil }},
		{"a key of another certificate", func(s *State, other State) { s.Serving.Key = other.Serving.Key }},
		{"what is no certificate", func(s *State, _ State) { s.Serving.Cert = []byte("certificate") }},
		{"a certificate without its authority", func(s *State, _ State) {
			certs, _ := certutil.ParseCertsPEM(s.Serving.Cert)
			s.Serving.Cert, _ = certutil.EncodeCertificates(certs[0])
		}},
		{"a certificate for other names", func(s *State, _ State) {
			other := Policy{Names: []string{"other"}, Validity: validity}
			s.Serving, _, _ = other.issue(time.Now())
		}},
		{"a certificate that has expired", func(*State, State) { pass(validity) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t)
				test.spoil(&s, begin(t))
				following, _ := advance(t, s, time.Now())
				if following.Serving.Equal(s.Serving) || !trusts(t, following, following.Serving) {
					t.Error("it is not replaced by one that is trusted")
				}
				if len(following.Next.Cert) > 0 {
					t.Error("there is a successor already")
				}
			})
		})
	}
}

func TestTheSuccessorStepsInForACertificateOfNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := announceNext(t)
		spoilt := before
		spoilt.Serving = Pair{}
		if s, _ := advance(t, spoilt, time.Time{}); !s.Serving.Equal(before.Next) {
			t.Error("it does not")
		}
	})
}

func TestASuccessorOfNoUseIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := announceNext(t)
		spoilt := before
		spoilt.Next.Key = nil
		s, _ := advance(t, spoilt, time.Now().Add(-settling))
		if !s.Serving.Equal(before.Serving) || s.Next.Equal(before.Next) || !trusts(t, s, s.Next) {
			t.Error("it is not")
		}
	})
}

func TestASuccessorThatCameTooEarlyAndIsOfNoUseIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := begin(t)
		spoilt := before
		spoilt.Next.Cert = []byte("certificate")
		if s, _ := advance(t, spoilt, time.Now()); !equal(s, before) {
			t.Error("it is not")
		}
	})
}

func TestABundleThatCannotBeReadIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := begin(t)
		spoilt := before
		spoilt.Bundle = []byte("bundle")
		if s, _ := advance(t, spoilt, time.Now()); !equal(s, before) {
			t.Error("it is not")
		}
	})
}

func TestServersComeToTheSameConclusion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := announceNext(t)
		pass(settling)
		one, _ := advance(t, before, time.Now().Add(-settling))
		other, _ := advance(t, before, time.Now().Add(-2*settling))
		if !equal(one, other) {
			t.Error("they do not")
		}
	})
}

func TestNoCertificateIsMadeForNobody(t *testing.T) {
	if _, _, err := (Policy{Validity: validity}).Advance(State{}, time.Time{}, time.Now()); err == nil {
		t.Error("there is one")
	}
}
