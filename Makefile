# The entry points of the project. `make help` lists them.

SHELL       := /bin/bash
export PATH := $(CURDIR)/.tools/bin:$(PATH)

GOLANGCI_VERSION := v2.15.0
NFPM_VERSION     := v2.45.0
API_LINTERS      := @redocly/cli@2.77.0 @stoplight/spectral-cli@6.16.3
GOVULNCHECK      := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VERSION          := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS          := -s -w -X main.version=$(VERSION)
# How long each fuzz target runs, and which packages test, race, fuzz, soak and cover cover.
FUZZTIME ?= 10s
PKG      ?= ./...
# The packages with goroutines of their own, which make race covers without PKG.
CONCURRENT := ./ingest/journal ./ingest/intake ./ingest/httpd/... ./delivery/lease ./delivery/queue/... ./delivery/submit \
              ./delivery/carrier/smpp ./delivery/codec ./relay/cache/... ./relay/db
# go test with the servers that the tests share. Tests wait more than they compute, so four
# packages run at a time on two cores.
GOTEST = go run ./deploy/testservers "$(PKG)" go test -p 4
# Flags of make chaos, such as -seed 7.
CHAOS    ?=

.DEFAULT_GOAL := help
.PHONY: help build run deps test race soak check arch docs golden fuzz bench chaos cover vuln release man image

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/penstock
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/penstock ./cmd/penstock

run: build ## build, and start with what the environment configures (nothing: embedded)
	bin/penstock serve

deps: ## install what the tests need: PostgreSQL, Redis, InfluxDB, Kannel, Postfix, Node, Java, Chromium, verifiers
	deploy/test-deps.sh

test: ## every test that a change can break, real back ends included; of some packages with PKG=./relay/...
	deploy/test-deps.sh $(PKG)
	$(GOTEST) -timeout 45m $(PKG)

race: PKG = $(CONCURRENT)
race: ## the packages with goroutines of their own under the race detector; others with PKG=./...
	deploy/test-deps.sh -race $(PKG)
	$(GOTEST) -race -timeout 180m $(PKG)

# In a soak TestNoValueIsInAnotherRecord sends a million requests, so not under the race detector.
soak: ## what is worth running weekly: faults, fuzz targets, the race detector over all tests, a million records
	@failed=0; export PENSTOCK_TEST_SOAK=1; \
	$(MAKE) chaos || failed=1; \
	$(MAKE) fuzz FUZZTIME=30s || failed=1; \
	PENSTOCK_TEST_MIXING=2000 $(MAKE) race PKG="$(PKG)" || failed=1; \
	go test -count=1 -timeout 180m ./cmd/penstock/e2e/failures -run NoValueIsInAnotherRecord || failed=1; \
	exit $$failed

check: .tools/bin/golangci-lint-$(GOLANGCI_VERSION) arch docs ## format, vet, lint, architecture, links, API documentation
	@unformatted=$$(git ls-files '*.go' | xargs -r gofmt -l); \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	.tools/bin/golangci-lint-$(GOLANGCI_VERSION) run

arch: ## the import picture of docs/architecture.md
	go test ./cmd/penstock -run Imports

docs: .tools/node/node_modules/.bin/spectral ## links of all Markdown files; the API documentation under two linters
	go test ./deploy -run Links
	go test ./ingest/openapi -run Linters

golden: ## write the golden files anew; read the difference before committing it
	grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -r -n1 dirname | sort -u | xargs -r -I{} go test {} -update
	go test ./cmd/penstock/e2e/contract -run TestTrafficKeepsTheContract -examples

fuzz: ## run every fuzz target for FUZZTIME (10s) each
	@dirs=$$(go list -f '{{.Dir}}/*_test.go' $(PKG)) || exit 1; failed=0; \
	while IFS=: read -r file target; do \
	  echo "$$(dirname "$$file") $${target#func }"; \
	  go test "$$(dirname "$$file")" -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(FUZZTIME) </dev/null || failed=1; \
	done < <(grep -sHEo '^func Fuzz[A-Za-z0-9_]+' $$dirs); exit $$failed

bench: build ## load the daemon with frames and SMS and print the table of docs/benchmarks.md
	go run ./deploy/bench
	go test -run '^$$' -bench BenchmarkVerify ./relay/ledger/merkle

chaos: build ## break gateways, back ends and endpoints under load and print what was lost: 0 (docs/reliability.md)
	go run ./deploy/chaos $(CHAOS)
	$(if $(CHAOS),,go run ./deploy/bench -only overload)

cover: ## what the tests cover, per function, and coverage.html
	@mkdir -p bin
	$(GOTEST) -timeout 60m -coverprofile=bin/cover.out -coverpkg=./... $(PKG)
	go tool cover -func=bin/cover.out | tail -1
	go tool cover -html=bin/cover.out -o bin/coverage.html

vuln: ## known vulnerabilities that the program or its tests can reach (asks vuln.go.dev)
	go run $(GOVULNCHECK) -test ./...

release: .tools/bin/nfpm-$(NFPM_VERSION) ## build bin/release: binaries for amd64 and arm64, Debian packages, SBOMs, SHA256SUMS
	NFPM=$< deploy/release/release.sh

man: ## write the manual page bin/penstock.1; man -l shows it
	@mkdir -p bin
	go run ./cmd/penstock man > bin/penstock.1

image: ## build the container image penstock
	docker build -f deploy/Dockerfile --build-arg VERSION=$(VERSION) -t penstock .

.tools/bin/golangci-lint-$(GOLANGCI_VERSION):
	@mkdir -p .tools/bin
	GOBIN=$(CURDIR)/.tools/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/bin/golangci-lint $@

.tools/bin/nfpm-$(NFPM_VERSION):
	@mkdir -p .tools/bin
	GOBIN=$(CURDIR)/.tools/bin CGO_ENABLED=0 go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	mv .tools/bin/nfpm $@
	ln -sf $(notdir $@) .tools/bin/nfpm

.tools/node/node_modules/.bin/spectral:
	@if command -v npm >/dev/null; then mkdir -p .tools/node && npm install --prefix .tools/node --no-audit --no-fund --silent $(API_LINTERS); \
	  else echo "npm is missing: the API documentation is not linted"; fi
