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

package images

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// retryAfterTerminating is how many seconds a client waits that wants an image again whose golden is being
// deleted: about what the deletion of a volume takes.
const retryAfterTerminating = 5

// NewTerminatingConflict is the answer to the creation of a WorkerImage whose golden is being deleted.
func NewTerminatingConflict(name string) error {
	conflict := apierrors.NewConflict(Resource("workerimages"), name,
		errors.New("the golden of that name is being deleted; try again when it is gone"))
	conflict.ErrStatus.Details.RetryAfterSeconds = retryAfterTerminating
	return conflict
}
