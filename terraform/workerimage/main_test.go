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

package workerimage_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/cozystack/workerimage-apiserver/terraform/internal/imagestest"
	"github.com/cozystack/workerimage-apiserver/terraform/internal/provider"
)

const (
	// pathVariable is where the harness looks for the program it runs.
	pathVariable = "TF_ACC_TERRAFORM_PATH"
	hostVariable = "TF_ACC_PROVIDER_HOST"
)

func TestMain(m *testing.M) {
	if err := useOpenTofu(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// useOpenTofu lets the harness run OpenTofu, which is built where that has not been done.
func useOpenTofu() error {
	if os.Getenv(pathVariable) == "" {
		command := exec.CommandContext(context.Background(), "go", "run", "./hack/stack", "opentofu")
		command.Dir = "../.."
		command.Stderr = os.Stderr
		path, err := command.Output()
		if err != nil {
			return fmt.Errorf("build OpenTofu: %w", err)
		}
		if err := os.Setenv(pathVariable, strings.TrimSpace(string(path))); err != nil {
			return err
		}
	}
	return os.Setenv(hostVariable, "registry.opentofu.org")
}

// run goes through the steps with the provider of this module. {{host}} in a step's configuration is the server.
func run(t *testing.T, server *imagestest.Server, steps ...resource.TestStep) {
	t.Helper()
	for i := range steps {
		if steps[i].Config != "" {
			steps[i].Config = fmt.Sprintf("provider \"workerimage\" {\n  host = %q\n}\n", server.Host()) + steps[i].Config
		}
	}
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
			"workerimage": providerserver.NewProtocol6WithError(provider.New("test")),
		},
		Steps: steps,
	})
}

// says matches a text, wherever the lines of an error break.
func says(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}
