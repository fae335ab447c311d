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

// Package nodesim stands in for what a control plane without machines lacks: the scheduler, the kubelet and its
// containers, the CSI provisioner and the resizer, one file each. CDI does not notice: its importer and cloner pods are
// scheduled, run, report progress on the metrics endpoint CDI scrapes, and end with the termination messages CDI reads.
// No byte of an image moves. What goes well, how long it takes and what fails is ordered in a rules file, which is read
// again on every tick.
//
// Pods of images for which there is a program do run: as processes, probed and ended as their containers say.
package nodesim
