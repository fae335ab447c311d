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

// server serves the picker's page, and passes what the page asks of Kubernetes on to an API server as the user of a
// kubeconfig.
//
//	server --kubeconfig FILE [--page DIR] [--port PORT]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct {
	kubeconfig string
	page       string
	port       int
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig of the user that the page acts as, in the namespace of its context")
	flag.StringVar(&o.page, "page", "examples/picker/dist", "directory of the built page")
	flag.IntVar(&o.port, "port", 0, "port on 127.0.0.1; 0 takes a free one")
	flag.Parse()

	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "picker:", err)
		os.Exit(1)
	}
}

// run serves until it is interrupted. It listens on the loopback address only: whoever can connect acts as the user.
func run(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := os.Stat(filepath.Join(o.page, "index.html")); err != nil {
		return fmt.Errorf("the page is not built: %w", err)
	}
	config, namespace, err := readKubeconfig(o.kubeconfig)
	if err != nil {
		return err
	}
	handler, err := newHandler(config, namespace, http.Dir(o.page))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	fmt.Fprintf(os.Stdout, "As in %s: http://%s/\nCtrl-C ends it.\n", namespace, address)

	server := &http.Server{Handler: sameOrigin(address, handler), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func readKubeconfig(path string) (*rest.Config, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	namespace, _, err := loader.Namespace()
	return config, namespace, err
}
