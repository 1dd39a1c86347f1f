# Every target sets up what it needs by itself; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
SECONDS_EACH = $(if $(filter command% environment%,$(origin SECONDS)),$(SECONDS),30)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find wire/src relay/engine -name '*.rs' -o -name Cargo.toml | grep -v target)

.PHONY: help setup up test test-packages lint bench bench-relay bench-transceiver fuzz lock clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' Makefile

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

test: setup test-packages ## unit, integration and browser tests
	cargo test --quiet --release --workspace
	$(BIN)/python -m pytest

lint: setup ## formatting, lints, types, walls
	cargo fmt --check
	cargo clippy --quiet --release --workspace --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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
