# Defines the commands for developers. Each runs the set-up that it needs and prints it.

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sluicegate
export PATH := $(CACHE)/bin:$(PATH)
# The same flags everywhere, so that no crate is built twice.
CARGO := cargo
export PREFIX ?= /usr
export PURGE
# File with the Ed25519 key that signs `make dist`.
export SIGNING_KEY
# Directory of cargo's outputs, which CARGO_TARGET_DIR moves.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Seconds that each fuzz target runs.
SECONDS_EACH ?= 12
SEED ?= 1
RECORD_SECONDS ?= 600
RECORD ?= tests/records/fuzz.json
# Further arguments of `bench run`, and a build of sluice-proxy that it measures beside the present one.
FLAGS ?=
BEFORE ?=
COMPARED := $(if $(BEFORE),--before $(BEFORE))
# Fuzz targets; all of them if empty.
TARGETS ?=
# Runs tests. With the targets of `build`, cargo selects the same features: another selection compiles half of the workspace
# again.
SUITE := scripts/suite.sh
ALL := --workspace --all-targets
# Tests by what they need, which is also their place in the tree: tests/README.md.
NEEDS_CONTAINERS := binary(containers) + test(/(^|::)(postgres|prometheus)::/)
NEEDS_CLIENTS := binary(clients) + binary(peers) + test(/(^|::)clients::/)
AGENT_TESTS := services/sandbox-runtime/agent/run.test.mjs services/openclaw-headers-plugin/headers.test.mjs \
  services/sandbox-openclaw/agent/agent.test.mjs services/agents/agents.test.mjs
# Stages of each tier. CI runs those of `test` before it installs anything else.
CHECK_STAGES := setup-check format tidy processes
TEST_STAGES := setup-test format pages tidy+build+web-test test-image containers examples
# Tests that `make stress` repeats.
TESTS ?=

.PHONY: help demo check test test-all prove stress ci clean
.PHONY: setup setup-check setup-test setup-clients release images proxy-image test-image build format lint deny tidy docs
.PHONY: processes containers clients examples pages
.PHONY: install uninstall package dist dist-check test-openclaw
.PHONY: fuzz fuzz-control fuzz-record
.PHONY: agents-record
.PHONY: bench bench-quick bench-starts bench-openclaw bench-micro bench-before bench-check bench-accept bench-build bench-cores
.PHONY: bench-peers
.PHONY: web web-test web-check

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Run one agent and show its record (against your LiteLLM if LITELLM_BASE_URL and LITELLM_MASTER_KEY are set)
	@scripts/demo.sh

check: ## Check format, house rules and all that starts processes only: the loop of a developer (under ten minutes)
	@scripts/stages.sh $(CHECK_STAGES)

test: ## Set up and run everything that needs Docker, but no foreign clients (under 25 minutes)
	@scripts/stages.sh $(TEST_STAGES)

test-all: ## Set up and run every test, with LiteLLM, OpenClaw, SDKs and a browser
	@scripts/stages.sh $(TEST_STAGES) setup-clients clients

stress: ## Run TESTS="name ..." 30 times each beside a load
	@scripts/setup.sh test
	@scripts/stress.sh $(TESTS)

prove: ## Check and record what CI cannot see: the set-up of `check` and of `test` on a bare Debian
	@scripts/prove-setup.sh

setup: ## Install missing software for everything: tests, fuzzing, benchmarks
	@scripts/setup.sh all

setup-check: ## Install only what `make check` needs
	@scripts/setup.sh check

setup-clients: ## Install what `make test-all` needs: LiteLLM, OpenClaw, SDKs, chat clients, Chromium, the benchmark's servers
	@scripts/setup.sh test-all

setup-test: ## Install only what `make test` needs: Docker, images, Postgres, nginx, promtool, test tools
	@scripts/setup.sh test

images: ## Build the sandbox images if their inputs have changed
	@scripts/setup.sh images
	@scripts/setup.sh openclaw

proxy-image: ## Build the data plane's static binary and its image for operators, if their sources have changed (minutes)
	@scripts/setup.sh docker
	@services/proxy-image/build.sh

