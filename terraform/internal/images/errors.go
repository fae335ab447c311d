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

package images

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// ErrNotFound means that there is no image of the name.
var ErrNotFound = errors.New("there is no such worker image")

// UnreachableError means that the server did not answer for as long as the client is patient.
type UnreachableError struct {
	Host  string
	After time.Duration
	Err   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from %s within %s: %v", e.Host, e.After, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// NotReadyError means that an image will not become ready by itself.
type NotReadyError struct {
	// Image is the image as it was seen last.
	Image *v1alpha1.WorkerImage
	// Gone is true when the image has been deleted since.
	Gone bool
}

func (e *NotReadyError) Error() string {
	if e.Gone {
		return fmt.Sprintf("worker image %s was deleted while it was %s", e.Image.Name, describe(e.Image))
	}
	return fmt.Sprintf("worker image %s is %s", e.Image.Name, describe(e.Image))
}

// TimeoutError means that an image did not get where it was waited for in time.
type TimeoutError struct {
	Name  string
	After time.Duration
	// Last is the image as it was seen last, nil if it was never seen.
	Last *v1alpha1.WorkerImage
}

func (e *TimeoutError) Error() string {
	if e.Last == nil {
		return fmt.Sprintf("nothing was heard of worker image %s within %s", e.Name, e.After)
	}
	return fmt.Sprintf("worker image %s is still %s after %s", e.Name, describe(e.Last), e.After)
}

// describe says where an image stands, in the words of the API.
func describe(image *v1alpha1.WorkerImage) string {
	text := string(image.Status.Phase)
	if image.Status.Progress != nil {
		text += fmt.Sprintf(" (%d%%)", *image.Status.Progress)
	}
	condition := readyCondition(image)
	if condition.Reason != "" {
		text += ", " + condition.Reason
	}
	if condition.Message != "" {
		text += ": " + condition.Message
	}
	return text
}

// NotFound says whether an error means that the API is served and has no object of the name.
func NotFound(err error) bool {
	return errors.Is(err, ErrNotFound) || (apierrors.IsNotFound(err) && !notInstalled(err))
}

// notInstalled tells an API that is not served from an object that is not there: the answer is no Status of the API's.
func notInstalled(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Explain says in a line what an error is, and in a few what to do about it. The action is what was being done, such as
// "read the worker images".
func (c *Client) Explain(action string, err error) (summary, detail string) {
	failed := fmt.Sprintf("Could not %s: %v.", action, err)
	var unreachable *UnreachableError
	var verification *tls.CertificateVerificationError
	var transport *url.Error
	switch {
	case notInstalled(err):
		return "The WorkerImage API is not installed", fmt.Sprintf("%s does not serve %s. Install workerimage-apiserver in that cluster, "+
			"or let the provider's configuration name the cluster that has it.", c.Host, v1alpha1.SchemeGroupVersion)
	case apierrors.IsUnauthorized(err):
		return "The credentials were refused", failed + fmt.Sprintf("\n\n%s does not accept the credentials in the provider's configuration. "+
			"They may have expired.", c.Host)
	case apierrors.IsForbidden(err):
		return "Access to worker images was refused", failed + "\n\nThe ClusterRole workerimages-reader lets read images and the catalog, " +
			"and workerimages-operator make and delete images."
	case errors.As(err, &unreachable):
		return "The WorkerImage API does not answer", fmt.Sprintf("Could not %s: %v.\n\nIf the cluster itself answers, look at "+
			"`kubectl get apiservice v1alpha1.images.cozystack.io`.", action, err)
	case errors.As(err, &verification):
		return "The server's certificate was refused", failed + "\n\nSet cluster_ca_certificate, or tls_server_name if the certificate bears another name."
	case errors.Is(err, context.Canceled):
		return "Interrupted", failed
	case errors.As(err, &transport):
		return "The cluster cannot be reached", failed + "\n\nCheck the address of the cluster in the provider's configuration."
	}
	return "The WorkerImage API refused", failed
}
