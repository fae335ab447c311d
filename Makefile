# `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What is slow to build is kept here, outside the tree, by version.
CACHE := $(or $(WORKERIMAGE_CACHE),$(XDG_CACHE_HOME),$(HOME)/.cache)/workerimage-apiserver

GOLANGCI_LINT_VERSION := v2.15.0
ACTIONLINT_VERSION := v1.7.12
GOVULNCHECK_VERSION := v1.9.0
HELM_VERSION := v4.3.2
CRD_REF_DOCS_VERSION := v0.2.0
CRANE_VERSION := v0.22.1
CYCLONEDX_GOMOD_VERSION := v1.10.0
PROMTOOL_VERSION := v0.316.0
GOLANGCI_LINT := $(CACHE)/tools/golangci-lint-$(GOLANGCI_LINT_VERSION)
ACTIONLINT := $(CACHE)/tools/actionlint-$(ACTIONLINT_VERSION)
GOVULNCHECK := $(CACHE)/tools/govulncheck-$(GOVULNCHECK_VERSION)
HELM := $(CACHE)/tools/helm-$(HELM_VERSION)
CRD_REF_DOCS := $(CACHE)/tools/crd-ref-docs-$(CRD_REF_DOCS_VERSION)
CRANE := $(CACHE)/tools/crane-$(CRANE_VERSION)
CYCLONEDX_GOMOD := $(CACHE)/tools/cyclonedx-gomod-$(CYCLONEDX_GOMOD_VERSION)
PROMTOOL := $(CACHE)/tools/promtool-$(PROMTOOL_VERSION)

MODULE := github.com/cozystack/workerimage-apiserver
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || git describe --always --dirty 2>/dev/null | sed 's/^/v0.0.0-/' | grep . || echo v0.0.0)
LDFLAGS := -X k8s.io/component-base/version.gitVersion=$(VERSION) \
	-X k8s.io/component-base/version.gitCommit=$(shell git rev-parse HEAD 2>/dev/null)
SERVER := _output/bin/workerimage-apiserver
STACK := _output/bin/stack
PICKER := _output/bin/picker
PROVIDER := _output/bin/terraform-provider-workerimage
GO_LICENSES := _output/bin/go-licenses
PROVIDER_E2E := ./test/terraform/...
PACKAGES := ./cmd/... ./pkg/... ./hack/... ./examples/... ./test/cases/... ./test/model/...
# Where the rules are: those that are pure (.golangci.yaml holds them to it), and those that feed them and hand on what they say.
COVERED := golden storageclass pool projection catalog internal/freeform internal/quantity inventory snapshot options

NPM := npm --prefix examples/picker --no-audit --no-fund
NODE_MODULES := examples/picker/node_modules/.package-lock.json

##@ Try it

.PHONY: run
run: build ## Serve the sample snapshot, without a cluster. Ctrl-C ends it; DETACH=1 returns when it is ready.
	@go run ./hack/run $(if $(DETACH),--detach) --server $(SERVER) artifacts/samples/snapshot

.PHONY: stop
stop: ## End what `make run DETACH=1` started.
	@go run ./hack/run --stop

.PHONY: stack
stack: build $(STACK) ## The same on real parts: etcd, kube-apiserver, CDI. Ctrl-C ends it; DETACH=1 returns when it is ready. REPLICAS=3 runs three servers, KUBERNETES=1.35 another control plane.
	@$(STACK) up $(if $(DETACH),--detach) $(if $(REPLICAS),--replicas $(REPLICAS)) $(if $(KUBERNETES),--kubernetes $(KUBERNETES)) --kubeconfig _output/stack.kubeconfig --server $(abspath $(SERVER)) \
		--manifests artifacts/deploy --load artifacts/samples/stack

.PHONY: stack-stop
stack-stop: $(STACK) ## End what `make stack DETACH=1` started.
	@$(STACK) down

