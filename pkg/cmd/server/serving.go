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

package server

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/certs"
)

// apiService is what clients of the API find the servers by.
var apiService = v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.SchemeGroupVersion.Group

// watchDrain is how long watches may take to end when the server does. Without it they would go on until they are cut, as
// long as a request may take, and their clients would stay with a server that leaves.
const watchDrain = 10 * time.Second

// ServingOptions say how servers come by a certificate that nobody gives them, and how they leave.
type ServingOptions struct {
	// Secret is the namespace and the name of a Secret.
	Secret   string
	Names    []string
	Validity time.Duration

	ShutdownDelay time.Duration
}

// AddFlags adds the flags of serving.
func (o *ServingOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Secret, "serving-secret", o.Secret,
		"Secret, as NAMESPACE/NAME, in which all servers share a certificate. They make and renew it, and keep the caBundle of "+
			"APIService "+apiService+" right. The Secret must be there, if only empty. Not with --tls-cert-file.")
	fs.StringSliceVar(&o.Names, "serving-names", o.Names,
		"DNS names that the certificate in --serving-secret is made for: that of the Service, NAME.NAMESPACE.svc.")
	fs.DurationVar(&o.Validity, "serving-validity", o.Validity,
		"How long a certificate in --serving-secret is valid. It is renewed when a third of that is left.")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", o.ShutdownDelay,
		"How long the server goes on as before when it is told to end, but for /readyz, so that nobody is sent to it any more when it does.")
}

func (o *ServingOptions) validate(recommended *genericoptions.RecommendedOptions, isSnapshot bool) field.ErrorList {
	var errs field.ErrorList
	if o.ShutdownDelay < 0 {
		errs = append(errs, field.Invalid(field.NewPath("--shutdown-delay-duration"), o.ShutdownDelay.String(), "must not be negative"))
	}
	if o.Secret == "" {
		return errs
	}
	secret := field.NewPath("--serving-secret")
	for _, message := range validateObjectName(o.Secret) {
		errs = append(errs, field.Invalid(secret, o.Secret, message))
	}
	if isSnapshot {
		errs = append(errs, field.Forbidden(secret, "there is no Secret in a snapshot"))
	}
	if recommended.SecureServing.ServerCert.CertKey.CertFile != "" {
		errs = append(errs, field.Forbidden(secret, "the certificate is the one of --tls-cert-file"))
	}
	if len(o.Names) == 0 {
		errs = append(errs, field.Required(field.NewPath("--serving-names"), "goes with --serving-secret"))
	}
	for _, name := range o.Names {
		for _, message := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(field.NewPath("--serving-names"), name, message))
		}
	}
	if o.Validity < certs.MinValidity {
		errs = append(errs, field.Invalid(field.NewPath("--serving-validity"), o.Validity.String(), fmt.Sprintf("must be at least %v", certs.MinValidity)))
	}
	return errs
}

// prepare makes a certificate in files where there is no other.
func (o *ServingOptions) prepare(serving *genericoptions.SecureServingOptionsWithLoopback) error {
	if o.Secret != "" {
		return nil
	}
	err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("make a self-signed certificate: %w", err)
	}
	return nil
}

// applyTo has the server take its certificate from the Secret.
func (o *ServingOptions) applyTo(generic *genericapiserver.RecommendedConfig) error {
	generic.ShutdownDelayDuration = o.ShutdownDelay
	generic.ShutdownWatchTerminationGracePeriod = watchDrain
	if o.Secret == "" {
		return nil
	}
	kube, err := kubernetes.NewForConfig(generic.ClientConfig)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(generic.ClientConfig)
	if err != nil {
		return err
	}
	manager, err := certs.NewManager(certs.Config{
		Policy:     certs.Policy{Names: slices.Clone(o.Names), Validity: o.Validity, Settling: certs.DefaultSettling},
		Secret:     objectName(o.Secret),
		APIService: apiService,
		Kube:       kube,
		Dynamic:    dyn,
	})
	if err != nil {
		return err
	}
	generic.SecureServing.Cert = manager
	return nil
}
