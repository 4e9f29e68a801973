# `make` alone lists what can be made. Nothing needs to be installed first but Go, git, make and a C compiler
# (npm for the tests against the official MCP clients): each target builds or fetches what it needs.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Without a git directory that git trusts (a tarball, a container of another user) Go cannot stamp the revision.
ifneq (,$(shell git rev-parse --verify --quiet HEAD 2>&1 >/dev/null || echo none))
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
endif

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

IMG            ?= agentrooms/rooms:$(VERSION)
CONTAINER_TOOL ?= docker
KUBECTL        ?= kubectl
NPM            ?= npm

# Two packages at a time: most of the integration packages run an API server of their own.
TEST_FLAGS   ?=
TEST_P       ?= 2
TEST_TIMEOUT ?= 30m
BENCH_ROUNDS ?= 8
BENCH_TIME   ?= 1s
BENCH_ONLY   ?=
BENCH_ARGS   ?=
FUZZ_TIME    ?= 30s

# ---- tools: built from hack/tools once for each (pinned versions, Go version, platform), shared by all checkouts ----
CACHE_DIR := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agentrooms
TOOLS_KEY := $(shell { git hash-object --no-filters hack/tools/go.sum; go env GOVERSION GOOS GOARCH; } | tr '\n' ' ' | sed 's/^\([0-9a-f]\{12\}\)[0-9a-f]* /\1-/; s/ $$//; s/ /-/g')
TOOLS_DIR := $(CACHE_DIR)/tools/$(TOOLS_KEY)

CONTROLLER_GEN  := $(TOOLS_DIR)/controller-gen
CRD_REF_DOCS    := $(TOOLS_DIR)/crd-ref-docs
GOLANGCI_LINT   := $(TOOLS_DIR)/golangci-lint
KUBE_API_LINTER := $(TOOLS_DIR)/golangci-lint-kube-api-linter
KUSTOMIZE       := $(TOOLS_DIR)/kustomize

PACKAGE_controller-gen                := sigs.k8s.io/controller-tools/cmd/controller-gen
PACKAGE_crd-ref-docs                  := github.com/elastic/crd-ref-docs
PACKAGE_golangci-lint                 := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
PACKAGE_golangci-lint-kube-api-linter := sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter
PACKAGE_kustomize                     := sigs.k8s.io/kustomize/kustomize/v5

TOOLS := $(CONTROLLER_GEN) $(CRD_REF_DOCS) $(GOLANGCI_LINT) $(KUBE_API_LINTER) $(KUSTOMIZE)

# What `generate` and `manifests` write: `verify` holds exactly these against the commit.
GENERATED := \
	api/v1alpha1/zz_generated.deepcopy.go \
	api/v1alpha1/applyconfiguration \
	config/crd/bases \
	internal/controlplane/module \
	docs/reference/api.md \
	dist/install.yaml

# Folders with an npm lock file hold tests of their own.
NPM_TESTS := $(patsubst %/package-lock.json,%,$(wildcard test/board/package-lock.json test/conformance/package-lock.json test/sdk/package-lock.json))

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { FS = ":.*##"; printf "Usage: make \033[36m<target>\033[0m\n" } \
		/^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } \
		/^[a-zA-Z0-9_-]+:.*##/ { printf "  \033[36m%-17s\033[0m%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: build ## Build, then run the whole system on this machine (Ctrl-C stops it). ARGS="--json" and so on are handed on.
	bin/rooms up $(ARGS)

##@ Build

