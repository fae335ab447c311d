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
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// counter decides from the answers to a probe which result counts.
type counter struct {
	successes, failures int32
	// result is that of the answers so far, and run how many of the latest are the same.
	result bool
	last   bool
	run    int32
}

func newCounter(probe *corev1.Probe, initially bool) *counter {
	return &counter{successes: max(1, probe.SuccessThreshold), failures: max(1, probe.FailureThreshold), result: initially}
}

// count returns the result, and whether enough answers have been the same for it to count.
func (c *counter) count(answer bool) (result, counts bool) {
	if answer != c.last {
		c.last, c.run = answer, 0
	}
	c.run++
	threshold := c.failures
	if answer {
		threshold = c.successes
	}
	if c.run < threshold {
		return c.result, false
	}
	c.result = answer
	return answer, true
}

// ask asks a container once, as its probe says.
func ask(ctx context.Context, container corev1.Container, probe *corev1.Probe, address string) error {
	if probe.HTTPGet == nil {
		return fmt.Errorf("a probe that is not HTTP: %w", errors.ErrUnsupported)
	}
	port, err := portOf(container, probe.HTTPGet.Port)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, probe.TimeoutSeconds))*time.Second)
	defer cancel()
	url := fmt.Sprintf("%s://%s%s", strings.ToLower(string(probe.HTTPGet.Scheme)),
		net.JoinHostPort(address, strconv.Itoa(int(port))), probe.HTTPGet.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	//nolint:gosec // The kubelet does not verify whom it probes.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return errors.New(response.Status)
	}
	return nil
}

// portOf is the number of a port that may be named.
func portOf(container corev1.Container, port intstr.IntOrString) (int32, error) {
	if port.Type == intstr.Int {
		return port.IntVal, nil
	}
	for _, p := range container.Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort, nil
		}
	}
	return 0, fmt.Errorf("container %s has no port %s", container.Name, port.StrVal)
}