.PHONY: picker
picker: $(PICKER) $(NODE_MODULES) ## The dashboard's form, against a running `make stack`, as tenant-a. Needs Node.js 20.19.
	@test -e _output/tenant-a.kubeconfig || { echo "No stack runs here: start one with 'make stack DETACH=1'." >&2; exit 1; }
	@$(NPM) run build
	@$(PICKER) --kubeconfig _output/tenant-a.kubeconfig

##@ Build and test

.PHONY: build
build: ## Build the server.
	@test -x $(SERVER) || echo "Building the server. With empty caches this takes about four minutes on two cores, most of it k8s.io/apiserver."
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(SERVER) ./cmd/workerimage-apiserver

.PHONY: test
test: coverage e2e ## All tests: unit, conformance and, on the real stack, end to end.

.PHONY: unit
unit: ## Tests that need no cluster, the storage conformance suite among them.
	@mkdir -p _output
	go test -race -coverprofile=_output/coverage.out $(PACKAGES)

.PHONY: coverage
coverage: unit ## The same, and what part of each package its own tests cover: at least 95% where the rules are.
	@go run ./hack/coverage --mark 95 _output/coverage.out $(COVERED:%=$(MODULE)/pkg/%)

.PHONY: e2e
e2e: $(STACK) $(HELM) ## Tests on the real stack; builds it first where that has not been done.
	$(STACK) build
	HELM=$(HELM) go test -race -count=1 -p 1 -timeout 30m $$(go list ./test/... | grep -v -e /test/terraform -e /test/chaos)

# The minors of Kubernetes that the server is for: the one of `make e2e`, and those that have a module in hack/stack besides.
MINORS := $(patsubst hack/stack/kubernetes-%,%,$(sort $(wildcard hack/stack/kubernetes-*))) \
	$(shell sed -n 's/.*k8s.io\/kubernetes v\([0-9]*\.[0-9]*\)\..*/\1/p' hack/stack/kubernetes/go.mod)

.PHONY: compatibility
compatibility: $(STACK) ## The end to end tests on each supported minor of Kubernetes, or on one: KUBERNETES=1.35. Builds each once, slowly.
	@for minor in $(or $(KUBERNETES),$(MINORS)); do \
		echo "== Kubernetes $$minor"; \
		$(STACK) build --kubernetes $$minor && \
		STACK_KUBERNETES=$$minor go test -race -count=1 -timeout 45m ./test/e2e || exit 1; \
	done

# Any of the three will do; the first that is there is used.
CONTAINER_TOOL ?= $(firstword $(foreach tool,docker podman buildah,$(shell command -v $(tool))))
REPOSITORY ?= ghcr.io/cozystack/workerimage-apiserver
IMAGE ?= $(REPOSITORY):$(VERSION)
PLATFORM ?= linux/$(shell go env GOHOSTARCH)
# Older releases of podman and buildah do not say where they build; docker knows better than this.
BUILD_PLATFORM = $(if $(filter-out %docker,$(CONTAINER_TOOL)),--build-arg BUILDPLATFORM=linux/$(shell go env GOHOSTARCH))

.PHONY: image
image: ## Build the image with docker, podman or buildah. IMAGE names it, PLATFORM=linux/arm64 is for another machine.
	@test -n "$(CONTAINER_TOOL)" || { echo "docker, podman or buildah is needed to build an image." >&2; exit 1; }
	$(CONTAINER_TOOL) build --platform $(PLATFORM) $(BUILD_PLATFORM) $(if $(GOPROXY),--build-arg GOPROXY) --tag $(IMAGE) --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$(shell git rev-parse HEAD 2>/dev/null) --build-arg LDFLAGS='$(LDFLAGS)' .

.PHONY: image-layout
image-layout: $(CRANE) $(CYCLONEDX_GOMOD) ## The same for all platforms without a daemon, as an OCI layout in _output/image, with bills of materials.
	CRANE=$(CRANE) CYCLONEDX_GOMOD=$(CYCLONEDX_GOMOD) VERSION=$(VERSION) REVISION=$$(git rev-parse HEAD) LDFLAGS='$(LDFLAGS)' hack/image-layout.sh

