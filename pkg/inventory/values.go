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

package inventory

import (
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cozystack/workerimage-apiserver/pkg/catalog"
	"github.com/cozystack/workerimage-apiserver/pkg/golden"
	"github.com/cozystack/workerimage-apiserver/pkg/pool"
	"github.com/cozystack/workerimage-apiserver/pkg/storageclass"
)

// text is a string that many values share; the zero text is the empty string. It is garbage once nobody
// holds it, so that what tenants write does not pile up.
type text struct{ handle unique.Handle[string] }

func newText(s string) text {
	if s == "" {
		return text{}
	}
	return text{unique.Make(s)}
}

func (t text) String() string {
	if t == (text{}) {
		return ""
	}
	return t.handle.Value()
}

// key names an object among those of its kind.
type key struct {
	namespace text
	name      string
}

func keyOf(o metav1.Object) key { return key{newText(o.GetNamespace()), o.GetName()} }

// The values below are what is kept of each object. Their zero value stands for an object that is not
// there, or that matters to no image.

// dataVolume is a golden, a disk, or both: a golden can be a clone of another.
type dataVolume struct {
	golden *golden.DataVolume
	disk   disk
}

// disk is a pool.Disk in the form in which a hundred thousand of them are kept.
type disk struct {
	source, pool, class text
	// claim is the name of the disk's own claim. It shares its bytes with the key wherever they are equal.
	claim    string
	state    pool.DiskState
	inFlight bool
}

// isDisk is false for the zero value.
func (d disk) isDisk() bool { return d.source != text{} }

// claim is a claim in the goldens' namespace, or that of a disk elsewhere, of which the class is all that
// is kept.
type claim struct {
	golden *golden.Claim
	class  text
}

// profile is a StorageProfile.
type profile struct{ class, strategy string }

// cdi is a CDI object. There should be one.
type cdi struct {
	present  bool
	created  time.Time
	override string
}

// document is the catalog's ConfigMap.
type document struct {
	uid types.UID
	// catalog is nil where the text is none.
	catalog *catalog.Catalog
	// err says why.
	err string
}

// slimmer makes the values out of the objects.
type slimmer struct {
	goldensNamespace string
	platform         golden.ID
	catalog          types.NamespacedName
	catalogKey       string
}

func (s slimmer) dataVolume(u *unstructured.Unstructured) dataVolume {
	var out dataVolume
	if u.GetNamespace() == s.goldensNamespace {
		if _, ok := golden.ParseName(u.GetName()); ok {
			out.golden = golden.DataVolumeFrom(u.Object)
		}
	}
	if d, ok := pool.DiskFrom(u.Object, s.goldensNamespace); ok {
		out.disk = disk{
			source:   newText(d.SourceClaim),
			pool:     newText(d.Pool),
			class:    newText(d.StorageClass),
			claim:    d.ClaimName,
			state:    d.State,
			inFlight: d.InFlight,
		}
	}
	return out
}

// goldenAnnotation is on the disks of workers and, copied by CDI, on their claims.
const goldenAnnotation = "kubernetes-worker-image.cozystack.io/golden"

// temporaryClaims are the prefixes of the claims that CDI makes on the way. They are never goldens.
var temporaryClaims = [...]string{"prime-", "tmp-pvc-", "prep-"}

func (s slimmer) claim(pvc *corev1.PersistentVolumeClaim) claim {
	for _, prefix := range temporaryClaims {
		if pvc.Namespace == s.goldensNamespace && strings.HasPrefix(pvc.Name, prefix) {
			return claim{}
		}
	}
	slim := golden.ClaimFrom(pvc)
	out := claim{class: newText(ptr.Deref(slim.StorageClass, ""))}
	if pvc.Namespace == s.goldensNamespace {
		out.golden = slim
		return out
	}
	if _, annotated := pvc.Annotations[goldenAnnotation]; slim.Owner == "" && !annotated {
		return claim{}
	}
	return out
}

func (s slimmer) pool(u *unstructured.Unstructured) *pool.Pool {
	p := pool.From(u.Object, s.platform)
	if !p.Selection.Consumes {
		return nil
	}
	return &p
}

// document reads the one ConfigMap that is the catalog. Without the key it is an empty one.
func (s slimmer) document(cm *corev1.ConfigMap) *document {
	if cm.Namespace != s.catalog.Namespace || cm.Name != s.catalog.Name {
		return nil
	}
	content := cm.BinaryData[s.catalogKey]
	if text, ok := cm.Data[s.catalogKey]; ok {
		content = []byte(text)
	}
	parsed, err := catalog.Parse(content)
	if err != nil {
		return &document{uid: cm.UID, err: err.Error()}
	}
	return &document{uid: cm.UID, catalog: parsed}
}

func (slimmer) storageProfile(u *unstructured.Unstructured) profile {
	class, strategy := storageclass.StrategyFromProfile(u.Object)
	return profile{class: class, strategy: strategy}
}

func (slimmer) cdi(u *unstructured.Unstructured) cdi {
	return cdi{present: true, created: u.GetCreationTimestamp().Time, override: storageclass.OverrideFromCDI(u.Object)}
}
