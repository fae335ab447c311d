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

package precompressed_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/cozystack/workerimage-apiserver/pkg/registry/precompressed"
)

// body counts how often its compressed form is used.
type body struct {
	plain, gzip []byte
	used        int
}

func (b *body) Body() []byte { return b.plain }

func (b *body) Gzip() []byte { b.used++; return b.gzip }

func newBody(t *testing.T, size int) *body {
	t.Helper()
	b := &body{plain: []byte(strings.Repeat("a list ", size/7+1)[:size])}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b.plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b.gzip = out.Bytes()
	return b
}

// encoder writes a body for every object.
type encoder struct {
	runtime.Encoder
	encode func(w io.Writer) error
}

func (e encoder) Encode(_ runtime.Object, w io.Writer) error { return e.encode(w) }

func (encoder) Identifier() runtime.Identifier { return "test" }

// serve answers a request as k8s.io/apiserver does.
func serve(t *testing.T, verb, accepts string, encode func(*precompressed.Answer) func(io.Writer) error) *http.Response {
	t.Helper()
	api := precompressed.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := encoder{encode: encode(precompressed.AnswerTo(r.Context()))}
		responsewriters.SerializeObject("application/json", e, w, r, http.StatusOK, nil)
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", accepts)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), &request.RequestInfo{Verb: verb, IsResourceRequest: true})))
	return w.Result()
}

const (
	large = 300 << 10
	small = 128 << 10
)

func TestAListIsSentAsItWasCompressedBefore(t *testing.T) {
	for _, test := range []struct {
		name, verb, accepts string
		size                int
		gzip                bool
		used                int
	}{
		{"a large list to a client that accepts gzip", "list", "gzip", large, true, 1},
		{"a large list to a client that accepts other encodings as well", "list", "br, gzip", large, true, 1},
		{"a large list to a client that accepts none", "list", "", large, false, 0},
		{"a large list to a client that accepts another", "list", "br", large, false, 0},
		{"a small list", "list", "gzip", small, false, 0},
		{"an empty body", "list", "gzip", 0, false, 0},
		{"what is no list is compressed anew", "get", "gzip", large, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBody(t, test.size)
			got := serve(t, test.verb, test.accepts, func(a *precompressed.Answer) func(io.Writer) error {
				return func(w io.Writer) error { return a.Encode(w, b) }
			})
			check(t, got, test.gzip, b.plain)
			if b.used != test.used {
				t.Errorf("the compressed form was used %d times", b.used)
			}
		})
	}
}

// Guards: that nobody but the client is sent what is compressed, and the client only that.
func TestWhoElseReadsTheEncodingReadsItAsItIs(t *testing.T) {
	b, other := newBody(t, large), strings.Repeat("another ", large/8)
	t.Run("an audit log", func(t *testing.T) {
		var audited bytes.Buffer
		got := serve(t, "list", "gzip", func(a *precompressed.Answer) func(io.Writer) error {
			return func(w io.Writer) error {
				if err := a.Encode(&audited, b); err != nil {
					return err
				}
				return a.Encode(w, b)
			}
		})
		check(t, got, true, b.plain)
		if !bytes.Equal(audited.Bytes(), b.plain) {
			t.Error("it is not what was encoded")
		}
	})
	t.Run("and the client something else", func(t *testing.T) {
		got := serve(t, "list", "gzip", func(a *precompressed.Answer) func(io.Writer) error {
			return func(w io.Writer) error {
				if err := a.Encode(io.Discard, b); err != nil {
					return err
				}
				_, err := io.WriteString(w, other)
				return err
			}
		})
		check(t, got, true, []byte(other))
	})
	t.Run("and the client a copy of its beginning, and something else", func(t *testing.T) {
		got := serve(t, "list", "gzip", func(a *precompressed.Answer) func(io.Writer) error {
			return func(w io.Writer) error {
				if err := a.Encode(io.Discard, b); err != nil {
					return err
				}
				if _, err := w.Write(bytes.Clone(b.plain[:64])); err != nil {
					return err
				}
				_, err := io.WriteString(w, other)
				return err
			}
		})
		check(t, got, false, append(bytes.Clone(b.plain[:64]), other...))
	})
	if b.used != 1 {
		t.Errorf("the compressed form was used %d times", b.used)
	}
}

func TestAnErrorAfterAnOfferIsSent(t *testing.T) {
	b := newBody(t, large)
	got := serve(t, "list", "gzip", func(a *precompressed.Answer) func(io.Writer) error {
		return func(w io.Writer) error {
			if err := a.Encode(io.Discard, b); err != nil {
				return err
			}
			return runtime.NewNotRegisteredErrForKind("test", schema.GroupVersionKind{Kind: "Nothing"})
		}
	})
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != http.StatusInternalServerError || !strings.Contains(string(text), "Nothing") || got.Header.Get("Content-Encoding") != "" {
		t.Errorf("the answer is %d %v: %s", got.StatusCode, got.Header, text)
	}
}

func check(t *testing.T, got *http.Response, compressed bool, want []byte) {
	t.Helper()
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the answer is %d %v", got.StatusCode, got.Header)
	}
	var content io.Reader = got.Body
	if compressed {
		if got.Header.Get("Content-Encoding") != "gzip" || got.Header.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("the header is %v", got.Header)
		}
		unpacked, err := gzip.NewReader(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		content = unpacked
	} else if got.Header.Get("Content-Encoding") != "" {
		t.Fatalf("the header is %v", got.Header)
	}
	read, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read, want) {
		t.Errorf("%d bytes were sent, not the %d that were encoded", len(read), len(want))
	}
}