# Where charts go, and what signs.
CHARTS ?= ghcr.io/cozystack/charts
COSIGN ?= cosign

.PHONY: publish
publish: $(CRANE) $(HELM) ## Push what `make image-layout` built and the chart, and sign them. The workflow of releases does this.
	CRANE=$(CRANE) HELM=$(HELM) COSIGN=$(COSIGN) VERSION=$(VERSION) REPOSITORY=$(REPOSITORY) CHARTS=$(CHARTS) hack/publish.sh

.PHONY: chart
chart: $(HELM) ## Lint the chart, render it with several values, and check what comes out.
	@for values in artifacts/chart/values.yaml artifacts/chart/ci/*.yaml; do $(HELM) lint --strict --quiet artifacts/chart --values $$values; done
	HELM=$(HELM) go test ./test/chart

# What `make conformance` tests, and explains with.
CLUSTER = $(abspath $(or $(KUBECONFIG),_output/stack.kubeconfig))
KUBECTL ?= $(or $(lastword $(sort $(wildcard $(CACHE)/stack/kubectl-*/kubectl))),kubectl)

.PHONY: conformance
conformance: ## Clauses of the API concepts, on a cluster: KUBECONFIG=..., or that of `make stack`. See docs/reliability.md.
	@test -e $(CLUSTER) || { echo "There is no $(CLUSTER): start a stack with 'make stack DETACH=1', or set KUBECONFIG." >&2; exit 1; }
	go test -count=1 -v -timeout 30m ./test/conformance -run '^TestConformance$$' -kubeconfig $(CLUSTER) -kubectl $(KUBECTL)

# A tenth of a second of CPU each, on all cores.
SEEDS ?= 10000
# What a process keeps of each server that it has run, in registries that are the process's, bounds how many it runs.
SEEDS_OF_A_PROCESS := 250

