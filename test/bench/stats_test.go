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

import "testing"

func TestQuantilesAreValuesThatWereMeasured(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, test := range []struct {
		name   string
		values []float64
		share  float64
		want   float64
	}{
		{"of nothing", nil, 0.5, 0},
		{"of one value", []float64{7}, 0.99, 7},
		{"the middle of three", []float64{9, 1, 5}, 0.5, 5},
		{"the lower middle of two", []float64{9, 1}, 0.5, 1},
		{"the least is no less than the first", []float64{9, 1}, 0, 1},
		{"99 of a hundred", hundred, 0.99, 99},
		{"half of a hundred", hundred, 0.5, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := quantile(test.values, test.share); got != test.want {
				t.Errorf("%v, not %v", got, test.want)
			}
		})
	}
}
