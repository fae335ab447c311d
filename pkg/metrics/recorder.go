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

package metrics

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-base/metrics"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images"
)

// Recorder counts what happens. It is told by those to whom it does.
type Recorder struct {
	published  published
	projection *metrics.Histogram
	questions  counter[string]
	writes     counter[write]
	refusals   counter[string]
}

// write is what became of one.
type write struct{ verb, result string }

// NewRecorder returns a Recorder that has been told nothing.
func NewRecorder() *Recorder {
	return &Recorder{
		published: newPublished(),
		projection: metrics.NewHistogram(&metrics.HistogramOpts{
			Namespace: namespace,
			Name:      "projection_duration_seconds",
			Help:      "Time that it takes to work out one image and its catalog entry from what is known.",
			// From a tenth of a millisecond to one and a half seconds.
			Buckets:        metrics.ExponentialBuckets(0.0001, 4, 8),
			StabilityLevel: metrics.ALPHA,
		}),
	}
}

// Metrics are to be registered beside the Collector, before anything is recorded.
func (r *Recorder) Metrics() []metrics.Registerable { return []metrics.Registerable{r.projection} }

// PublishedImage is told of the image that a name now stands for; nil for none.
func (r *Recorder) PublishedImage(name string, o *images.WorkerImage) { r.published.setImage(name, o) }

// PublishedEntry is PublishedImage for catalog entries.
func (r *Recorder) PublishedEntry(name string, o *images.CatalogEntry) { r.published.setEntry(name, o) }

// Projected is told how long a projection took.
func (r *Recorder) Projected(took time.Duration) { r.projection.Observe(took.Seconds()) }

// Wrote is told what became of a create, update or delete that was no dry run.
func (r *Recorder) Wrote(verb string, err error) {
	r.writes.add(write{verb: verbs.fold(verb), result: resultOf(err)})
}

func resultOf(err error) string {
	if err == nil {
		return metav1.StatusSuccess
	}
	return writeResults.fold(string(apierrors.ReasonForError(err)))
}

// RefusedDelete is told why an image may not be deleted, in the words of its condition Deletable.
func (r *Recorder) RefusedDelete(reason string) { r.refusals.add(refusals.fold(reason)) }

// Authorizer counts the questions that are put to another.
func (r *Recorder) Authorizer(a authorizer.UnconditionalAuthorizer) authorizer.UnconditionalAuthorizer {
	return counted{authorizer: a, answers: &r.questions}
}

type counted struct {
	authorizer authorizer.UnconditionalAuthorizer
	answers    *counter[string]
}

// Authorize passes a question on, and counts its answer unless nobody waits for it any more.
func (c counted) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := c.authorizer.Authorize(ctx, a)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
	case err != nil:
		c.answers.add(answerFailed)
	case decision == authorizer.DecisionAllow:
		c.answers.add(answerAllowed)
	default:
		c.answers.add(answerDenied)
	}
	return decision, reason, err
}

// counter counts by label. What was never counted is zero.
type counter[L comparable] struct {
	mu sync.Mutex
	n  map[L]uint64
}

func (c *counter[L]) add(label L) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[L]uint64{}
	}
	c.n[label]++
}

func (c *counter[L]) get(label L) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[label]
}
