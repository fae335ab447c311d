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

package main

import (
	"slices"
	"time"
)

// Spread is a median, and the quarters on both sides of it.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"p25"`
	High   float64 `json:"p75"`
}

func spreadOf(values []float64) Spread {
	return Spread{Median: quantile(values, 0.5), Low: quantile(values, 0.25), High: quantile(values, 0.75)}
}

// quantile returns the smallest value that is not exceeded by a share of all of them; zero of none.
func quantile[T ~int64 | ~float64](values []T, share float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(share * float64(len(sorted)))
	if share*float64(len(sorted)) == float64(rank) && rank > 0 {
		rank--
	}
	return sorted[min(rank, len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ratio is zero where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
