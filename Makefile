# Needs Go, make, git, bash and a C compiler (for the race detector and vale). Everything else comes from the module files.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN   := bin
DIST  := dist
TOOLS := $(BIN)/tools

# What "cairn version" says.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# -s -w: without symbol table and debug information the control plane links faster. "make build LDFLAGS=" keeps them.
LDFLAGS ?= -s -w
# Without C: with it the linker keeps what only a plugin could call (kustomize imports package plugin): 10 MB of memory.
export CGO_ENABLED ?= 0

# The sandbox: make sandbox NODES=50 ARGS="--data-dir /tmp/cairn"
NODES ?= 5
ARGS  ?=

# make unit TESTFLAGS="-run Rollout -count=1", make test TESTFLAGS=…, make bench BENCH=CompositeRest
TESTFLAGS ?=
# make test RERUNS=0: a test that fails is not run again
RERUNS    ?= 2
BENCH     ?= .

# make compat WITH=kruise, make compat WITH=v1.36.3; without a name all of the first sort
WITH ?=

# make installed PROGRAM=/image/cairn
PROGRAM ?= bin/cairn

# make check CHECKFLAGS="-run TestSweep/daemonset"
CHECKFLAGS ?=

# Licences that a dependency of the root module may have.
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT

##@ Use

.PHONY: sandbox
sandbox: build ## run Kubernetes in one process, with cairn in it (NODES=5, ARGS=--port=6443)
	@exec $(BIN)/cairn-sandbox --nodes=$(NODES) $(ARGS)

.PHONY: build
build: ## build bin/cairn, bin/cairn-sandbox and bin/kubectl (4 to 5 minutes the first time)
	@mkdir -p $(BIN)
	@pkgs='./cmd/cairn ./sandbox/cmd/cairn-sandbox ./sandbox/cmd/kubectl'; \
	hack/progress.sh 'building the control plane' "$$pkgs" \
		go build -v -buildvcs=false -ldflags '$(LDFLAGS) -X main.version=$(VERSION)' -o $(BIN)/ $$pkgs
	@ln -sfn cairn $(BIN)/kubectl-cairn && cp cmd/cairn/kubectl_complete-cairn $(BIN)/ # "kubectl cairn", and its completion

release_cmd = cd release && GOWORK=off go run ./cmd/release -version $(VERSION) -source .. -out ../$(DIST) -helm $(CURDIR)/$(TOOLS)/helm

.PHONY: image
image: ## build the manager's image into dist/: OCI layout and archive, linux/amd64 and linux/arm64, no daemon needed
	@$(release_cmd) image

.PHONY: chart
chart: $(TOOLS)/helm ## pack the Helm chart into dist/, and render it as manifests for kubectl
	@$(release_cmd) chart

.PHONY: release
release: $(TOOLS)/helm ## build all that a release has into dist/ (VERSION=v0.1.0)
	@$(release_cmd)

##@ Check

.PHONY: unit
unit: ## run the tests of the root module, which need no control plane (1 to 2 minutes; TESTFLAGS="-run Rollout")
	@go test -vet=off $(TESTFLAGS) ./...

.PHONY: test
test: build $(TOOLS)/gotestsum $(TOOLS)/helm ## run all tests of all modules (TESTFLAGS="-run Rollout")
	@GOTESTSUM=$(CURDIR)/$(TOOLS)/gotestsum LDFLAGS='$(LDFLAGS)' TESTFLAGS='$(TESTFLAGS)' RERUNS='$(RERUNS)' hack/test.sh

.PHONY: check
check: ## look for broken promises: simulation, every fault, scenarios (about 50 minutes)
	@LDFLAGS='$(LDFLAGS)' CHECKFLAGS='$(CHECKFLAGS)' hack/check.sh controllers

.PHONY: compat
compat: build $(TOOLS)/helm ## run the real controllers of others (WITH=argo-rollouts, lws, kruise), or the tests on another Kubernetes (WITH=v1.36.3)
	@cd proof && go build -o ../bin/compat/compat ./compat/cmd/compat
	@bin/compat/compat $(WITH)

.PHONY: installed
installed: build ## run the end-to-end tests with each manager as a process of its own (PROGRAM=bin/cairn, or that of an image)
	@cd proof && CAIRN_E2E_PROGRAM=$(abspath $(PROGRAM)) go test -vet=off -count=1 -timeout 30m -ldflags '$(LDFLAGS)' $(TESTFLAGS) ./e2e

.PHONY: calibrate
calibrate: ## see that the checker finds what it must: upstream's bugs, ours with a line spoilt (about 50 minutes)
	@LDFLAGS='$(LDFLAGS)' CHECKFLAGS='$(CHECKFLAGS)' hack/check.sh checker

.PHONY: differential
differential: ## run random programs beside upstream's controllers (SEEDS=300: three hours; FIRST=1)
	@cd proof && go test -vet=off -count=1 -timeout 6h -v -ldflags '$(LDFLAGS)' ./differential \
		-differential.seed=$(or $(FIRST),1) -differential.seeds=$(or $(SEEDS),10) -differential.steps=7

.PHONY: bench
bench: build ## run the benchmarks, side by side with upstream (BENCH=regexp, FULL=1: Workload with thousands of pods)
	@cd proof && FULL='$(FULL)' go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m -ldflags '$(LDFLAGS)' ./bench/...

