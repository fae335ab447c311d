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

package nodesim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// claim is what the simulator remembers of a claim.
type claim struct {
	// asked is when a volume was first asked for.
	asked       time.Time
	provisioned bool
	// told is set once an event has said why there is no volume yet.
	told bool
	// resizing is the size being grown to, and since when.
	resizing string
	since    time.Time
}

// provision makes the volume of a claim of our driver; binding the two is the control plane's part.
func (s *Simulator) provision(ctx context.Context, c *corev1.PersistentVolumeClaim, state *claim) error {
	if state.provisioned || !wantsVolume(c) || s.rules.holdsProvision(c.Namespace+"/"+c.Name) {
		return nil
	}
	if state.asked.IsZero() {
		state.asked = time.Now()
	}
	if time.Since(state.asked) < s.rules.ProvisionDelay.Duration {
		return nil
	}
	if isPopulated(c) {
		state.tell(func() {
			s.events.Event(c, corev1.EventTypeNormal, "Provisioning", "Assuming an external populator will provision the volume")
		})
		return nil
	}
	class, err := s.client.StorageV1().StorageClasses().Get(ctx, *c.Spec.StorageClassName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	obstacle, err := s.sourceObstacle(ctx, c)
	if err != nil {
		return err
	}
	if obstacle != "" {
		state.tell(func() {
			s.events.Eventf(c, corev1.EventTypeWarning, "ProvisioningFailed", "failed to provision volume with StorageClass %q: %s", class.Name, obstacle)
		})
		return nil
	}
	s.events.Eventf(c, corev1.EventTypeNormal, "Provisioning", "External provisioner is provisioning volume for claim \"%s/%s\"", c.Namespace, c.Name)
	volume := volumeFor(c, ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete))
	if _, err := s.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create volume %s: %w", volume.Name, err)
	}
	s.events.Eventf(c, corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume %s", volume.Name)
	state.provisioned = true
	return nil
}

// reclaim deletes the volumes whose claims are gone.
func (s *Simulator) reclaim(ctx context.Context, volumes []corev1.PersistentVolume) {
	for i := range volumes {
		v := &volumes[i]
		if v.Status.Phase != corev1.VolumeReleased || v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || v.DeletionTimestamp != nil {
			continue
		}
		if err := s.client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			klog.FromContext(ctx).Error(err, "Deleting a released volume", "volume", klog.KObj(v))
		}
	}
}

func wantsVolume(c *corev1.PersistentVolumeClaim) bool {
	return c.Status.Phase == corev1.ClaimPending && c.Spec.VolumeName == "" && c.DeletionTimestamp == nil &&
		c.Annotations["volume.kubernetes.io/storage-provisioner"] == driver && c.Spec.StorageClassName != nil
}

// isPopulated says whether CDI fills a volume of its own and hands it over to the claim.
func isPopulated(c *corev1.PersistentVolumeClaim) bool {
	ref := c.Spec.DataSourceRef
	return ref != nil && ptr.Deref(ref.APIGroup, "") == "cdi.kubevirt.io"
}

// sourceObstacle says why the claim that is to be cloned cannot be.
func (s *Simulator) sourceObstacle(ctx context.Context, c *corev1.PersistentVolumeClaim) (string, error) {
	source := c.Spec.DataSource
	if source == nil || source.Kind != "PersistentVolumeClaim" {
		return "", nil
	}
	where := "error getting handle for DataSource Type PersistentVolumeClaim by Name " + source.Name
	original, err := s.client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, source.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s: error getting PVC %s from api server: persistentvolumeclaims %q not found", where, source.Name, source.Name), nil
	case err != nil:
		return "", err
	case original.DeletionTimestamp != nil:
		return fmt.Sprintf("%s: the PVC %s is being deleted", where, source.Name), nil
	case original.Status.Phase != corev1.ClaimBound:
		return fmt.Sprintf("%s: the PVC %s is not bound", where, source.Name), nil
	}
	return "", nil
}

func volumeFor(c *corev1.PersistentVolumeClaim, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	name := "pvc-" + string(c.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": driver}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      c.Spec.Resources.Requests,
			AccessModes:                   c.Spec.AccessModes,
			StorageClassName:              *c.Spec.StorageClassName,
			VolumeMode:                    ptr.To(ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)),
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
		},
	}
}

// tell lets an event through once for each claim.
func (c *claim) tell(event func()) {
	if !c.told {
		c.told = true
		event()
	}
}
