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

package precompressed

import (
	"context"
	"io"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/apiserver/pkg/features"
)

const (
	// threshold is the size up to which upstream sends answers as they are.
	threshold = 128 << 10
	// firstWrite is what keeps upstream from compressing: it takes a first write of that size for a small answer, and
	// one that is even smaller for the beginning of a stream.
	firstWrite = 64
)

// Body is an encoding, as it is and compressed. It must not be modified.
type Body interface {
	Body() []byte
	Gzip() []byte
}

// Handler lets lists be answered with what was compressed before. It belongs around the handler of the API, inside of
// all others.
func Handler(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || info.Verb != "list" || responsewriters.ContentEncodingSupported(r, features.APIResponseCompression) != "gzip" {
			api.ServeHTTP(w, r)
			return
		}
		a := &Answer{inner: w}
		api.ServeHTTP(responsewriter.WrapForHTTP1Or2(a), r.WithContext(context.WithValue(r.Context(), answerKey{}, a)))
		a.begin()
	})
}

type answerKey struct{}

// AnswerTo returns the answer to the request of a context; nil where the client is to be sent what is not compressed,
// or nobody listens.
func AnswerTo(ctx context.Context) *Answer {
	a, _ := ctx.Value(answerKey{}).(*Answer)
	return a
}

// Answer is the answer to a list. Once a body was offered, the header waits for the first part of what is sent.
type Answer struct {
	inner   http.ResponseWriter
	offered Body
	status  int
	// skip is what is still to come of a body that was sent compressed.
	skip int
}

var _ responsewriter.UserProvidedDecorator = &Answer{}

// Encode writes a body into w, as an encoder does, and offers it compressed.
func (a *Answer) Encode(w io.Writer, body Body) error {
	plain := body.Body()
	if a == nil || len(plain) <= threshold {
		_, err := w.Write(plain)
		return err
	}
	a.offered = body
	if _, err := w.Write(plain[:firstWrite]); err != nil {
		return err
	}
	_, err := w.Write(plain[firstWrite:])
	return err
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (a *Answer) Unwrap() http.ResponseWriter { return a.inner }

// Header implements http.ResponseWriter.
func (a *Answer) Header() http.Header { return a.inner.Header() }

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) {
	a.status = status
	if a.offered == nil {
		a.begin()
	}
}

// begin sends the header that waits, if one does.
func (a *Answer) begin() {
	if a.status != 0 {
		a.inner.WriteHeader(a.status)
	}
	a.status, a.offered = 0, nil
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(p []byte) (int, error) {
	if a.skip > 0 {
		a.skip -= len(p)
		return len(p), nil
	}
	body := a.offered
	if body == nil || !begins(body.Body(), p) {
		a.begin()
		return a.inner.Write(p)
	}
	a.Header().Set("Content-Encoding", "gzip")
	a.Header().Add("Vary", "Accept-Encoding")
	a.begin()
	a.skip = len(body.Body()) - len(p)
	if _, err := a.inner.Write(body.Gzip()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// begins is true if p is the very memory that body begins with, as Encode writes it, and not a copy, which may go on
// differently.
func begins(body, p []byte) bool {
	return len(p) == firstWrite && &p[0] == &body[0]
}
