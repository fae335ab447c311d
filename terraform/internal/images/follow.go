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
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/apis/images/v1alpha1"
)

// betweenWatches keeps a server that ends every watch at once from being asked without a break.
const betweenWatches = 100 * time.Millisecond

// judgement looks at an image, nil where there is none, and says whether that is the end and in which way.
type judgement func(image *v1alpha1.WorkerImage) (end bool, err error)

// follow shows every state of an image to a judgement until that comes to an end. A watch that ends is taken up where
// it ended, and one whose resourceVersion is too old begins with a list.
func (c *Client) follow(ctx context.Context, name string, judge judgement) error {
	f := &follower{client: c, name: name, judge: judge}
	backoff := retryBackoff()
	for {
		end, err := f.step(ctx)
		switch {
		case end:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			backoff = retryBackoff()
			pause(ctx, betweenWatches)
		case !transient(err):
			return err
		default:
			tflog.Warn(ctx, "the watch was interrupted, trying again", map[string]any{"worker_image": name, "error": err.Error()})
			pause(ctx, backoff.Step())
		}
	}
}

// follower is how far an image has been followed.
type follower struct {
	client *Client
	name   string
	judge  judgement
	// version is where the next watch begins. It is empty where a list has to come first.
	version string
}

// step lists if it must, and then watches for as long as the watch lasts.
func (f *follower) step(ctx context.Context) (end bool, err error) {
	if f.version == "" {
		if end, err := f.list(ctx); end || err != nil {
			return end, err
		}
	}
	watcher, err := f.client.images.Watch(ctx, f.options())
	if err != nil {
		return false, f.interrupted(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if end, err := f.handle(event); end || err != nil {
			return end, err
		}
	}
	return false, nil
}

func (f *follower) list(ctx context.Context) (end bool, err error) {
	list, err := f.client.images.List(ctx, f.options())
	if err != nil {
		return false, err
	}
	f.version = list.ResourceVersion
	if len(list.Items) == 0 {
		return f.judge(nil)
	}
	return f.judge(&list.Items[0])
}

func (f *follower) handle(event watch.Event) (end bool, err error) {
	if event.Type == watch.Error {
		return false, f.interrupted(apierrors.FromObject(event.Object))
	}
	image, ok := event.Object.(*v1alpha1.WorkerImage)
	if !ok {
		return false, errors.New("the watch sent something that is no worker image")
	}
	f.version = image.ResourceVersion
	switch event.Type {
	case watch.Added, watch.Modified:
		return f.judge(image)
	case watch.Deleted:
		return f.judge(nil)
	default:
		return false, nil
	}
}

// interrupted returns nothing for a version that is too old: the next step lists, and nothing is wrong.
func (f *follower) interrupted(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		f.version = ""
		return nil
	}
	return err
}

func (f *follower) options() metav1.ListOptions {
	return metav1.ListOptions{
		FieldSelector:       fields.OneTermEqualSelector("metadata.name", f.name).String(),
		ResourceVersion:     f.version,
		AllowWatchBookmarks: true,
	}
}
