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
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
)

const demoGolden = "talos-worker-aaa-v1.13.6"

// scene is a golden that is ready, with everything about it in order.
type scene struct {
	in      *Inputs
	monitor *Monitor
	image   *v1alpha1.WorkerImage
	broken  []string
}

func newScene() *scene {
	c := &Case{Want: Want{Goldens: []Golden{{Name: demoGolden, SchematicID: "aaa", Version: "v1.13.6"}}}}
	for _, rule := range rules(c, nil) {
		c.Want.Never = append(c.Want.Never, Never{ID: rule.id})
	}
	in := NewInputs()
	s := &scene{in: in, monitor: NewMonitor(c, in)}
	s.image = &v1alpha1.WorkerImage{
		ObjectMeta: metav1.ObjectMeta{Name: demoGolden, UID: "image-1", ResourceVersion: "1"},
		Spec:       v1alpha1.WorkerImageSpec{SchematicID: "aaa", Version: "v1.13.6"},
		Status: v1alpha1.WorkerImageStatus{
			Phase:      v1alpha1.WorkerImageReady,
			Progress:   ptr.To[int32](100),
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}},
		},
	}
	s.apply(watch.Added, dataVolume("dv-1", "Succeeded", "100.0%"))
	s.apply(watch.Added, claim("Bound", "dv-1"))
	s.deliver(watch.Added, s.image)
	return s
}

func (s *scene) apply(kind watch.EventType, object *unstructured.Unstructured) {
	s.in.Apply(Event{Type: kind, Object: object})
	s.in.Settle(s.in.Count())
}

func (s *scene) deliver(kind watch.EventType, image *v1alpha1.WorkerImage) {
	s.broken = append(s.broken, s.monitor.Deliver(kind, image)...)
}

// change delivers the next version of the image.
func (s *scene) change(mutate func(*v1alpha1.WorkerImage)) {
	s.image = s.image.DeepCopy()
	s.image.ResourceVersion += "1"
	mutate(s.image)
	s.deliver(watch.Modified, s.image)
}

func (s *scene) changePhase(phase v1alpha1.WorkerImagePhase) {
	s.change(func(image *v1alpha1.WorkerImage) {
		image.Status.Phase, image.Status.Progress = phase, nil
		image.Status.Conditions[0].Status = metav1.ConditionFalse
	})
}

func dataVolume(uid types.UID, phase, progress string) *unstructured.Unstructured {
	return object("DataVolume", uid, map[string]any{"phase": phase, "progress": progress})
}

func claim(phase string, owner types.UID) *unstructured.Unstructured {
	out := object("PersistentVolumeClaim", "claim-1", map[string]any{"phase": phase})
	if owner != "" {
		out.SetOwnerReferences([]metav1.OwnerReference{{Kind: "DataVolume", UID: owner, Controller: ptr.To(true)}})
	}
	return out
}

func object(kind string, uid types.UID, status map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	out.SetKind(kind)
	out.SetNamespace(GoldensNamespace)
	out.SetName(demoGolden)
	out.SetUID(uid)
	return out
}

func deleting(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetDeletionTimestamp(ptr.To(metav1.Unix(1, 0)))
	return object
}

