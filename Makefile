# Every task of people and CI is a target. `make` lists them.

# A user's workspace or flags must not change the build or generated files.
export GOWORK = off
export GOFLAGS := $(strip $(GOFLAGS) -mod=readonly -buildvcs=false)

MODULES = . tools devcluster integration integration/browser integration/sinks integration/chart cloud compat bench examples examples/node-tagger
VERSION = $(shell git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null)
# The time limits of the tests bound a hang, also on a slow machine.
# SQLite is compiled without the race detector: see tools/cmd/gate/steps.go.
RACE = -race -gcflags=github.com/ncruces/go-sqlite3-wasm/v6=-race=false
GO_TEST = CGO_ENABLED=1 go test $(RACE) -shuffle=on -timeout 40m

.DEFAULT_GOAL := help
.NOTPARALLEL: # fast failures first
.PHONY: help demo build cloud image test lint cross release vuln unit integration bench compare soak torture fuzz control-plane fmt generate screenshots cluster cluster-down clean gate linter preflight race

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build control-plane ## start a cluster, make changes in it and run tattler (about a minute once built); NATS=1 adds a message bus
	@go build -C integration -o ../bin/demo ./cmd/demo
	@cd integration && exec ../bin/demo -tattler ../bin/tattler $(if $(NATS),-nats) -- $(ARGS)

build: preflight ## build bin/tattler
	@echo "building bin/tattler" >&2
	@go build -trimpath -ldflags '-X github.com/tattler-dev/tattler/internal/buildinfo.stamped=$(VERSION)' -o bin/tattler ./cmd/tattler

cloud: preflight ## build bin/tattler-cloud, which adds the sinks of AWS, Google Cloud and Azure
	@echo "building bin/tattler-cloud" >&2
	@go build -C cloud -trimpath -ldflags '-X github.com/tattler-dev/tattler/internal/buildinfo.stamped=$(VERSION)' -o ../bin/tattler-cloud ./cmd/tattler-cloud

image: ## build the image for amd64 and arm64 with docker, podman or buildah; PROGRAM=tattler-cloud, IMAGE=, PLATFORMS=, PUSH=1
	@VERSION='$(VERSION)' PROGRAM='$(PROGRAM)' IMAGE='$(IMAGE)' PLATFORMS='$(PLATFORMS)' PUSH='$(PUSH)' tools/image.sh

test: gate ## run everything that must pass: linters, unit tests, tests on a real control plane
	@bin/gate lint cross unit integration

# With -race, the dependencies are compiled as the tests need them, and not once more for the linters. In a workspace, they are
# read once, and not once per module. A workspace has one version of each dependency: a module that would raise the version of
# another one's is APART, or else much would be compiled twice. PLAIN modules are tested without -race.
PLAIN = tools integration/chart
APART = $(PLAIN) integration/sinks examples examples/node-tagger
TOGETHER = $(filter-out $(APART),$(MODULES))
LINT = CGO_ENABLED=1 GOFLAGS='$(GOFLAGS) $(if $(filter $(1),$(PLAIN)),,$(RACE))' '$(CURDIR)/bin/golangci-lint' run --allow-serial-runners

lint: race linter ## check every module with the linters of .golangci.yml
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff) || exit 1; done
	@rm -f bin/go.work bin/go.work.sum && cd bin && GOWORK= go work init $(TOGETHER:%=../%)
	@echo "lint: $(TOGETHER)" && GOWORK='$(CURDIR)/bin/go.work' $(LINT) $(TOGETHER:%=./%/...)
	@$(foreach m,$(APART),echo "lint: $(m)" && (cd $(m) && $(call LINT,$(m)) ./...) &&) :

cross: preflight ## check that the programs and their tests compile for macOS and Windows
	@go build -C tools -o ../bin/cross ./cmd/cross && bin/cross darwin windows

unit: gate ## run the tests that need no cluster
	@bin/gate unit

integration: gate ## run the tests on a real control plane
	@bin/gate integration

bench: control-plane ## compare the engine with client-go (hours); ARGS='-quick' or '-run REGEXP'
	@tools/redis.sh && tools/rabbitmq.sh
	@go build -C bench -o ../bin/bench ./cmd/bench
	@cd bench && exec ../bin/bench $(ARGS)

compare: control-plane build ## put Tattler and its peers through the same minutes (10 minutes once built); ARGS='-runs 1'
	@echo "building the OpenTelemetry Collector (the first time: some minutes)" >&2
	@go build -C bench/collector -trimpath -o ../../bin/collector .
	@go build -C bench -o ../bin/compare ./cmd/compare
	@bin/compare -tattler bin/tattler -collector bin/collector $(ARGS)

soak: control-plane ## run the model tests with 10,000 seeds each, and 20,000 pods on a real API server (hours)
	@tools/preflight.sh race
	INFORMER_SEEDS=10000 CHECKPOINT_SEEDS=10000 CLIENTGO_SEEDS=10000 go test -timeout 4h -run 'Model|Protocol|Differential' ./informer/...
	@cd integration && TATTLER_SOAK=20000 TATTLER_DROPIN=300 $(GO_TEST) -timeout 4h ./soak ./dropin
	@cd compat && go mod download && TATTLER_COMPAT_ALL=1 TATTLER_MANAGER=10000 $(GO_TEST) -timeout 2h ./...

torture: control-plane ## kill the daemon KILLS (1000) times on a real control plane, with and without other faults (hours); RUN=TestTortureKills: only without
	@tools/preflight.sh race
	@cd integration && TATTLER_TORTURE_KILLS='$(or $(KILLS),1000)' $(GO_TEST) -timeout 8h -v -run '$(or $(RUN),TestTorture)' ./torture

release: preflight ## make the files of a release in dist/: checks for vulnerabilities, builds all of it twice, the second time without a cache, and compares the bytes
	@cd tools && go run ./cmd/vulncheck -release .. ../cloud && go run ./cmd/release -replace -twice $(ARGS)

vuln: preflight ## look for known vulnerabilities; without a network it says that it did not
	@cd tools && go run ./cmd/vulncheck .. ../cloud

fuzz: preflight ## run every fuzz target for FUZZTIME (10m)
	@tools/fuzz.sh '$(or $(FUZZTIME),10m)'

control-plane: preflight
	@go run -C devcluster ./cmd/devcluster build >/dev/null

fmt: linter ## format every module as the linters require
	@for m in $(MODULES); do (cd $$m && '$(CURDIR)/bin/golangci-lint' fmt ./...) || exit 1; done

generate: preflight ## regenerate the event schema and the references of events, commands, configuration and metrics
	go test ./event -update
	go test ./internal/config -update
	go test ./internal/ops -update
	go test ./internal/cli -update

screenshots: preflight ## make the pictures of the web page in README.md again (docs/pictures)
	@tools/chromium.sh
	@cd integration/browser && go test -count=1 -run TestPictures . -update

cluster: preflight ## start a cluster in the background; its kubeconfig is .devcluster/kubeconfig
	@go run -C devcluster ./cmd/devcluster up --dir ../.devcluster

cluster-down: preflight ## stop that cluster and remove its data
	@go run -C devcluster ./cmd/devcluster down --dir ../.devcluster

clean: ## remove bin/ and dist/ (not the user's caches, not a running cluster)
	@rm -rf bin dist

gate: preflight
	@go build -C tools -o ../bin/ ./cmd/gate gotest.tools/gotestsum

linter: preflight
	@echo "building golangci-lint (the first time: one to two minutes)" >&2
	@go build -C tools -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

preflight:
	@tools/preflight.sh

race:
	@tools/preflight.sh race
