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

package workerimage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/install"
	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/projection"
	"github.com/cozystack/workerimage-apiserver/pkg/registry/view"
	"github.com/cozystack/workerimage-apiserver/pkg/storage/memory"
)

var known = golden.ID{SchematicID: "aaa", Version: "v1.13.6"}

// fixture is a REST whose writes show in its log at once.
type fixture struct {
	*REST
	log *memory.Log
	// rehearsals are the dry runs, in their order, and refusal is what each is answered with.
	rehearsals []string
	refusal    error
	// observed are the writes that were no dry run, with the reasons for which they failed.
	observed []string
	// unplannable is why nothing can be planned.
	unplannable error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	f := &fixture{log: memory.NewLog(memory.LogOptions{First: 1 << 20, Attrs: Attributes})}
	f.log.SetReady(true)
	var err error
	f.REST, err = NewREST(Config{
		Scheme: scheme,
		Codec:  serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion),
		Storage: memory.New(memory.Options{
			Log:      f.log,
			Backend:  atOnce{f.log},
			Resource: images.Resource("workerimages"),
			Prefix:   KeyPrefix,
			NewFunc:  func() runtime.Object { return &images.WorkerImage{} },
		}),
		Plan:      plan,
		Plannable: func() error { return f.unplannable },
		Rehearser: f,
		Observer:  f,
		View: view.New(view.Config{
			Authorizer:   authorizerfactory.NewAlwaysAllowAuthorizer(),
			PoolResource: func() schema.GroupVersionResource { return schema.GroupVersionResource{} },
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// plan declares one image.
func plan(id golden.ID) (catalog.Entry, field.ErrorList) {
	if id != known {
		return catalog.Entry{}, field.ErrorList{field.Invalid(field.NewPath("spec"), id.Name(), "the catalog does not declare it")}
	}
	return catalog.Entry{ID: id, ImageFactoryURL: "https://factory.talos.dev", Storage: "6Gi"}, nil
}

func (f *fixture) DryRunCreate(_ context.Context, image *images.WorkerImage) error {
	f.rehearsals = append(f.rehearsals, "create "+image.Name)
	return f.refusal
}

func (f *fixture) DryRunUpdate(_ context.Context, before, image *images.WorkerImage) error {
	f.rehearsals = append(f.rehearsals, fmt.Sprintf("update %s from %v to %v", image.Name, before.Labels, image.Labels))
	return f.refusal
}

func (f *fixture) DryRunDelete(_ context.Context, image *images.WorkerImage) error {
	f.rehearsals = append(f.rehearsals, "delete "+image.Name)
	return f.refusal
}

func (f *fixture) Wrote(verb string, err error) {
	f.observed = append(f.observed, strings.TrimSpace(verb+" "+string(apierrors.ReasonForError(err))))
}

func (f *fixture) RefusedDelete(reason string) {
	f.observed = append(f.observed, strings.TrimSpace("refused "+reason))
}

// atOnce is a backend whose writes show in the log when they return.
type atOnce struct{ log *memory.Log }

func (b atOnce) Create(_ context.Context, key string, obj runtime.Object) (memory.Visible, error) {
	return b.apply(key, obj)
}

func (b atOnce) Update(_ context.Context, key string, _, obj runtime.Object) (memory.Visible, error) {
	return b.apply(key, obj)
}

func (b atOnce) Delete(_ context.Context, key string, _ runtime.Object) (memory.Visible, error) {
	_, err := b.log.Remove(key)
	return shown, err
}

func (b atOnce) apply(key string, obj runtime.Object) (memory.Visible, error) {
	_, err := b.log.Apply(key, obj)
	return shown, err
}

func shown(runtime.Object) bool { return true }

// publish puts an image of an identity into the log.
func (f *fixture) publish(t *testing.T, id golden.ID, change ...func(*images.WorkerImage)) *images.WorkerImage {
	t.Helper()
	image := &images.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{Name: id.Name(), UID: types.UID("uid-of-" + id.Name()), Generation: 1},
		Spec:       images.WorkerImageSpec{SchematicID: id.SchematicID, Version: id.Version},
		Status: images.WorkerImageStatus{
			Phase:      images.WorkerImageReady,
			Conditions: []metav1.Condition{{Type: images.ConditionDeletable, Status: metav1.ConditionTrue, Reason: projection.ReasonNotInUse}},
		},
	}
	for _, c := range change {
		c(image)
	}
	if _, err := f.log.Apply(KeyPrefix+"/"+image.Name, image); err != nil {
		t.Fatal(err)
	}
	return image.DeepCopy()
}

// asked is what a user sends.
func asked(id golden.ID) *images.WorkerImage {
	return &images.WorkerImage{Spec: images.WorkerImageSpec{SchematicID: id.SchematicID, Version: id.Version}}
}

func (f *fixture) create(t *testing.T, image *images.WorkerImage, dryRun ...string) (*images.WorkerImage, error) {
	t.Helper()
	obj, err := f.Create(requestContext(t), image, rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return obj.(*images.WorkerImage), nil
}

// requestContext is that of somebody who sees everything.
func requestContext(t *testing.T) context.Context {
	ctx := genericapirequest.WithNamespace(t.Context(), metav1.NamespaceNone)
	return genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: "operator"})
}

func (f *fixture) names(t *testing.T) []string {
	t.Helper()
	obj, err := f.List(requestContext(t), &internalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, image := range view.Unshared(obj).(*images.WorkerImageList).Items {
		names = append(names, image.Name)
	}
	return names
}
