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

// Package certs gives a certificate to servers that nobody else gives one. They share it in a Secret, renew it in time,
// and keep the caBundle of their APIService such that a client which trusts that trusts every one of them.
//
// A certificate comes with an authority of its own, whose key nobody keeps. When it is time for another one, that is
// announced first: the bundle names both authorities, and only when the APIService has had that bundle for a while do
// servers take up the new certificate, each when it sees it. An authority stays in the bundle until it expires, so that it
// does not matter when. Policy decides all this from values alone; Manager reads and writes the cluster, and knows no rule.
//
// Whoever wants other certificates has files, and whoever renews those; this package has no part in that.
package certs
