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

import "k8s.io/component-base/metrics"

// descs describe what a Collector sends.
type descs struct {
	sourceObjects, sourceReadable, sourceLastEvent, sourceLists, sourceFailures *metrics.Desc

	projectedObjects *metrics.Desc

	logObjects, logEvents, logWindowEvents, logWindowCapacity, logWindowBytes, logWatchers, logOvertakenWatchers *metrics.Desc

	images, imageCondition, imageUnusedSince, pools *metrics.Desc

	writes, refusedDeletes, viewQuestions *metrics.Desc

	certificateNotBefore, certificateNotAfter *metrics.Desc
}

func newDescs() descs {
	return descs{
		sourceObjects: desc("source_objects",
			"Objects of a source that matter to an image and are kept.", "source"),
		sourceReadable: desc("source_readable",
			"1 while what is known of a source is current, 0 while the source cannot be read.", "source"),
		sourceLastEvent: desc("source_last_event_timestamp_seconds",
			"When the last object of a source has arrived, or its watch has begun anew, which happens every few minutes.", "source"),
		sourceLists: desc("source_lists_total",
			"Lists of a source that were begun.", "source"),
		sourceFailures: desc("source_failures_total",
			"Lists and watches of a source that failed.", "source"),

		projectedObjects: desc("projected_objects_total",
			"Images and catalog entries that were worked out, by what became of them: published as a change, "+
				"unchanged and kept quiet about, deferred to the end of a second, or failed.", "result"),

		logObjects: desc("log_objects",
			"Objects of a resource that are served.", "resource"),
		logEvents: desc("log_events_total",
			"Changes of a resource that were published. Each moved its resourceVersion by one.", "resource"),
		logWindowEvents: desc("log_window_events",
			"Changes that are kept for watches and for lists at an earlier version.", "resource"),
		logWindowCapacity: desc("log_window_capacity",
			"How many changes can be kept.", "resource"),
		logWindowBytes: desc("log_window_bytes",
			"Estimated memory that the kept changes take beyond the objects that are served.", "resource"),
		logWatchers: desc("log_watchers",
			"Watches of a resource that are open.", "resource"),
		logOvertakenWatchers: desc("log_overtaken_watchers_total",
			"Watches that were too slow for the changes that are kept, and were told to list again.", "resource"),

		images: desc("images",
			"Images by their phase.", "phase"),
		imageCondition: desc("image_condition",
			"1 for what each condition of an image says now.", "image", "condition", "status", "reason"),
		imageUnusedSince: desc("image_unused_since_timestamp_seconds",
			"When an image that nobody uses was found to be so. After a restart of the server it is when the image was made.", "image"),
		pools: desc("pools",
			"Pools that ask for an image, by the reason of the verdict on their next worker.", "reason"),

		writes: desc("writes_total",
			"Writes of images that were no dry run, by what became of them: Success, or the reason of the API for their failure.", "verb", "result"),
		refusedDeletes: desc("refused_deletes_total",
			"Deletes that were refused because the image is in use, or because that is not known.", "reason"),
		viewQuestions: desc("view_questions_total",
			"Questions whose pools a caller may see, by their answer. Where it failed the pools are hidden.", "answer"),

		certificateNotBefore: desc("serving_certificate_not_before_timestamp_seconds",
			"When the validity of the serving certificate began."),
		certificateNotAfter: desc("serving_certificate_not_after_timestamp_seconds",
			"When the validity of the serving certificate ends."),
	}
}

func desc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(metrics.BuildFQName(namespace, "", name), help, labels, nil, metrics.ALPHA, "")
}

func (d descs) all() []*metrics.Desc {
	return []*metrics.Desc{
		d.sourceObjects, d.sourceReadable, d.sourceLastEvent, d.sourceLists, d.sourceFailures,
		d.projectedObjects,
		d.logObjects, d.logEvents, d.logWindowEvents, d.logWindowCapacity, d.logWindowBytes, d.logWatchers, d.logOvertakenWatchers,
		d.images, d.imageCondition, d.imageUnusedSince, d.pools,
		d.writes, d.refusedDeletes, d.viewQuestions,
		d.certificateNotBefore, d.certificateNotAfter,
	}
}
