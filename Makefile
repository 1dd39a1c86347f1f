# Every target sets up what it needs by itself; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
SECONDS_EACH = $(if $(filter command% environment%,$(origin SECONDS)),$(SECONDS),30)
PYTHON_SOURCES := $(shell find cli common operator relay transceiver wire -path '*/voicecluster/*' -type f ! -name '*.so' ! -name '*.pyc')
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find wire/src relay/engine -name '*.rs' -o -name Cargo.toml | grep -v target)

# Images: `make images IMAGE_PREFIX=registry.example.com/voice/ TAG=1.2.3`, with Docker where it runs, else with buildah.
IMAGE_PREFIX ?= voicecluster-
TAG ?= dev
BASE ?= python:3.11-slim-bookworm
BUILDER ?= $(shell if docker info >/dev/null 2>&1; then echo docker build; elif command -v buildah >/dev/null; then echo buildah bud; fi)
BUILD_FLAGS ?=
COMPONENTS := relay transceiver operator
LOCALCLUSTER := tests/localcluster/localcluster
ASSETS = $(shell $(LOCALCLUSTER) assets)

.PHONY: help setup up test test-packages test-assets lint crds builder images e2e e2e-setup bench bench-relay bench-transceiver fuzz lock clean

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' Makefile

setup: .venv/.built ## everything that `up` and the unit tests need, into .venv/ and target/

.venv/.packages: requirements.lock
	@command -v cargo >/dev/null || { echo "Rust is missing: install it from https://rustup.rs" >&2; exit 1; }
	@.ci/packages libopus0
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make setup PYTHON=python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

.venv/.built: .venv/.packages pyproject.toml $(RUST_SOURCES)
	@echo "Building the engine and the wire module (a minute or two the first time)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

up: setup ## two regions on this machine and a page to talk to
	$(BIN)/voicecluster up examples/local.yaml

test-packages:
	@.ci/packages chromium firefox-esr espeak-ng nftables iproute2 pulseaudio

test-assets: # etcd, kube-apiserver and kubectl: the operator's tests talk to a real API server, without nodes
	@test -x $(ASSETS)/kubectl -a -x $(ASSETS)/etcd -a -x $(ASSETS)/kube-apiserver || { \
	    echo "Building the API server for the tests (about eight minutes, once)"; $(LOCALCLUSTER) build etcd kubectl kube-apiserver; }

test: setup test-packages test-assets ## unit, integration and browser tests
	cargo test --quiet --release --workspace
	$(BIN)/python -m pytest

lint: setup ## formatting, lints, types, walls
	cargo fmt --check
	cargo clippy --quiet --release --workspace --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

crds: setup ## write crds/ and the field reference anew from the models
	$(BIN)/python -m voicecluster.operator.api.crds

build/dist/.wheel: .venv/.packages $(RUST_SOURCES) $(PYTHON_SOURCES) pyproject.toml requirements.lock
	@rm -rf build/dist build/lib* build/bdist*
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	    --config-settings=--build-option=--py-limited-api=cp311 -w build/dist .
	@cp requirements.lock build/dist/constraints.txt
	@for component in $(COMPONENTS); do $(BIN)/python images/dependencies.py $$component > build/dist/$$component.txt; done
	@touch $@

builder: # what builds images
	@test -n "$(BUILDER)" || { echo "Neither Docker nor buildah is here: start Docker, or apt-get install buildah" >&2; exit 1; }

images: builder build/dist/.wheel ## container images of all components, with Docker or buildah: IMAGE_PREFIX=… TAG=…
	@for component in $(COMPONENTS); do \
	    echo "$(IMAGE_PREFIX)$$component:$(TAG)"; \
	    $(BUILDER) --quiet $(BUILD_FLAGS) --build-arg BASE=$(BASE) --tag $(IMAGE_PREFIX)$$component:$(TAG) \
	        --file images/$$component/Dockerfile build/dist; \
	done

e2e-setup: setup test-packages ## everything that `make e2e` needs; builds Kubernetes where there is neither KUBECONFIG nor Docker
	@if test -z "$${KUBECONFIG:-}" && ! docker info >/dev/null 2>&1; then \
	    .ci/packages $$($(LOCALCLUSTER) packages); $(LOCALCLUSTER) build; fi

e2e: e2e-setup ## end-to-end tests on KUBECONFIG, kind or the local cluster, whichever is here first
	$(BIN)/python -m pytest tests/e2e

bench: bench-relay bench-transceiver ## all benchmarks; rows in build/bench/

bench-relay: setup ## packets per second beside a plain C forwarder
	$(BIN)/python tests/bench/relay.py

bench-transceiver: setup ## calls per core and set-up times beside stock aiortc
	$(BIN)/python tests/bench/transceiver.py

fuzz: ## run every fuzz target for SECONDS=30 each
	@rustup run nightly rustc --version >/dev/null 2>&1 || { echo "Fuzzing needs a nightly compiler: rustup toolchain install nightly" >&2; exit 1; }
	@command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz
	cd wire/fuzz && for target in $$(cargo fuzz list); do mkdir -p "target/found/$$target"; cargo +nightly fuzz run "$$target" "target/found/$$target" "corpus/$$target" -- -max_total_time=$(SECONDS_EACH) -verbosity=0 -print_final_stats=1; done

lock: .venv/.packages ## write requirements.lock anew from what pyproject.toml asks for
	$(BIN)/python -m pip install --quiet --upgrade "setuptools>=80" "setuptools-rust>=1.11"
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --no-build-isolation -e ".[client,operator,relay,transceiver,dev]"
	$(BIN)/python -m pip freeze --exclude-editable --all | grep -v '^pip==' > requirements.lock

clean: ## remove everything that was built
	rm -rf .venv build target wire/fuzz/target *.egg-info wire/voicecluster/wire/*.so
