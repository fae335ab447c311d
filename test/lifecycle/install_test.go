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

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cozystack/workerimage-apiserver/test/conformance"
)

func TestAnInstallationConforms(t *testing.T) {
	p := installed(t, newVersion(), valuesOf(newVersion(), read, dry, busy))
	p.awaitAvailable(t)
	images := p.imageUIDs(t)
	for golden := range p.goldenUIDs(t) {
		if _, found := images[golden]; !found {
			t.Errorf("%s is not served", golden)
		}
	}
	workerImages := conformance.WorkerImages()
	var err error
	if workerImages.Driver, err = conformance.LabelDriver(t.Context(), p.RESTConfig(), workerImages); err != nil {
		t.Fatal(err)
	}
	// It takes thousands of changes, and no part of it is in how the server is installed.
	workerImages.Driver.Churn = func(context.Context) error { return errors.New("nobody waits here until a version is forgotten") }
	// It takes thousands of changes, and no part of it is in how the server is installed.
	workerImages.Driver.Churn = func(context.Context) error { return errors.New("nobody waits here until a version is forgotten") }
	conformance.Run(t, conformance.Config{
		REST:      p.RESTConfig(),
		Resources: []conformance.Resource{workerImages, conformance.CatalogEntries(), conformance.Options("tenant-a")},
		Kubectl: func(ctx context.Context, args ...string) (string, error) {
			out, err := p.run(ctx, p.Kubectl(), args...)
			if err != nil {
				err = fmt.Errorf("kubectl %v: %w: %s", args, err, out)
			}
			return out, err
		},
	})
	p.checkLogs(t)
}