test-image: ## Build the data plane's image and the static programs as tests need them, of libraries that the build has compiled
	@scripts/setup.sh docker
	@PROFILE=dev services/proxy-image/build.sh
	@PROFILE=dev scripts/dist.sh programs

pages: ## Build the dashboard (services/web) into services/web/dist
	@scripts/web.sh build

web-test: ## Check and test the sources of the dashboard
	@scripts/web.sh test

web: pages web-test ## Build the dashboard, and check and test its sources

web-check: ## Check that the dashboard builds the same twice, and has small pages
	@scripts/web.sh check

build: ## Build all programs and tests
	$(CARGO) build $(ALL) --locked

release: ## Build the programs of a release, with the pages of the dashboard
	@scripts/web.sh build
	$(CARGO) build --release --locked --package proxy --package runner-cli

install: release ## Build a release and install it below PREFIX=/usr, with manual pages, completions and systemd units
	@scripts/package.sh install $(TARGET)/release "$(DESTDIR)"

uninstall: ## Remove what `make install` has put below PREFIX; PURGE=yes also configuration, state, images and user
	@scripts/package.sh uninstall "$(DESTDIR)"

package: release ## Build a release and make a Debian package of it in its target directory
	@scripts/package.sh deb $(TARGET)/release $(TARGET)/package

dist: ## Make what users install without a compiler, in target/dist; SIGNING_KEY=FILE signs it (15 minutes)
	@scripts/web.sh build
	@scripts/setup.sh images
	@scripts/setup.sh openclaw
	@programs=$$(scripts/dist.sh programs) && scripts/dist.sh pack "$$programs" $(TARGET)/dist

dist-check: ## Pack what `make dist` has built twice, and compare
	@programs=$$(scripts/dist.sh programs) && scripts/dist.sh check "$$programs"

format: ## Check the format of Rust sources
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fmt --manifest-path bench/peers/pingora/Cargo.toml --check

