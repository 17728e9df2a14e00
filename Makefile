# SPDX-License-Identifier: Apache-2.0
# `make help` lists what there is. Everything longer than a few lines lives in hack/.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# One set of build flags for every Go command, here and in hack/, so that all of them share one
# build cache and binaries don't depend on where the clone lies.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# What the image is called, and what `make deploy` runs. Override it with a reference of your registry.
IMG ?= local.test/c5c3/c5c3-operator:dev
IMAGE_TAR ?= bin/c5c3-operator-image.tar
IMAGE_PLATFORMS ?= linux/amd64
# go: the Go program in hack/image, needs nothing but Go. docker, podman or buildah: the Dockerfile.
IMAGE_BUILDER ?= go
# Where config/default puts the operator.
OPERATOR_NAMESPACE ?= c5c3-operator-system
# Further arguments for `go test`, for chainsaw and for the operator under `make run`.
TEST_ARGS ?=
E2E_ARGS ?=
RUN_ARGS ?=
# How long `make soak` kills, how many orders rotate meanwhile, and the seed that it draws from (0: a new one).
DURATION ?= 10m
ORDERS ?= 20
SEED ?= 0
export VERSION REVISION IMG IMAGE_TAR IMAGE_PLATFORMS IMAGE_BUILDER OPERATOR_NAMESPACE E2E_ARGS DURATION ORDERS SEED

STACK := go -C tests/stack run ./cmd/stack
KUBECTL := hack/kubectl.sh
tool = $$(hack/tools/tool.sh $(1))
BUILD_ARGS := -ldflags '-s -w -X main.version=$(VERSION)'

##@ Try it
.PHONY: demo stack-up stack-status stack-down stack-deploy olm-up
demo: ## Show an order's whole life on a local real stack: minted, backed up, delivered, rotated, revoked
	hack/demo.sh
stack-up: ## Start the local stack: Kubernetes node, Keystone, K-ORC, ESO, KV store (first time: builds them)
	$(STACK) up
stack-status: ## Print one line per component of the stack: state, version, endpoint, log file
	$(STACK) status
stack-down: ## Stop the local stack; with PURGE=1 forget its state too (what was built stays in the cache)
	$(STACK) down $(if $(PURGE),--purge)
stack-deploy: ## Start the stack, build the image, load it into the node, deploy the operator, wait for it
	hack/stack-deploy.sh
olm-up: ## Start a stack with OLM and without K-ORC and ESO, named olm (first time: builds OLM)
	C5C3_STACK_NAME=$${C5C3_STACK_NAME:-olm} $(STACK) up --only keystone,kv,olm

##@ Develop
.PHONY: build run generate manifests test e2e olm-e2e soak lint verify verify-invalid-cr-fixtures support-data
build: ## Build the operator and the kubectl plugin into bin/
	go build $(BUILD_ARGS) -o bin/ ./cmd/...
	install -m 0755 cmd/kubectl-c5c3/kubectl_complete-c5c3 bin/
run: manifests ## Run the operator on this machine against $KUBECONFIG
	go run ./cmd/c5c3-operator $(RUN_ARGS)
generate: ## Generate the DeepCopy methods, the admission corpora and docs/metrics.md
	$(call tool,controller-gen) object:headerFile=hack/boilerplate.go.txt paths=./api/... paths=./internal/externalsecrets/... paths=./controllers/keystoneroleassignment/korcapi/...
	go generate ./tests/e2e/...
	go run ./internal/metrics/generate docs/metrics.md
manifests: ## Generate CRDs and the operator's ClusterRole into config/
	$(call tool,controller-gen) crd paths=./api/v1alpha1 output:crd:artifacts:config=config/crd/bases
	$(call tool,controller-gen) crd paths=./api/agentprimitives/... output:crd:artifacts:config=config/crd/agentprimitives
	$(call tool,controller-gen) rbac:roleName=c5c3-operator paths=./controllers/... paths=./cmd/... output:rbac:artifacts:config=config/rbac