.PHONY: soak
soak: ## Many sequences of the model test, with -race. SEEDS=10000 says how many; docs/reliability.md what of.
	@rm -rf _output/soak && mkdir -p _output/soak
	go test -race -c -o _output/soak/model.test ./test/model
	@for first in $$(seq 0 $(SEEDS_OF_A_PROCESS) $$(($(SEEDS) - 1))); do \
		count=$$(($(SEEDS) - first < $(SEEDS_OF_A_PROCESS) ? $(SEEDS) - first : $(SEEDS_OF_A_PROCESS))); \
		(cd test/model && GOGC=200 $(abspath _output/soak)/model.test -seed $$first -seeds $$count -report $(abspath _output/soak)/$$first.md) || exit 1; \
		echo "$$((first + count)) of $(SEEDS) sequences"; \
	done
	@awk -F '|' '$$3 ~ /^ *[0-9]+ *$$/ {if (!($$2 in sum)) order[++n] = $$2; sum[$$2] += $$3} \
		END {print "| | |\n|---|---|"; for (i = 1; i <= n; i++) print "|" order[i] "| " sum[order[i]] " |"}' _output/soak/*.md | tee _output/soak.md

.PHONY: chaos
chaos: $(STACK) ## Break what the server stands on, on the real stack: about a quarter of an hour. CHAOS='-run Flip' selects; docs/reliability.md.
	$(STACK) build
	@mkdir -p _output
	go test -count=1 -v -timeout 60m ./test/chaos $(CHAOS) -args -report=$(abspath _output/chaos.md)

.PHONY: upgrade
upgrade: $(STACK) $(HELM) ## Upgrade from another version while clients go on, and roll back: FROM=v0.1.0, or any commit.
	@test -n "$(FROM)" || { echo "From which version? FROM=v0.1.0, or any commit." >&2; exit 1; }
	$(STACK) build
	@rm -rf _output/from && mkdir -p _output/from
	git archive $(FROM) | tar -x -C _output/from
	HELM=$(HELM) go test -count=1 -v -timeout 20m ./test/lifecycle -run 'Upgrade' -args -from=$(abspath _output/from)

.PHONY: picker-test
picker-test: build $(STACK) $(PICKER) ## Tests of the form, in Chromium on a stack of its own. Installs nothing.
	@test $(NODE_MODULES) -nt examples/picker/package-lock.json || { echo "Packages are missing: run 'npm --prefix examples/picker ci'." >&2; exit 1; }
	$(STACK) build
	@for script in check test build e2e; do $(NPM) run $$script; done

.PHONY: terraform
terraform: $(PROVIDER) $(STACK) ## The Terraform provider: build it, and test it with OpenTofu, on a stack of its own too.
	$(STACK) build
	cd terraform && TF_ACC_TERRAFORM_PATH=$$(cd .. && $(STACK) opentofu) go test -race ./...
	go test -count=1 -timeout 20m $(PROVIDER_E2E)

.PHONY: gitops
gitops: $(STACK) ## What docs/consumers says of Flux and Argo CD, with their libraries, on a stack of its own.
	$(STACK) build
	cd test/gitops && go test -count=1 -timeout 20m ./...

.PHONY: bench
bench: build ## Measure the server on a stack of its own, and write docs/performance. BENCH="--help" shows its flags.
	go run ./test/bench --server $(SERVER) $(BENCH)

.PHONY: bench-micro
bench-micro: ## Benchmarks of single packages. They report, and judge nothing.
	go test -run '^$$' -bench . -benchmem ./pkg/inventory/... ./pkg/registry/... ./pkg/storage/... ./pkg/projection/...

.PHONY: lint
lint: $(GOLANGCI_LINT) $(ACTIONLINT) ## golangci-lint, tidy modules, licence headers, scripts and workflows.
	$(GOLANGCI_LINT) run --timeout 30m
	cd terraform && $(GOLANGCI_LINT) run --timeout 30m
	cd hack/observability && $(GOLANGCI_LINT) run --timeout 30m
	cd test/gitops && $(GOLANGCI_LINT) run --timeout 30m
	ACTIONLINT=$(ACTIONLINT) hack/verify.sh

.PHONY: alerts
alerts: $(PROMTOOL) ## Test the alerts, and hold alerts, runbooks and dashboard against the metrics.
	$(PROMTOOL) check rules --lint=all --lint-fatal artifacts/chart/files/alerts.yaml
	$(PROMTOOL) test rules hack/observability/*.test.yaml
	cd hack/observability && go test -count=1 ./...

# Permissive licences; and in the provider, whose libraries are HashiCorp's, one that asks for changes of their files only.
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT
# It warns of assembly, which might import something and does not.
CHECK_LICENSES = $(abspath $(GO_LICENSES)) check --ignore $(MODULE) --logtostderr=false --stderrthreshold=ERROR --log_file=/dev/null

.PHONY: licenses
licenses: $(GO_LICENSES) ## Check the licences of all that is linked into the server and the Terraform provider.
	@$(CHECK_LICENSES) --allowed_licenses $(LICENSES) ./cmd/workerimage-apiserver
	@cd terraform && $(CHECK_LICENSES) --allowed_licenses $(LICENSES),MPL-2.0 ./cmd/terraform-provider-workerimage

VULNDB ?= https://vuln.go.dev

.PHONY: vuln
vuln: $(GOVULNCHECK) ## govulncheck of the server and the Terraform provider. Needs the database at vuln.go.dev, or a mirror: VULNDB=...
	@mkdir -p _output
	@for program in ./cmd/workerimage-apiserver terraform/cmd/terraform-provider-workerimage; do \
		$(GOVULNCHECK) -C $$program -db $(VULNDB) . 2>_output/vuln.log || { status=$$?; cat _output/vuln.log >&2; \
			! grep --quiet 'fetching vulnerabilities' _output/vuln.log || echo "Cannot reach $(VULNDB): nothing has been checked." >&2; exit $$status; }; \
	done

.PHONY: generate
generate: $(HELM) $(CRD_REF_DOCS) $(GO_LICENSES) ## Generate what follows from the types, the chart, the Terraform provider and go.mod: code, clients, manifests, reference pages, notices.
	hack/update-codegen.sh
	$(CRD_REF_DOCS) --source-path=pkg/apis/images/v1alpha1 --config=hack/api-reference.yaml --renderer=markdown \
		--log-level=ERROR --output-path=docs/api-reference.md
	hack/update-terraform-types.sh
	hack/update-terraform-docs.sh
	go run ./hack/chartdocs artifacts/chart
	HELM=$(HELM) hack/update-manifests.sh
	GO_LICENSES=$(abspath $(GO_LICENSES)) hack/update-notices.sh

# Go decides whether there is anything to build.
.PHONY: $(STACK) $(PICKER) $(PROVIDER) $(GO_LICENSES)
$(STACK):
	@go build -o $@ ./hack/stack
$(PICKER):
	@go build -o $@ ./examples/picker/server
$(PROVIDER):
	@cd terraform && CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION:v%=%)' -o $(abspath $@) ./cmd/terraform-provider-workerimage
$(GO_LICENSES):
	@go build -C hack/licenses -o $(abspath $@) github.com/google/go-licenses/v2

$(NODE_MODULES): examples/picker/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20.19 or newer." >&2; exit 1; }
	$(NPM) ci

$(GOLANGCI_LINT):
	@echo "Building golangci-lint $(GOLANGCI_LINT_VERSION) (about three minutes on two cores, once)."
	GOBIN=$(CACHE)/tools/build go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(CACHE)/tools/build/golangci-lint $@

$(ACTIONLINT):
	GOBIN=$(CACHE)/tools/build CGO_ENABLED=0 go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	mv $(CACHE)/tools/build/actionlint $@

$(GOVULNCHECK):
	GOBIN=$(CACHE)/tools/build go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(CACHE)/tools/build/govulncheck $@

$(CRANE):
	GOBIN=$(CACHE)/tools/build CGO_ENABLED=0 go install github.com/google/go-containerregistry/cmd/crane@$(CRANE_VERSION)
	mv $(CACHE)/tools/build/crane $@

$(CYCLONEDX_GOMOD):
	GOBIN=$(CACHE)/tools/build CGO_ENABLED=0 go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_GOMOD_VERSION)
	mv $(CACHE)/tools/build/cyclonedx-gomod $@

$(CRD_REF_DOCS):
	GOBIN=$(CACHE)/tools/build go install github.com/elastic/crd-ref-docs@$(CRD_REF_DOCS_VERSION)
	mv $(CACHE)/tools/build/crd-ref-docs $@

$(HELM):
	@echo "Building helm $(HELM_VERSION) (about two minutes on two cores, once)."
	GOBIN=$(CACHE)/tools/build CGO_ENABLED=0 go install helm.sh/helm/v4/cmd/helm@$(HELM_VERSION)
	mv $(CACHE)/tools/build/helm $@

# What it could discover in clouds is left out.
$(PROMTOOL):
	@echo "Building promtool $(PROMTOOL_VERSION) (about two minutes on two cores, once)."
	GOBIN=$(CACHE)/tools/build CGO_ENABLED=0 go install -tags remove_all_sd github.com/prometheus/prometheus/cmd/promtool@$(PROMTOOL_VERSION)
	mv $(CACHE)/tools/build/promtool $@

##@ Help

.PHONY: help
help: ## Show this.
	@awk 'BEGIN {FS = ":.*##"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*##/ {printf "  %-14s%s\n", $$1, $$2}' $(MAKEFILE_LIST)