lint: ## Check clippy, documentation and shell scripts
	@scripts/setup.sh lint
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --locked -p proxy --features internals --benches -- -D warnings
	$(CARGO) clippy --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --no-deps -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items
	shellcheck -x .ci/run scripts/*.sh scripts/litellm/query-engine services/*.sh services/*/*.sh platform/*/*.sh
	shellcheck tests/clients/compose/standins/litellm tests/clients/compose/standins/p*

deny: ## Check licences, sources and banned crates
	@scripts/setup.sh lint
	cargo-deny --locked --offline check bans licenses sources
	cargo-deny --locked --offline --manifest-path fuzz/Cargo.toml --config deny.toml check bans licenses sources
	$(CARGO) fetch --locked --quiet --manifest-path bench/peers/pingora/Cargo.toml
	cargo-deny --locked --offline --manifest-path bench/peers/pingora/Cargo.toml --config deny.toml check bans licenses sources

tidy: ## House rules: imports, loops, documents, language (`cargo run -p tidy --bin measure` prints the figures)
	@# One rule asks cargo what each program selects, which needs the manifests of all crates.
	$(CARGO) fetch --locked --quiet --target $$(rustc -vV | sed -n 's/^host: //p')
	$(CARGO) nextest run --locked -p tidy

processes: ## Run tests beside the code, of the shipped agents, and whole-system tests that start processes only
	$(SUITE) processes $(ALL) -E 'not ($(NEEDS_CONTAINERS) + $(NEEDS_CLIENTS) + package(tidy))'
	node --test $(AGENT_TESTS)

containers: ## Run all tests but those of foreign clients: with containers, Postgres, nginx
	$(SUITE) containers $(ALL) -E 'not ($(NEEDS_CLIENTS) + package(tidy))'
	node --test $(AGENT_TESTS)

clients: ## Run tests with the real LiteLLM, OpenClaw, SDKs, browser, and the benchmark's peers
	$(SUITE) clients $(ALL) -E '$(NEEDS_CLIENTS)'

examples: ## Run the examples in the documentation of the code
	$(CARGO) test --workspace --locked --doc --quiet

test-openclaw: ## Install OpenClaw VERSION=2026.8.2 (800 MB) and test the features supported with that version
	@scripts/test-openclaw.sh "$(VERSION)"

fuzz: ## Fuzz the inputs from agents, upstreams, gateways and clients: twelve targets, SECONDS_EACH=12, reproducible unless SEED=0
	@scripts/setup.sh fuzz
	@SEED=$(SEED) SECONDS_EACH=$(SECONDS_EACH) TARGETS="$(TARGETS)" scripts/fuzz.sh run

fuzz-control: ## Check that the fuzzers find defects: with spoiled oracles each target must fail, most within seconds
	@scripts/setup.sh fuzz
	@SECONDS_EACH=300 TARGETS="$(TARGETS)" scripts/fuzz.sh control

fuzz-record: ## Fuzz each target for RECORD_SECONDS=600 and write the figures to RECORD (an hour; fewer TARGETS are faster)
	@scripts/setup.sh fuzz
	@SECONDS_EACH=$(RECORD_SECONDS) TARGETS="$(TARGETS)" scripts/fuzz.sh record $(RECORD)

bench: bench-build ## Benchmark Sluicegate and its peers (FLAGS, BEFORE: another build), store the run, update the README's figures
	$(TARGET)/release/bench run --keep bench/runs --readme README.md $(COMPARED) $(FLAGS)

bench-quick: bench-build ## Run a shorter benchmark without storing it (2 minutes)
	$(TARGET)/release/bench run --rounds 2 --span 200 $(COMPARED) $(FLAGS)

bench-before: bench-build ## Save this build as a baseline: BEFORE=$(TARGET)/release/sluice-proxy.before compares with it
	cp $(TARGET)/release/sluice-proxy $(TARGET)/release/sluice-proxy.before

bench-peers: ## Install Envoy and compile a Pingora proxy (2 minutes); FLAGS="--peers envoy,pingora" of bench measures them
	@scripts/setup.sh peers

bench-cores: ## Build target/bench-cores.tar.gz: the workloads threads-* for a machine with many cores, nothing to install there
	@scripts/bench-cores.sh "$(BEFORE)"

bench-starts: ## Measure the start of runs: cold, warm and as in the predecessor; update the table of docs/src/explanation/benchmarks.md (5 minutes)
	@$(MAKE) --no-print-directory images release
	$(CARGO) run --release --locked --quiet -p tests --example bench-starts -- bench/runs/starts.json docs/src/explanation/benchmarks.md

bench-openclaw: ## Measure time to the first call and memory of sandbox:openclaw; update its README's table (4 minutes)
	@$(MAKE) --no-print-directory images
	@scripts/images.sh openclaw
	@$(MAKE) --no-print-directory release
	$(CARGO) run --release --locked --quiet -p tests --example bench-openclaw -- services/sandbox-openclaw/README.md

agents-record: ## Play every scenario with every coding agent that ships; update docs/src/reference/works-with.md (12 minutes)
	@$(MAKE) --no-print-directory images
	$(CARGO) build --locked --quiet --workspace --bins
	$(CARGO) run --locked --quiet -p tests --example agents-record -- tests/records/agents.json docs/src/reference/works-with.md

bench-micro: ## Measure the cost of single steps of a call, of shared ones on several threads (2 minutes)
	$(CARGO) bench --locked -p proxy --features internals --bench steps

bench-check: bench-build ## Compare instructions, locked ones, allocations, system calls per request with the baseline; 5 % more fail
	$(TARGET)/release/bench instructions

bench-accept: bench-build ## Store the current counts per request as the baseline
	$(TARGET)/release/bench instructions --accept

bench-build:
	@scripts/setup.sh bench
	$(CARGO) build --release --locked --quiet -p bench -p proxy --bins

ci: ## Run all stages of CI and print the seconds of each
	@SECOND_LOOK=yes scripts/stages.sh --record tests/records/ci.json $(TEST_STAGES) setup+lint deny web-check \
	  clients+fuzz bench-check

docs: ## Build the book into target/book with mdBook and check links, anchors and paths
	@scripts/setup.sh book
	mdbook build docs
	$(CARGO) nextest run --locked -p tidy --test documents

clean: ## Remove build outputs; the cache in $(CACHE) stays
	$(CARGO) clean