.PHONY: build
build: ## Build bin/rooms (and bin/kubectl-rooms).
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(patsubst %/main.go,./%,$(wildcard cmd/*/main.go))
	@ln -sf kubectl-rooms bin/kubectl_complete-rooms

.PHONY: controlplane
controlplane: build ## Build or find etcd, kube-apiserver and kube-controller-manager, and print where they are.
	@bin/rooms assets

.PHONY: tools
tools: $(TOOLS) ## Build the pinned development tools (about a minute and a half, once).

# The path names the versions, so a file that exists is current: no prerequisite.
$(TOOLS_DIR)/%:
	@mkdir -p $(TOOLS_DIR)
	@echo "building $* into $(TOOLS_DIR)" >&2
	@part=$$(mktemp $(TOOLS_DIR)/.$*.XXXXXX); \
		trap 'rm -f "$$part"' EXIT; \
		GOFLAGS=-buildvcs=false CGO_ENABLED=0 go build -C hack/tools -trimpath -o "$$part" $(PACKAGE_$*); \
		chmod 0755 "$$part"; mv -f "$$part" $@

.PHONY: docker-build
docker-build: ## Build the container image IMG.
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) -t $(IMG) .

.PHONY: clean
clean: ## Remove what was built in this checkout. The caches under $HOME stay.
	rm -rf bin coverage.out $(addsuffix /node_modules,$(NPM_TESTS))

##@ Test

.PHONY: test
test: build $(addsuffix /node_modules/.package-lock.json,$(NPM_TESTS)) ## Run every test. Needs nothing done before: the control plane is found or built first.
	@# What runs whole planes under load, and holds them to times, has the machine for itself.
	assets=$$(bin/rooms assets) || exit 1; export KUBEBUILDER_ASSETS="$$assets" ROOMS_BIN="$(CURDIR)/bin/rooms"; status=0; \
		go test -p $(TEST_P) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) $$(go list ./... | grep -v '/test/') || status=1; \
		go test -p 1 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./test/... || status=1; exit $$status
	@$(foreach dir,$(NPM_TESTS),$(NPM) --prefix $(dir) run --if-present test && ) true

.PHONY: test-short
test-short: ## Run the tests that need no control plane.
	go test -short -timeout 5m $(TEST_FLAGS) ./...

.PHONY: pictures
pictures: build test/board/node_modules/.package-lock.json ## Have the board's tests take the pictures in docs/images anew.
	assets=$$(bin/rooms assets) && export KUBEBUILDER_ASSETS="$$assets" ROOMS_BIN="$(CURDIR)/bin/rooms" && \
		BOARD_PICTURES="$(CURDIR)/docs/images" go test -count=1 -timeout $(TEST_TIMEOUT) ./test/board

.PHONY: bench
bench: build ## Measure our operations against the bare API calls they rest on, and write docs/benchmarks.md (about ten minutes).
	assets=$$(bin/rooms assets) && export KUBEBUILDER_ASSETS="$$assets" && \
		BENCH_ROUNDS=$(BENCH_ROUNDS) BENCH_TIME=$(BENCH_TIME) BENCH_ONLY='$(BENCH_ONLY)' go run ./test/bench $(BENCH_ARGS)

.PHONY: fuzz
fuzz: ## Fuzz each fuzz target for FUZZ_TIME.
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file" | while read -r target; do \
			echo "== $$target in $${file%/*}"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ_TIME) "$${file%/*}" </dev/null; \
		done; \
	done

%/node_modules/.package-lock.json: %/package-lock.json
	$(NPM) ci --prefix $* --no-audit --no-fund
	@touch $@

##@ Generate and verify

.PHONY: generate
generate: generate-api manifests generate-module generate-docs build-installer ## Regenerate every generated file.

.PHONY: generate-api
generate-api: $(CONTROLLER_GEN) ## Regenerate deep copies and apply configurations.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	$(CONTROLLER_GEN) applyconfiguration:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Regenerate the CustomResourceDefinitions in config/crd/bases. (Roles and policies are written by hand.)
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases

.PHONY: generate-module
generate-module: ## Copy the control plane's go.mod and go.sum to where the binary embeds them.
	@mkdir -p internal/controlplane/module
	cp hack/controlplane/go.mod internal/controlplane/module/go.mod.txt
	cp hack/controlplane/go.sum internal/controlplane/module/go.sum.txt

.PHONY: generate-docs
generate-docs: $(CRD_REF_DOCS) ## Regenerate the API reference, docs/reference/api.md.
	@mkdir -p docs/reference
	$(CRD_REF_DOCS) --log-level=WARN --source-path=api --config=hack/crd-ref-docs.yaml --renderer=markdown --output-path=docs/reference/.api.md
	sed -e 's/Required: \\{\\} <br \/>/Required <br \/>/' -e 's/Optional: \\{\\} <br \/>//' -e 's/ <br \/> *|$$/ |/' -e 's/ *$$//' docs/reference/.api.md | cat -s > docs/reference/api.md
	@rm -f docs/reference/.api.md

.PHONY: build-installer
build-installer: $(KUSTOMIZE) ## Write dist/install.yaml: everything a cluster needs in one file.
	@mkdir -p dist
	$(KUSTOMIZE) build config/default > dist/install.yaml

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code.
	$(GOLANGCI_LINT) fmt

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: lint-go lint-api ## Run golangci-lint, and kube-api-linter on the API.

.PHONY: lint-go
lint-go: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) run ./...

.PHONY: lint-api
lint-api: $(KUBE_API_LINTER)
	$(KUBE_API_LINTER) run --config .golangci-kal.yml ./api/...

.PHONY: lint-fix
lint-fix: $(GOLANGCI_LINT) $(KUBE_API_LINTER) ## Run the linters and repair what they can.
	$(GOLANGCI_LINT) run --fix ./...
	$(KUBE_API_LINTER) run --fix --config .golangci-kal.yml ./api/...

.PHONY: verify
verify: verify-generated verify-mod verify-fmt vet lint ## Fail on stale generated files, an untidy module, formatting, vet or lint findings.

.PHONY: verify-generated
verify-generated: generate ## Regenerate, and fail if that differs from what is committed (or staged).
	@if ! { git diff --exit-code -- $(GENERATED) && test -z "$$(git ls-files --others --exclude-standard -- $(GENERATED))"; }; then \
		git ls-files --others --exclude-standard -- $(GENERATED); \
		echo "generated files are stale: run 'make generate' and commit the result" >&2; exit 1; \
	fi

.PHONY: verify-mod
verify-mod: ## Fail if go mod tidy would change go.mod or go.sum.
	go mod tidy -diff

.PHONY: verify-fmt
verify-fmt: ## Fail if gofmt would change a file.
	@files=$$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 -r -n 200 sh -c 'for f; do [ -e "$$f" ] && echo "$$f"; done' _ | xargs -r gofmt -l); \
		if [ -n "$$files" ]; then echo "not formatted:"; echo "$$files"; exit 1; fi

##@ Deploy

.PHONY: install
install: manifests ## Apply the CustomResourceDefinitions to the current cluster.
	$(KUBECTL) apply --server-side --force-conflicts -k config/crd

.PHONY: deploy
deploy: $(KUSTOMIZE) ## Apply everything to the current cluster, with the image IMG.
	$(KUSTOMIZE) build config/default | sed 's|image: agentrooms/rooms:.*|image: $(IMG)|' | $(KUBECTL) apply --server-side --force-conflicts -f -

.PHONY: undeploy
undeploy: $(KUSTOMIZE) ## Remove everything from the current cluster, the rooms and their content too.
	$(KUSTOMIZE) build config/default | $(KUBECTL) delete --ignore-not-found -f -
