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

package cases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

const (
	// replayFinalizer keeps an object that is being deleted for as long as the recorded one stayed.
	replayFinalizer = "cases.images.cozystack.io/replay"
	// classRetry is how often a class is made again until its age is right.
	classRetry = 50 * time.Millisecond
)

// Replayer replays events against an API server. Nothing else may write there: no CDI, no binder of claims
// and no garbage collector. What the server decides itself is mapped: recorded uids are replaced wherever
// an object refers to another, and StorageClasses are as old relative to each other as recorded.
type Replayer struct {
	client dynamic.Interface
	kinds  map[schema.GroupVersionKind]servedKind
	inputs *Inputs
	// live holds the objects that are there, as the server answered last.
	live map[Key]*unstructured.Unstructured
	// uids holds the real uid of each recorded one.
	uids map[string]string
	// classes holds the StorageClasses that are there, as recorded.
	classes map[Key]*unstructured.Unstructured
}

// servedKind is how a server serves a kind.
type servedKind struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// status is true if there is a status subresource.
	status bool
}

// NewReplayer returns a replayer that applies what the server answers to inputs.
func NewReplayer(config *rest.Config, inputs *Inputs) (*Replayer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := servedKinds(discoverer)
	if err != nil {
		return nil, fmt.Errorf("discover the kinds of the server: %w", err)
	}
	return &Replayer{
		client:  client,
		kinds:   kinds,
		inputs:  inputs,
		live:    map[Key]*unstructured.Unstructured{},
		uids:    map[string]string{},
		classes: map[Key]*unstructured.Unstructured{},
	}, nil
}

// servedKinds returns the kinds that the server can tell of now. The server under test may not be among
// those whose kinds it knows yet.
func servedKinds(discoverer discovery.DiscoveryInterface) (map[schema.GroupVersionKind]servedKind, error) {
	_, lists, err := discoverer.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	kinds := map[schema.GroupVersionKind]servedKind{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			name, sub, _ := strings.Cut(resource.Name, "/")
			kind := kinds[version.WithKind(resource.Kind)]
			switch sub {
			case "":
				kind.resource, kind.namespaced = version.WithResource(name), resource.Namespaced
			case "status":
				kind.status = true
			default:
				continue
			}
			kinds[version.WithKind(resource.Kind)] = kind
		}
	}
	return kinds, nil
}

