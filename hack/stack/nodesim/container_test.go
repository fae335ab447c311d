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

package nodesim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cozystack/workerimage-apiserver/hack/stack/process"
)

const (
	// addressEnv makes the test binary a server at an address.
	addressEnv = "NODESIM_TEST_ADDRESS"
	// stubbornEnv makes it one that is not told to end.
	stubbornEnv = "NODESIM_TEST_STUBBORN"

	patience = 30 * time.Second
)

func TestMain(m *testing.M) {
	if address := os.Getenv(addressEnv); address != "" {
		serve(address)
		return
	}
	os.Exit(m.Run())
}

// serve answers until it is told to end. Asked for /crash, it crashes.
func serve(address string) {
	if os.Getenv(stubbornEnv) != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	http.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: address, ReadHeaderTimeout: patience}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

func TestAContainerIsReadyWhenItsProbeSaysSo(t *testing.T) {
	c := start(t, "127.77.255.253")
	awaitCondition(t, c, "to be ready", func(now condition) bool { return now.running && now.started && now.ready })
	c.leave(patience)
	awaitGone(t, c)
}

func TestAContainerThatCrashesIsRunAgain(t *testing.T) {
	c := start(t, "127.77.255.252")
	awaitCondition(t, c, "to be ready", func(now condition) bool { return now.ready })
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if response, err := client.Get("http://127.77.255.252:18080/crash"); err == nil {
		response.Body.Close()
		t.Fatal("it has not crashed")
	}
	awaitCondition(t, c, "to be ready again", func(now condition) bool { return now.ready && now.restarts == 1 })
}

func TestAContainerThatDoesNotLeaveIsKilledWhenItsGraceIsOver(t *testing.T) {
	c := start(t, "127.77.255.251", stubbornEnv+"=yes")
	awaitCondition(t, c, "to be ready", func(now condition) bool { return now.ready })
	c.leave(time.Second)
	awaitGone(t, c)
}

// start runs the test binary as a container until the test ends.
func start(t *testing.T, address string, env ...string) *container {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	probe := &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 60, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTP, Path: "/readyz", Port: intstr.FromInt32(18080)},
	}}
	spec := corev1.Container{StartupProbe: probe, ReadinessProbe: probe, LivenessProbe: probe}
	c := startContainer(t.Context(), spec, address, process.Spec{
		Name: t.Name(), Path: self, Env: append(env, addressEnv+"="+address+":18080"),
	}, filepath.Join(t.TempDir(), "log"))
	t.Cleanup(c.kill)
	return c
}

func awaitCondition(t *testing.T, c *container, what string, holds func(condition) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), tick, patience, true, func(context.Context) (bool, error) {
		return holds(c.current()), nil
	})
	if err != nil {
		log, readErr := os.ReadFile(c.log)
		t.Fatalf("wait for it %s: it is %+v, and says %s", what, c.current(), errors.Join(fmt.Errorf("%s", log), readErr))
	}
}

func awaitGone(t *testing.T, c *container) {
	t.Helper()
	select {
	case <-c.gone:
	case <-time.After(patience):
		t.Fatal("it is still there")
	}
}