test: ## Run unit, property and envtest tests of every module (builds kube-apiserver and etcd once if needed)
	hack/test.sh $(TEST_ARGS)
e2e: ## Run the Chainsaw suites on the local stack, or on the cluster of $KUBECONFIG if that is another
	hack/e2e.sh
olm-e2e: ## Install by one Subscription on a stack with OLM, upgrade while 50 orders live and are used, and more (first time: builds OLM)
	hack/olm-e2e.sh
soak: ## Kill everything at random while orders rotate and are used, DURATION=10m ORDERS=20 SEED=...; print the ledger
	hack/soak.sh
lint: ## Run golangci-lint on every module of ours
	hack/lint.sh
coverage: ## Write docs/contract-coverage.md: every row of the contracts and the tests that show it
	go run ./tests/coverage
verify-coverage: ## Fail when a row of the contracts has no test, or a part of the API has no row
	go run ./tests/coverage -check
verify: ## Fail when generated files, go.mod files or formatting are not what is committed
	hack/verify.sh
verify-invalid-cr-fixtures: ## Generate the admission corpora anew and fail when they are not what is committed
	go generate ./tests/e2e/...
	@[[ -z $$(git status --porcelain -- 'tests/e2e/invalid-*') ]] || { git --no-pager diff --stat -- 'tests/e2e/invalid-*'; \
		echo "the admission corpora are not what is committed: commit the result of 'make generate'" >&2; exit 1; }
support-data: ## Print what a bug report needs: states, conditions, Events and logs, never a Secret
	hack/support-data.sh

##@ Ship
.PHONY: image dist install uninstall deploy undeploy bundle bundle-validate operatorhub catalog
image: ## Build the operator's image into $IMAGE_TAR under the name $IMG
	hack/image.sh
dist: ## Write dist/install.yaml, which installs everything with the image $IMG where there is no OLM
	hack/dist.sh
install: ## Install the CRDs into the cluster of $KUBECONFIG
	$(call tool,kustomize) build config/crd | $(KUBECTL) apply --server-side -f -
uninstall: ## Remove the CRDs and with them every order, which a running operator revokes first
	$(call tool,kustomize) build config/crd | $(KUBECTL) delete --ignore-not-found -f -
deploy: ## Deploy CRDs and operator with the image $IMG into the cluster of $KUBECONFIG
	hack/render.sh | $(KUBECTL) apply --server-side -f -
# The CRDs stay: were they deleted together with the operator, nobody would be left to revoke the
# orders, and their finalizers would hold the CRDs for ever. Run `make uninstall` first to remove both.
undeploy: ## Remove the operator from the cluster of $KUBECONFIG; CRDs and orders stay
	hack/render.sh --without-crds | $(KUBECTL) delete --ignore-not-found -f -
bundle: manifests ## Generate the OLM bundle into bundle/ (BUNDLE_VERSION=..., see hack/bundle.sh, for another one)
	hack/bundle.sh
bundle-validate: ## Validate both flavours of the bundle as OperatorHub's pipelines do; unexplained warnings fail
	hack/bundle-validate.sh
catalog: ## Render our file-based catalog from catalog/ into bin/catalog and validate it with opm (first time: builds OLM)
	hack/olm-catalog.sh
operatorhub: ## Lay out bin/operatorhub/operators/c5c3-operator, ready to submit, and check it
	hack/operatorhub.sh

##@ Tools and this page
.PHONY: help tools clean
tool-%: ## Build one pinned tool and print its path: controller-gen, kustomize, golangci-lint, chainsaw, operator-sdk
	@hack/tools/tool.sh $*
tools: ## Build every pinned tool
	@for tool in $$(hack/tools/tool.sh --list); do hack/tools/tool.sh "$$tool"; done
clean: ## Remove bin/
	rm -rf bin
help: ## Print this page
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9%-]+:.*## / { printf "  %-27s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
