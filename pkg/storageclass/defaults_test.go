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

package storageclass

import (
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// class returns a class that was made some seconds after noon.
func class(name string, seconds int, marks ...func(*Class)) Class {
	c := Class{Name: name, Created: noon.Add(time.Duration(seconds) * time.Second)}
	for _, mark := range marks {
		mark(&c)
	}
	return c
}

func virt(c *Class) { c.VirtDefault = true }
func ga(c *Class)   { c.Default = true }
func beta(c *Class) { c.BetaDefault = true }

func TestWhoResolvesNoClass(t *testing.T) {
	for _, test := range []struct {
		name       string
		classes    Classes
		cdi        string
		archive    string
		kubernetes string
		pool       string
	}{
		{
			name: "a cluster without a class has no default",
		},
		{
			name:    "a class that is not marked is no default",
			classes: Classes{class("plain", 1)},
		},
		{
			name:       "CDI and the pool chart prefer an older virt default, Kubernetes and archives do not know it",
			classes:    Classes{class("k-def", 2, ga), class("v-def", 1, virt)},
			cdi:        "v-def",
			archive:    "k-def",
			kubernetes: "k-def",
			pool:       "v-def",
		},
		{
			name:       "the beta default is one to Kubernetes and the pool chart only",
			classes:    Classes{class("old", 1, beta)},
			kubernetes: "old",
			pool:       "old",
		},
		{
			name:       "a newer beta default is Kubernetes' choice and nobody else's",
			classes:    Classes{class("new", 1, ga), class("old", 2, beta)},
			cdi:        "new",
			archive:    "new",
			kubernetes: "old",
			pool:       "new",
		},
		{
			name:    "a virt default alone is none to Kubernetes",
			classes: Classes{class("v-def", 1, virt)},
			cdi:     "v-def",
			pool:    "v-def",
		},
		{
			name:       "the newest of several defaults wins",
			classes:    Classes{class("a", 1, virt, ga), class("b", 2, virt, ga), class("c", 0, virt, ga)},
			cdi:        "b",
			archive:    "b",
			kubernetes: "b",
			pool:       "b",
		},
		{
			name:       "among defaults of one second the name that sorts first wins",
			classes:    Classes{class("nvme", 1, ga), class("local", 1, ga)},
			cdi:        "local",
			archive:    "local",
			kubernetes: "local",
			pool:       "local",
		},
		{
			name: "fractions of a second do not count",
			classes: Classes{
				class("a", 1, ga),
				{Name: "b", Created: noon.Add(1900 * time.Millisecond), Default: true},
			},
			cdi:        "a",
			archive:    "a",
			kubernetes: "a",
			pool:       "a",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, answer := range []struct {
				who  string
				want string
				got  func() (string, bool)
			}{
				{"CDI, content type kubevirt", test.cdi, func() (string, bool) { return test.classes.CDIDefault("kubevirt") }},
				{"CDI, no content type", test.cdi, func() (string, bool) { return test.classes.CDIDefault("") }},
				{"CDI, content type archive", test.archive, func() (string, bool) { return test.classes.CDIDefault("archive") }},
				{"Kubernetes", test.kubernetes, test.classes.KubernetesDefault},
				{"the pool chart", test.pool, test.classes.PoolDefault},
			} {
				if got, ok := answer.got(); got != answer.want || ok != (answer.want != "") {
					t.Errorf("%s: got %q, %t, want %q", answer.who, got, ok, answer.want)
				}
			}
		})
	}
}

func TestDefaultDoesNotDependOnTheOrderOfClasses(t *testing.T) {
	classes := Classes{
		class("d", 2, ga, virt), class("c", 2, ga, virt), class("b", 1, ga, virt), class("a", 0, ga, virt), class("plain", 9),
	}
	random := rand.New(rand.NewSource(1))
	for range 100 {
		random.Shuffle(len(classes), func(i, j int) { classes[i], classes[j] = classes[j], classes[i] })
		for _, resolve := range []func() (string, bool){classes.PoolDefault, classes.KubernetesDefault} {
			if got, _ := resolve(); got != "c" {
				t.Fatalf("got %q, want c, in order %v", got, classes)
			}
		}
	}
}

func TestOnlyTrueMakesADefault(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		want        Class
	}{
		{
			name: "each annotation counts for itself",
			annotations: map[string]string{
				virtDefaultAnnotation: "true",
				defaultAnnotation:     "true",
				betaDefaultAnnotation: "true",
			},
			want: Class{VirtDefault: true, Default: true, BetaDefault: true},
		},
		{
			name: "false, True and 1 are not true",
			annotations: map[string]string{
				virtDefaultAnnotation: "True",
				defaultAnnotation:     "false",
				betaDefaultAnnotation: "1",
			},
		},
		{
			name: "a class without annotations is no default",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Name, test.want.Created = "local", noon
			got := FromStorageClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
				Name:              "local",
				CreationTimestamp: metav1.NewTime(noon),
				Annotations:       test.annotations,
			}})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("FromStorageClass (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHasKnowsClassesByTheirWholeName(t *testing.T) {
	classes := Classes{class("local", 1)}
	if !classes.Has("local") || classes.Has("loc") || classes.Has("") {
		t.Error("Has does not compare whole names")
	}
}
