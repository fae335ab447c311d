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

// Command bench measures the served resource on the real stack, through the aggregator, and compares it with
// three others that are measured in the same run: the same objects as a custom resource, what a client does
// without the resource, and the same bytes from a handler that does nothing.
//
// Variants take turns, so that whatever else the machine does hits all of them, and what is reported are
// medians of ratios within a turn. Work is the CPU time that the kernel has charged to kube-apiserver, to the
// server behind the aggregator and to this process. Objects are written into etcd as kube-apiserver would
// store them: making them by requests takes minutes, and is not what is measured.
//
// The command writes a report for people and one for programs. It judges its targets in the report, and fails
// only where it could not measure.
package main
