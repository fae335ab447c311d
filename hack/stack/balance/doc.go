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

// Package balance stands in for the Service in front of several replicas of a server: it passes connections on to those
// that take part, with or without client affinity, and lets a test move, cut and count them. It knows TCP and nothing of
// what is said over it, so that HTTP/2 and TLS are as they would be without it.
package balance