.PHONY: verify
verify: ## generate, tidy, lint; fail when that changes a file
	@hack/verify.sh '$(MAKE)'

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## lint all modules (SINCE=main~1: only what changed since then)
	@$(TOOLS)/golangci-lint run $(if $(SINCE),--new-from-rev=$(SINCE) $(CHANGED),./... ./sandbox/... ./proof/...)
	@for module in release deploy/monitoring; do \
		(cd $$module && GOWORK=off $(CURDIR)/$(TOOLS)/golangci-lint run $(if $(SINCE),--new-from-rev=$(SINCE))) || exit 1; \
	done

# The packages with a Go file that differs from $(SINCE) or that git does not know yet.
CHANGED = $(sort $(foreach file,$(wildcard $(shell git diff --name-only $(SINCE) -- '*.go' ':!release' ':!deploy/monitoring'; \
	git ls-files --others --exclude-standard -- '*.go' ':!release' ':!deploy/monitoring')),./$(dir $(file))))

.PHONY: prose
prose: $(TOOLS)/vale ## count the findings in comments, messages and pages (SINCE=main~1: list those on lines changed since then)
	@VALE=$(CURDIR)/$(TOOLS)/vale hack/prose.sh $(SINCE)

.PHONY: prose-ratchet
prose-ratchet: $(TOOLS)/vale
	@VALE=$(CURDIR)/$(TOOLS)/vale hack/prose.sh --ratchet

.PHONY: actionlint
actionlint: $(TOOLS)/actionlint ## check the workflows of .github
	@$(TOOLS)/actionlint -shellcheck= -pyflakes= && echo 'actionlint: nothing to say'

.PHONY: apidiff
apidiff: $(TOOLS)/apidiff ## compare the exported API of the root module with the last tag v*
	@APIDIFF=$(CURDIR)/$(TOOLS)/apidiff hack/apidiff.sh

# The root module by itself: what is in bin/cairn, and what reaches those who import it. The other modules are for tests.
.PHONY: vuln
vuln: $(TOOLS)/govulncheck ## look for known vulnerabilities that the root module reaches (asks vuln.go.dev)
	@GOWORK=off $(TOOLS)/govulncheck ./...

.PHONY: licenses
licenses: $(TOOLS)/go-licenses ## see that all that the root module is built from has a licence of the list in the Makefile
	@GOWORK=off; export GOWORK; \
	said=$$($(TOOLS)/go-licenses check ./... --allowed_licenses=$(LICENSES) 2>&1) || { echo "$$said" >&2; exit 1; }; \
	echo 'licenses: all are among $(LICENSES)'

##@ Change

.PHONY: generate
generate: $(TOOLS)/controller-gen ## write deepcopy methods, CRDs and whatever has a go:generate line
	@hack/generate.sh

.PHONY: fmt
fmt: $(TOOLS)/golangci-lint ## format all Go files
	@$(TOOLS)/golangci-lint fmt

.PHONY: tidy
tidy: ## tidy the module files: root, sandbox, proof, tools
	@hack/tidy.sh

.PHONY: hooks
hooks: ## install the git hook that refuses a commit whose subject is too long
	@hooks=$$(git rev-parse --path-format=absolute --git-path hooks); mkdir -p "$$hooks" && ln -sf $(CURDIR)/hack/commit-msg "$$hooks/commit-msg"

.PHONY: clean
clean: ## remove what was built
	@rm -rf $(BIN) $(DIST)

.PHONY: help
help: ## print this
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The tools of tools.mod. GOWORK=off, because a workspace refuses -modfile; the binaries then run inside the workspace.
tool_golangci-lint  := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
tool_gotestsum      := gotest.tools/gotestsum
tool_controller-gen := sigs.k8s.io/controller-tools/cmd/controller-gen
tool_actionlint     := github.com/rhysd/actionlint/cmd/actionlint
tool_apidiff        := golang.org/x/exp/cmd/apidiff
tool_govulncheck    := golang.org/x/vuln/cmd/govulncheck
tool_go-licenses    := github.com/google/go-licenses/v2

# Helm needs newer libraries of Kubernetes than the others can be built with: a module file of its own.
$(TOOLS)/helm: helm.mod helm.sum
	@mkdir -p $(TOOLS)
	@GOWORK=off GOFLAGS= hack/progress.sh 'building helm' '-modfile=helm.mod helm.sh/helm/v4/cmd/helm' \
		go build -v -buildvcs=false -ldflags '-s -w' -modfile=helm.mod -o $@ helm.sh/helm/v4/cmd/helm
	@touch $@

# Vale has a module file of its own as well. Its parser of Go, tree-sitter, is C.
$(TOOLS)/vale: vale.mod vale.sum
	@mkdir -p $(TOOLS)
	@GOWORK=off GOFLAGS= CGO_ENABLED=1 hack/progress.sh 'building vale' '-modfile=vale.mod github.com/vale-cli/vale/v3/cmd/vale' \
		go build -v -buildvcs=false -ldflags '-s -w' -modfile=vale.mod -o $@ github.com/vale-cli/vale/v3/cmd/vale
	@touch $@

# A linter that an older Go has built refuses newer sources: the Go release is part of what a tool depends on.
go_stamp := $(TOOLS)/.$(shell go env GOVERSION)
$(go_stamp):
	@mkdir -p $(TOOLS) && rm -f $(TOOLS)/.go* && touch $@

$(TOOLS)/%: tools.mod tools.sum $(go_stamp)
	@GOWORK=off GOFLAGS= hack/progress.sh 'building $*' '-modfile=tools.mod $(tool_$*)' \
		go build -v -buildvcs=false -modfile=tools.mod -o $@ $(tool_$*)
	@touch $@
