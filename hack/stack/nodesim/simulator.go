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
	"crypto/tls"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	nodeName    = "node-1"
	hostAddress = "127.0.0.1"
	// driver is the CSI driver whose storage is simulated.
	driver = "linstor.csi.linbit.com"
	tick   = 200 * time.Millisecond
)

// Simulator plays one node and one storage system.
type Simulator struct {
	client    kubernetes.Interface
	rulesFile string
	addresses *Addresses
	programs  Programs
	serving   tls.Certificate

	events record.EventRecorder
	rules  Rules
	pods   map[types.UID]*pod
	claims map[types.UID]*claim
}

// New returns a Simulator that follows a rules file, gives its pods these addresses, and runs these programs.
func New(client kubernetes.Interface, rulesFile string, addresses *Addresses, programs Programs) (*Simulator, error) {
	serving, err := servingCertificate()
	if err != nil {
		return nil, fmt.Errorf("certificate of the metrics endpoints: %w", err)
	}
	return &Simulator{
		client:    client,
		rulesFile: rulesFile,
		addresses: addresses,
		programs:  programs,
		serving:   serving,
		pods:      map[types.UID]*pod{},
		claims:    map[types.UID]*claim{},
	}, nil
}

// Run plays until ctx is done.
func (s *Simulator) Run(ctx context.Context) error {
	rules, err := ReadRules(s.rulesFile)
	if err != nil {
		return err
	}
	s.rules = rules
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.client.CoreV1().Events("")})
	s.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "nodesim"})

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{
		corev1.LabelHostname: nodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	if _, err := s.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create node %s: %w", nodeName, err)
	}
	defer s.closeEndpoints(ctx)
	defer s.closeContainers()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.sync(ctx)
		}
	}
}

// sync looks at the whole cluster once. What does not work now is tried again on the next tick.
func (s *Simulator) sync(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if rules, err := ReadRules(s.rulesFile); err != nil {
		logger.Error(err, "Keeping the rules as they were")
	} else {
		s.rules = rules
	}
	cached := metav1.ListOptions{ResourceVersion: "0"}
	if pods, err := s.client.CoreV1().Pods("").List(ctx, cached); err != nil {
		logger.Error(err, "Listing pods")
	} else {
		s.syncPods(ctx, pods.Items)
	}
	if claims, err := s.client.CoreV1().PersistentVolumeClaims("").List(ctx, cached); err != nil {
		logger.Error(err, "Listing claims")
	} else {
		s.syncClaims(ctx, claims.Items)
	}
	if volumes, err := s.client.CoreV1().PersistentVolumes().List(ctx, cached); err != nil {
		logger.Error(err, "Listing volumes")
	} else {
		s.reclaim(ctx, volumes.Items)
	}
}

func (s *Simulator) syncPods(ctx context.Context, pods []corev1.Pod) {
	logger := klog.FromContext(ctx)
	seen := make(map[types.UID]bool, len(pods))
	for i := range pods {
		p := &pods[i]
		seen[p.UID] = true
		if s.pods[p.UID] == nil {
			s.pods[p.UID] = &pod{since: time.Now()}
		}
		if err := s.syncPod(ctx, p, s.pods[p.UID], pods); err != nil {
			logger.Error(err, "Playing the node", "pod", klog.KObj(p))
		}
	}
	for uid, state := range s.pods {
		if !seen[uid] {
			s.closeContainer(state)
			s.closeEndpoint(ctx, state)
			delete(s.pods, uid)
		}
	}
}

func (s *Simulator) syncClaims(ctx context.Context, claims []corev1.PersistentVolumeClaim) {
	logger := klog.FromContext(ctx)
	seen := make(map[types.UID]bool, len(claims))
	for i := range claims {
		c := &claims[i]
		seen[c.UID] = true
		if s.claims[c.UID] == nil {
			s.claims[c.UID] = &claim{}
		}
		if err := s.provision(ctx, c, s.claims[c.UID]); err != nil {
			logger.Error(err, "Provisioning", "claim", klog.KObj(c))
		}
		if err := s.resize(ctx, c, s.claims[c.UID]); err != nil {
			logger.Error(err, "Resizing", "claim", klog.KObj(c))
		}
	}
	for uid := range s.claims {
		if !seen[uid] {
			delete(s.claims, uid)
		}
	}
}
