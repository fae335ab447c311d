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
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestAProbeCountsWhenEnoughAnswersAreTheSame(t *testing.T) {
	probe := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	counter := newCounter(probe, true)
	const yes, no = true, false
	var got []string
	for _, answer := range []bool{no, no, yes, no, no, no, yes, no, yes, yes} {
		result, counts := counter.count(answer)
		switch {
		case !counts:
			got = append(got, "-")
		case result:
			got = append(got, "well")
		default:
			got = append(got, "ill")
		}
	}
	want := []string{"-", "-", "-", "-", "-", "ill", "-", "-", "-", "well"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAProbeAsksTheNamedPortWithoutLookingAtTheCertificate(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/readyz" {
			t.Errorf("asked for %s", request.URL.Path)
		}
		w.WriteHeader(status)
	}))
	server.TLS = &tls.Config{}
	server.StartTLS()
	defer server.Close()
	host, portText, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	container := corev1.Container{Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: int32(port)}}}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Scheme: corev1.URISchemeHTTPS, Path: "/readyz", Port: intstr.FromString("https"),
	}}}
	if err := ask(t.Context(), container, probe, host); err != nil {
		t.Error(err)
	}
	status = http.StatusInternalServerError
	if err := ask(t.Context(), container, probe, host); err == nil {
		t.Error("an error is a good answer")
	}
	probe.HTTPGet.Port = intstr.FromString("metrics")
	if err := ask(t.Context(), container, probe, host); err == nil {
		t.Error("a port that is not there is a good answer")
	}
}