// Apply makes the server's object what the event says.
func (r *Replayer) Apply(ctx context.Context, event Event) error {
	object := event.Object
	_, served := r.kinds[object.GroupVersionKind()]
	var err error
	switch {
	case !served:
		err = errors.New("the server does not serve this kind")
	case event.Type == watch.Added:
		err = r.add(ctx, object)
	case event.Type == watch.Modified:
		err = r.modify(ctx, object)
	case event.Type == watch.Deleted:
		err = r.remove(ctx, KeyOf(object))
	}
	if err != nil {
		return fmt.Errorf("%s %s %s/%s: %w", event.Type, object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// Untouched returns an error if anybody else wrote to an object.
func (r *Replayer) Untouched(ctx context.Context) error {
	var errs []error
	for key, live := range r.live {
		now, err := r.resource(live).Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case err != nil:
			errs = append(errs, err)
		case now.GetResourceVersion() != live.GetResourceVersion():
			errs = append(errs, fmt.Errorf("somebody wrote to %s %s/%s", key.Kind, key.Namespace, key.Name))
		}
	}
	return errors.Join(errs...)
}

// Clear deletes everything that was replayed.
func (r *Replayer) Clear(ctx context.Context) error {
	var errs []error
	for _, key := range slices.SortedFunc(maps.Keys(r.live), compareKeys) {
		if err := r.remove(ctx, key); err != nil {
			errs = append(errs, fmt.Errorf("delete %s %s/%s: %w", key.Kind, key.Namespace, key.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Replayer) add(ctx context.Context, recorded *unstructured.Unstructured) error {
	if recorded.GetKind() == "StorageClass" {
		return r.addClass(ctx, recorded)
	}
	if err := r.create(ctx, recorded); err != nil {
		return err
	}
	if err := r.writeStatus(ctx, recorded); err != nil {
		return err
	}
	return r.beginDeletion(ctx, recorded)
}

func (r *Replayer) modify(ctx context.Context, recorded *unstructured.Unstructured) error {
	if err := r.update(ctx, r.withContentOf(recorded)); err != nil {
		return err
	}
	if err := r.writeStatus(ctx, recorded); err != nil {
		return err
	}
	if key := KeyOf(recorded); r.classes[key] != nil {
		r.classes[key] = recorded
	}
	return r.beginDeletion(ctx, recorded)
}

// remove lets an object go that is being deleted, or deletes it at once.
func (r *Replayer) remove(ctx context.Context, key Key) error {
	live := r.live[key]
	if len(live.GetFinalizers()) > 0 {
		next := live.DeepCopy()
		next.SetFinalizers(nil)
		if err := r.update(ctx, next); err != nil {
			return err
		}
	}
	if live.GetDeletionTimestamp() == nil {
		if err := r.delete(ctx, r.live[key]); err != nil {
			return err
		}
	}
	r.inputs.Apply(Event{Type: watch.Deleted, Object: live})
	delete(r.live, key)
	delete(r.classes, key)
	return nil
}

func (r *Replayer) create(ctx context.Context, recorded *unstructured.Unstructured) error {
	created, err := r.resource(recorded).Create(ctx, r.withContentOf(recorded), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	r.uids[string(recorded.GetUID())] = string(created.GetUID())
	r.note(watch.Added, created)
	return nil
}

func (r *Replayer) update(ctx context.Context, next *unstructured.Unstructured) error {
	updated, err := r.resource(next).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	r.note(watch.Modified, updated)
	return nil
}

func (r *Replayer) writeStatus(ctx context.Context, recorded *unstructured.Unstructured) error {
	status, ok := recorded.Object["status"]
	if !ok || !r.kinds[recorded.GroupVersionKind()].status {
		return nil
	}
	next := r.live[KeyOf(recorded)].DeepCopy()
	next.Object["status"] = status
	updated, err := r.resource(next).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.note(watch.Modified, updated)
	return nil
}

// beginDeletion deletes the object if the recorded one is being deleted.
func (r *Replayer) beginDeletion(ctx context.Context, recorded *unstructured.Unstructured) error {
	live := r.live[KeyOf(recorded)]
	if recorded.GetDeletionTimestamp() == nil || live.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := r.delete(ctx, live); err != nil {
		return err
	}
	deleting, err := r.resource(live).Get(ctx, live.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	r.note(watch.Modified, deleting)
	return nil
}

func (r *Replayer) delete(ctx context.Context, live *unstructured.Unstructured) error {
	return r.resource(live).Delete(ctx, live.GetName(), metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
}

// addClass creates a class, and again until it is as old relative to the others as recorded. Those of the
// same second are then made again as well.
func (r *Replayer) addClass(ctx context.Context, recorded *unstructured.Unstructured) error {
	var peers []*unstructured.Unstructured
	for _, other := range r.classes {
		if other.GetCreationTimestamp() == recorded.GetCreationTimestamp() {
			peers = append(peers, other)
		}
	}
	return wait.PollUntilContextCancel(ctx, classRetry, true, func(ctx context.Context) (bool, error) {
		if err := r.createClasses(ctx, recorded); err != nil {
			return false, err
		}
		if r.classesAreOrdered() {
			return true, nil
		}
		for _, class := range append(peers, recorded) {
			if err := r.remove(ctx, KeyOf(class)); err != nil {
				return false, err
			}
		}
		return false, r.createClasses(ctx, peers...)
	})
}

func (r *Replayer) createClasses(ctx context.Context, recorded ...*unstructured.Unstructured) error {
	for _, class := range recorded {
		if err := r.create(ctx, class); err != nil {
			return err
		}
		r.classes[KeyOf(class)] = class
	}
	return nil
}

// classesAreOrdered is true if the classes that are there are as old relative to each other as recorded.
func (r *Replayer) classesAreOrdered() bool {
	age := func(object *unstructured.Unstructured) int64 { return object.GetCreationTimestamp().Unix() }
	for a, recordedA := range r.classes {
		for b, recordedB := range r.classes {
			if cmp.Compare(age(recordedA), age(recordedB)) != cmp.Compare(age(r.live[a]), age(r.live[b])) {
				return false
			}
		}
	}
	return true
}

// withContentOf returns what to write for an object to be as it was recorded.
func (r *Replayer) withContentOf(recorded *unstructured.Unstructured) *unstructured.Unstructured {
	next, live := recorded.DeepCopy(), r.live[KeyOf(recorded)]
	unstructured.RemoveNestedField(next.Object, "metadata", "creationTimestamp")
	next.SetDeletionTimestamp(nil)
	next.SetDeletionGracePeriodSeconds(nil)
	next.SetGeneration(0)
	next.SetFinalizers(nil)
	next.SetUID("")
	next.SetResourceVersion("")
	if live != nil {
		next.SetUID(live.GetUID())
		next.SetResourceVersion(live.GetResourceVersion())
		next.SetFinalizers(live.GetFinalizers())
	}
	if recorded.GetDeletionTimestamp() != nil && (live == nil || live.GetDeletionTimestamp() == nil) {
		next.SetFinalizers([]string{replayFinalizer})
	}
	owners := next.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = types.UID(r.realUID(string(owners[i].UID)))
	}
	next.SetOwnerReferences(owners)
	annotations := next.GetAnnotations()
	for key, value := range annotations {
		annotations[key] = r.realUID(value)
	}
	next.SetAnnotations(annotations)
	return next
}

// realUID returns text as it is if it is not a uid that was recorded.
func (r *Replayer) realUID(text string) string {
	return cmp.Or(r.uids[text], text)
}

// note remembers what the server answered, unless nothing changed.
func (r *Replayer) note(kind watch.EventType, answer *unstructured.Unstructured) {
	key := KeyOf(answer)
	if live := r.live[key]; live != nil && live.GetResourceVersion() == answer.GetResourceVersion() {
		return
	}
	r.live[key] = answer
	r.inputs.Apply(Event{Type: kind, Object: answer})
}

func (r *Replayer) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	kind := r.kinds[object.GroupVersionKind()]
	if kind.namespaced {
		return r.client.Resource(kind.resource).Namespace(object.GetNamespace())
	}
	return r.client.Resource(kind.resource)
}