func TestEveryRuleIsBroken(t *testing.T) {
	rows := []struct {
		name    string
		rule    string
		breakIt func(*scene)
	}{
		{"ready without a claim", "ready-needs-its-own-bound-claim", func(s *scene) {
			s.apply(watch.Deleted, claim("Bound", "dv-1"))
		}},
		{"ready while the claim is pending", "ready-needs-its-own-bound-claim", func(s *scene) {
			s.apply(watch.Modified, claim("Pending", "dv-1"))
		}},
		{"ready while the claim is deleted", "ready-needs-its-own-bound-claim", func(s *scene) {
			s.apply(watch.Modified, deleting(claim("Bound", "dv-1")))
		}},
		{"ready on a claim of another data volume", "ready-needs-its-own-bound-claim", func(s *scene) {
			s.apply(watch.Modified, claim("Bound", "dv-2"))
		}},
		{"ready while the data volume imports", "ready-needs-its-own-bound-claim", func(s *scene) {
			s.apply(watch.Modified, dataVolume("dv-1", "ImportInProgress", "100.0%"))
		}},
		{"ready while the data volume is deleted", "ready-needs-its-own-bound-claim", func(s *scene) {
			s.apply(watch.Modified, deleting(dataVolume("dv-1", "Succeeded", "100.0%")))
		}},
		{"ready and another phase", "ready-and-phase-agree", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Status.Phase = v1alpha1.WorkerImageImporting })
		}},
		{"phase ready and the condition is not", "ready-and-phase-agree", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Status.Conditions = nil })
		}},
		{"failed while CDI tries again", "failed-only-if-so", func(s *scene) {
			s.apply(watch.Modified, dataVolume("dv-1", "ImportInProgress", "41.00%"))
			s.changePhase(v1alpha1.WorkerImageFailed)
		}},
		{"failed with a bound claim", "failed-only-if-so", func(s *scene) {
			s.changePhase(v1alpha1.WorkerImageFailed)
		}},
		{"a claim of CDI's own is listed", "only-goldens-are-listed", func(s *scene) {
			s.deliver(watch.Added, &v1alpha1.WorkerImage{ObjectMeta: metav1.ObjectMeta{Name: "prime-1", UID: "image-2"}})
		}},
		{"progress over 100", "progress-in-range", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Status.Progress = ptr.To[int32](101) })
		}},
		{"progress 100 too early", "progress-in-range", func(s *scene) {
			s.apply(watch.Modified, dataVolume("dv-1", "ImportInProgress", "99.40%"))
		}},
		{"another version than the name says", "identity-from-the-name", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Spec.Version = "v1.13.7" })
		}},
		{"another schematic than the name says", "identity-from-the-name", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Spec.SchematicID = "bbb" })
		}},
		{"the uid of an input", "uid-follows-the-golden", func(s *scene) {
			s.deliver(watch.Deleted, s.image)
			s.image.UID = "claim-1"
			s.deliver(watch.Added, s.image)
		}},
		{"a new uid for the same golden", "uid-follows-the-golden", func(s *scene) {
			s.deliver(watch.Deleted, s.image)
			s.image.UID = "image-2"
			s.deliver(watch.Added, s.image)
		}},
		{"the same uid for a new golden", "uid-follows-the-golden", func(s *scene) {
			s.apply(watch.Modified, dataVolume("dv-2", "Succeeded", "100.0%"))
		}},
		{"a token in an annotation", "no-token", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Annotations = map[string]string{hiddenKey: "x"} })
		}},
		{"a token in a message", "no-token", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Status.Conditions[0].Message = "with " + hiddenValue })
		}},
		{"an event without a change", "one-event-per-visible-change", func(s *scene) {
			s.change(func(*v1alpha1.WorkerImage) {})
		}},
		{"a transition time that moves alone", "one-event-per-visible-change", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.Status.Conditions[0].LastTransitionTime = metav1.Unix(1, 0) })
		}},
		{"two changes in one version", "one-event-per-visible-change", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) {
				image.Status.PoolCount, image.ResourceVersion = 1, "1"
			})
		}},
		{"another object as a change", "one-event-per-visible-change", func(s *scene) {
			s.change(func(image *v1alpha1.WorkerImage) { image.UID = "image-2" })
		}},
		{"one object added twice", "one-event-per-visible-change", func(s *scene) {
			s.deliver(watch.Added, s.image)
		}},
		{"an input that is written to", "inputs-untouched", func(s *scene) {
			s.in.Objects("DataVolume")[0].SetLabels(map[string]string{"a": "b"})
		}},
	}
	covered := map[string]bool{}
	for _, row := range rows {
		covered[row.rule] = true
		t.Run(row.name, func(t *testing.T) {
			s := newScene()
			if got := slices.Concat(s.broken, s.monitor.Check()); len(got) > 0 {
				t.Fatalf("broken from the start: %q", got)
			}
			row.breakIt(s)
			broken := slices.Concat(s.broken, s.monitor.Check(), s.monitor.End())
			for _, b := range broken {
				if strings.HasPrefix(b, row.rule+": ") {
					return
				}
			}
			t.Errorf("got %q, want %s to be broken", broken, row.rule)
		})
	}
	for _, rule := range rules(&Case{}, nil) {
		if !covered[rule.id] {
			t.Errorf("nothing breaks %s", rule.id)
		}
	}
}

func TestAReaderMayBeBehindUntilItHasSettled(t *testing.T) {
	s := newScene()
	s.in.Apply(Event{Type: watch.Modified, Object: claim("Lost", "dv-1")})
	s.in.Apply(Event{Type: watch.Deleted, Object: dataVolume("dv-1", "Succeeded", "100.0%")})
	if got := s.monitor.Check(); len(got) > 0 {
		t.Errorf("the states before may still be read, got %q", got)
	}
	s.in.Settle(s.in.Count() - 2)
	if got := s.monitor.Check(); len(got) > 0 {
		t.Errorf("only the states before those are settled, got %q", got)
	}
	s.in.Settle(s.in.Count())
	if got := s.monitor.Check(); len(got) == 0 {
		t.Error("the states before are settled, and nothing is broken")
	}
}

func TestAGoldenOfAnotherUIDIsAnotherImage(t *testing.T) {
	s := newScene()
	s.apply(watch.Deleted, dataVolume("dv-1", "Succeeded", "100.0%"))
	left := claim("Bound", "dv-1")
	left.SetAnnotations(map[string]string{createdForAnnotation: "dv-1"})
	s.apply(watch.Modified, left)
	if got := s.monitor.Check(); len(got) > 0 {
		t.Errorf("a bare claim stands for the data volume it was made for, got %q", got)
	}
	s.apply(watch.Added, dataVolume("dv-2", "Succeeded", "100.0%"))
	s.apply(watch.Modified, claim("Bound", "dv-2"))
	s.deliver(watch.Deleted, s.image)
	s.image = s.image.DeepCopy()
	s.image.UID = "image-2"
	s.deliver(watch.Added, s.image)
	if got := slices.Concat(s.broken, s.monitor.Check()); len(got) > 0 {
		t.Errorf("another golden has another uid, got %q", got)
	}
}
