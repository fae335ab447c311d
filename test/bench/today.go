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
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/workerimage-apiserver/pkg/apis/images/v1alpha1"
	"github.com/cozystack/workerimage-apiserver/pkg/generated/clientset/versioned"
)

// TodayCell compares one list with what a client does without the resource.
type TodayCell struct {
	Images int `json:"images"`
	// Disks are the worker disks, which a client has to read to know whose images are in use.
	Disks int      `json:"disks"`
	List  ListCost `json:"list"`
	Join  ListCost `json:"join"`
	// Faster is a ratio of times, LessWork of CPU time, by turn; above one is in favour of the list.
	Faster   Spread `json:"faster"`
	LessWork Spread `json:"lessWork"`
}

// measureToday has a client read images in the two ways, up to the decoded objects.
func (b *bench) measureToday(ctx context.Context, images int) (TodayCell, error) {
	cell := TodayCell{Images: images, Disks: allDisks(images)}
	clients, err := versioned.NewForConfig(b.stack.RESTConfig())
	if err != nil {
		return cell, err
	}
	join := &join{kube: b.kube, dynamic: b.dynamic}
	ways := []func(context.Context) (int, error){
		func(ctx context.Context) (int, error) {
			list, err := clients.ImagesV1alpha1().WorkerImages().List(ctx, metav1.ListOptions{})
			if err != nil {
				return 0, err
			}
			return len(list.Items), checkComplete(list)
		},
		join.images,
	}
	turns, err := b.takeWays(ctx, ways, images)
	if err != nil {
		return cell, err
	}
	cell.List, cell.Join = costOf(turns[0], 0), costOf(turns[1], 0)
	cell.Faster = compare(turns[1], turns[0], turn.median)
	cell.LessWork = compare(turns[1], turns[0], turn.work)
	return cell, nil
}

func checkComplete(list *v1alpha1.WorkerImageList) error {
	for i := range list.Items {
		if list.Items[i].Status.PoolCount != poolsPerImage {
			return fmt.Errorf("%s has %d pools", list.Items[i].Name, list.Items[i].Status.PoolCount)
		}
	}
	return nil
}

// takeWays takes turns of at least the length that is configured.
func (b *bench) takeWays(ctx context.Context, ways []func(context.Context) (int, error), images int) ([][]turn, error) {
	turns := make([][]turn, len(ways))
	end := time.Now().Add(b.options.cell)
	for n := -1; n < leastTurns || time.Now().Before(end); n++ {
		for i, way := range ways {
			before, err := b.usage()
			if err != nil {
				return nil, err
			}
			var t turn
			for start := time.Now(); len(t.latencies) == 0 || time.Since(start) < b.options.turn; {
				begin := time.Now()
				count, err := way(ctx)
				if err == nil && count != images {
					err = errors.New("not all images are there")
				}
				if err != nil {
					return nil, err
				}
				t.latencies = append(t.latencies, time.Since(begin))
			}
			after, err := b.usage()
			if err != nil {
				return nil, err
			}
			if t.cpu = after.minus(before); n >= 0 { // the first warms up
				turns[i] = append(turns[i], t)
			}
		}
	}
	return turns, nil
}
