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
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// backdating is how long before it is made a certificate begins to be valid.
const backdating = time.Hour

// MinValidity leaves a certificate the time that its successor takes.
const MinValidity = backdating + 5*time.Minute

// DefaultSettling is many times what an API server needs to learn of a new bundle.
const DefaultSettling = 30 * time.Second

// Pair is a certificate followed by its authority, and the key of the certificate, in PEM.
type Pair struct {
	Cert, Key []byte
}

// State is what servers share.
type State struct {
	// Serving is in use.
	Serving Pair
	// Next is announced, and will be in use. It is empty most of the time.
	Next Pair
	// Bundle holds the authorities that clients must trust.
	Bundle []byte
}

// Policy says which certificates there are to be.
type Policy struct {
	// Names are those under which clients know the servers.
	Names []string
	// Validity of a certificate. It is renewed when a third of it is left.
	Validity time.Duration
	// Settling is how long a bundle must have been announced before a certificate that needs it is used.
	Settling time.Duration
}

// Advance returns the state that follows a state, and when another one does; that is zero where it is not time that
// decides. The bundle of the given state has been announced since a point in time, or has not been yet if that is zero.
func (p Policy) Advance(s State, announced, now time.Time) (State, time.Time, error) {
	serving, servingErr := p.check(s.Serving, now)
	next, nextErr := p.check(s.Next, now)
	settled := !announced.IsZero() && now.Sub(announced) >= p.Settling
	var err error
	switch {
	case nextErr == nil && (settled || servingErr != nil):
		s.Serving, serving = s.Next, next
		s.Next, next = Pair{}, nil
	case servingErr != nil:
		s.Serving, serving, err = p.issue(now)
	case nextErr != nil && !now.Before(serving.renewal()):
		s.Next, next, err = p.issue(now)
	case nextErr != nil:
		s.Next = Pair{}
	}
	if err != nil {
		return State{}, time.Time{}, err
	}
	if s.Bundle, err = bundle(s.Bundle, now, serving, next); err != nil {
		return State{}, time.Time{}, err
	}
	switch {
	case next == nil:
		return s, serving.renewal(), nil
	case announced.IsZero():
		return s, time.Time{}, nil
	default:
		return s, announced.Add(p.Settling), nil
	}
}

// chain is a pair that is fit to be used.
type chain struct {
	leaf, authority *x509.Certificate
}

// renewal is when a successor is due.
func (c *chain) renewal() time.Time {
	return c.leaf.NotAfter.Add(-c.leaf.NotAfter.Sub(c.leaf.NotBefore) / 3)
}

// check returns why a pair cannot be used now.
func (p Policy) check(pair Pair, now time.Time) (*chain, error) {
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		return nil, err
	}
	certs, err := certutil.ParseCertsPEM(pair.Cert)
	if err != nil {
		return nil, err
	}
	if len(certs) != 2 {
		return nil, fmt.Errorf("%d certificates where there should be one and its authority", len(certs))
	}
	roots := x509.NewCertPool()
	roots.AddCert(certs[1])
	for _, name := range p.Names {
		if _, err := certs[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return nil, err
		}
	}
	return &chain{leaf: certs[0], authority: certs[1]}, nil
}

// issue makes a pair, from an authority that is of no further use.
func (p Policy) issue(now time.Time) (Pair, *chain, error) {
	if len(p.Names) == 0 {
		return Pair{}, nil, errors.New("make a serving certificate: no name to make it for")
	}
	cert, key, err := certutil.GenerateSelfSignedCertKeyWithOptions(certutil.SelfSignedCertKeyOptions{
		Host:         p.Names[0],
		AlternateDNS: p.Names[1:],
		MaxAge:       p.Validity,
	})
	if err != nil {
		return Pair{}, nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	pair := Pair{Cert: cert, Key: key}
	made, err := p.check(pair, now)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	return pair, made, nil
}

// bundle returns the authorities of what is used, and those of before that are still valid: until then somebody may use
// what they have signed.
func bundle(before []byte, now time.Time, used ...*chain) ([]byte, error) {
	var authorities []*x509.Certificate
	for _, c := range used {
		if c != nil {
			authorities = append(authorities, c.authority)
		}
	}
	// What cannot be read is trusted by nobody.
	former, _ := certutil.ParseCertsPEM(before)
	for _, authority := range former {
		isKnown := slices.ContainsFunc(authorities, authority.Equal)
		if !isKnown && now.Before(authority.NotAfter) {
			authorities = append(authorities, authority)
		}
	}
	return certutil.EncodeCertificates(authorities...)
}

// Equal is true if both are the same, byte by byte.
func (p Pair) Equal(other Pair) bool {
	return bytes.Equal(p.Cert, other.Cert) && bytes.Equal(p.Key, other.Key)
}
