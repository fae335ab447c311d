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

package apiserver

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/install"
)

var (
	// Scheme holds the types that are served.
	Scheme = runtime.NewScheme()
	// Codecs serialize the types of Scheme.
	Codecs = serializer.NewCodecFactory(Scheme)
)

func init() {
	install.Install(Scheme)
	// Options and results that belong to no group are read and written as v1.
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(Scheme, v1)
	Scheme.AddUnversionedTypes(v1,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)
}

// negotiatedSerializer offers the media types that the types of this group can be written in. They have
// no protobuf form, and a client that prefers protobuf must be given JSON and not an error.
type negotiatedSerializer struct {
	serializer.CodecFactory
}

func (s negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	var out []runtime.SerializerInfo
	for _, info := range s.CodecFactory.SupportedMediaTypes() {
		if info.MediaType != runtime.ContentTypeProtobuf {
			out = append(out, info)
		}
	}
	return out
}
