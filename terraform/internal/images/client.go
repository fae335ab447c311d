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
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// defaultPatience is how long a server that does not answer is asked again.
const defaultPatience = 30 * time.Second

// Client is access to the images of one cluster.
type Client struct {
	// Host is the server that is asked.
	Host string

	images   *gentype.ClientWithList[*v1alpha1.WorkerImage, *v1alpha1.WorkerImageList]
	entries  *gentype.ClientWithList[*v1alpha1.CatalogEntry, *v1alpha1.CatalogEntryList]
	patience time.Duration
}

// NewClient returns a client for the cluster that a configuration gives access to.
func NewClient(access *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(access)
	config.APIPath = "/apis"
	config.GroupVersion = &v1alpha1.SchemeGroupVersion
	config.ContentConfig.ContentType = runtime.ContentTypeJSON
	config.ContentConfig.AcceptContentTypes = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.WarningHandler = rest.NoWarnings{}
	connection, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	parameters := runtime.NewParameterCodec(scheme)
	return &Client{
		Host: config.Host,
		images: gentype.NewClientWithList("workerimages", connection, parameters, "",
			func() *v1alpha1.WorkerImage { return &v1alpha1.WorkerImage{} },
			func() *v1alpha1.WorkerImageList { return &v1alpha1.WorkerImageList{} }),
		entries: gentype.NewClientWithList("catalogentries", connection, parameters, "",
			func() *v1alpha1.CatalogEntry { return &v1alpha1.CatalogEntry{} },
			func() *v1alpha1.CatalogEntryList { return &v1alpha1.CatalogEntryList{} }),
		patience: defaultPatience,
	}, nil
}

// Get returns an image.
func (c *Client) Get(ctx context.Context, name string) (*v1alpha1.WorkerImage, error) {
	return patiently(ctx, c, func(ctx context.Context) (*v1alpha1.WorkerImage, error) {
		return c.images.Get(ctx, name, metav1.GetOptions{})
	})
}

// List returns all images.
func (c *Client) List(ctx context.Context) ([]v1alpha1.WorkerImage, error) {
	list, err := patiently(ctx, c, func(ctx context.Context) (*v1alpha1.WorkerImageList, error) {
		return c.images.List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// CatalogEntries returns what the catalog declares and what pools ask for.
func (c *Client) CatalogEntries(ctx context.Context) ([]v1alpha1.CatalogEntry, error) {
	list, err := patiently(ctx, c, func(ctx context.Context) (*v1alpha1.CatalogEntryList, error) {
		return c.entries.List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Create makes an image. While one of the same name is being deleted it waits, as long as the context lasts.
func (c *Client) Create(ctx context.Context, image *v1alpha1.WorkerImage) (*v1alpha1.WorkerImage, error) {
	for {
		created, err := patiently(ctx, c, func(ctx context.Context) (*v1alpha1.WorkerImage, error) {
			return c.images.Create(ctx, image, metav1.CreateOptions{})
		})
		after, again := suggestsAnotherCreate(err)
		if !again {
			return created, err
		}
		if !pause(ctx, after) {
			return nil, err
		}
	}
}

// Patch changes the metadata of an image by a JSON merge patch.
func (c *Client) Patch(ctx context.Context, name string, patch []byte) (*v1alpha1.WorkerImage, error) {
	return patiently(ctx, c, func(ctx context.Context) (*v1alpha1.WorkerImage, error) {
		return c.images.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	})
}

// Delete deletes the image that has the uid.
func (c *Client) Delete(ctx context.Context, name string, uid types.UID) error {
	_, err := patiently(ctx, c, func(ctx context.Context) (struct{}, error) {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))}
		return struct{}{}, c.images.Delete(ctx, name, options)
	})
	return err
}
