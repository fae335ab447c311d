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

package model

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/pkg/apiserver"
	generatedopenapi "github.com/cozystack/workerimage-apiserver/pkg/generated/openapi"
)

// window is how many events each kind keeps: few, so that watches are overtaken and lists of the past expire.
const window = 8

// server is the real one, except that nobody connects to its socket: requests are handed to its handler.
type server struct {
	handler http.Handler
	// connect begins a request. All requests end with the server, as connections do.
	connect func() (context.Context, context.CancelFunc)
	end     context.CancelFunc
	running sync.WaitGroup
	err     error
}

// serve starts a server on the inputs.
func serve(in *inputs, access *access) (*server, error) {
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapi.NewDefinitionNamer(apiserver.Scheme)
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.SkipOpenAPIInstallation = true
	generic.LoopbackClientConfig = &rest.Config{}
	generic.ExternalAddress = "model:443"
	generic.SecureServing = &genericapiserver.SecureServingInfo{Listener: newIdleListener()}
	generic.Authentication.Authenticator = authenticator.RequestFunc(authenticate)
	generic.Authorization.Authorizer = access.authorizer()
	config := apiserver.Config{
		Generic: generic,
		Extra: apiserver.ExtraConfig{
			Sources:          in.sources(),
			GoldensNamespace: goldensNamespace,
			Platform:         platform,
			Catalog:          catalogName,
			CatalogKey:       catalogKey,
			Window:           window,
		},
	}
	served, err := config.Complete().New()
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	s := &server{
		handler: served.Generic.Handler,
		connect: func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
		end:     end,
	}
	s.running.Go(func() { s.err = served.Run(ctx) })
	return s, nil
}

// stop returns when nothing runs any more.
func (s *server) stop() error {
	s.end()
	s.running.Wait()
	return s.err
}

// authenticate takes the bearer token for the user's name.
func authenticate(req *http.Request) (*authenticator.Response, bool, error) {
	name, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}}, ok, nil
}

// request starts a request. The server is held back while that many chunks of the answer wait to be read, unless
// it is zero.
func (s *server) request(caller, url string, limit int) (*stream, error) {
	ctx, cancel := s.connect()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://model"+url, http.NoBody)
	if err != nil {
		cancel()
		return nil, err
	}
	req.RequestURI = url
	req.Proto, req.ProtoMajor, req.ProtoMinor = "HTTP/2.0", 2, 0
	req.RemoteAddr = "192.0.2.1:1"
	req.Header.Set("Authorization", "Bearer "+caller)
	req.Header.Set("Accept", "application/json")
	out := newStream(ctx.Done(), cancel, limit)
	s.running.Go(func() {
		defer out.finish()
		s.handler.ServeHTTP(out, req)
	})
	return out, nil
}

// idleListener is a listener to which nobody connects.
type idleListener struct {
	closed chan struct{}
	close  sync.Once
}

func newIdleListener() *idleListener { return &idleListener{closed: make(chan struct{})} }

func (l *idleListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *idleListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

func (l *idleListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 443} }
