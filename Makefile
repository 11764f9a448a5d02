# Hookgate: the only entry. Each target is one line of `make help`.

TARGET := $(or $(CARGO_TARGET_DIR),target)
HOOKGATE := $(TARGET)/debug/hookgate
CARGO_FLAGS := $(if $(CI),--locked)

.PHONY: help setup backends build plugins languages demo test chaos model fuzz bench lint \
	infra-check infra-docs infra-image infra-e2e clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what the build needs beyond cargo (says what it does; harmless to repeat)
	@plugins/setup.sh

backends: ## Install the servers that tests run against: redis-server, and a stand-in for AWS
	@tests/setup.sh

build: setup ## Build the gateway and the test programs (one development build serves demo and tests)
	cargo build $(CARGO_FLAGS) --workspace --all-targets

plugins: build ## Build the plugins into target/plugins, and put their presets beside them
	$(HOOKGATE) plugin build plugins --out $(TARGET)/plugins
	@rm -f $(TARGET)/plugins/*.json && cp plugins/*/presets/*.json $(TARGET)/plugins/

languages: plugins ## Build, test and measure the plugins in JavaScript and Python
	@plugins/languages/build.sh

demo: plugins ## Deliver real webhooks to the real gateway on this machine, kill it, and show what happened
	$(TARGET)/debug/demo

test: backends plugins ## Run all everyday tests
	cargo test $(CARGO_FLAGS) --workspace
	cargo test $(CARGO_FLAGS) --manifest-path plugins/Cargo.toml

chaos: backends plugins ## Kill and break for much longer than every day: CHAOS_SEEDS=1000 CHAOS_REMOTE_SEEDS=60 HERD_SECONDS=60
	@CARGO_FLAGS="$(CARGO_FLAGS)" tests/chaos.sh

bench: backends plugins ## Measure the speed ladder, and latency at half of it (release build; Markdown, and JSON in target/bench)
	cargo build $(CARGO_FLAGS) --release -p hookgate --bin hookgate --example ladder
	@$(TARGET)/release/examples/ladder sandbox
	@tests/bench/ladder.sh
	@tests/bench/plugins.sh

model: backends ## Try many more schedules and sequences on the protocol than every day: CHAOS_SEEDS=20000 MODEL_CASES=5000
	CHAOS_SEEDS=$(or $(CHAOS_SEEDS),20000) CHAOS_FROM=$(or $(CHAOS_FROM),400) MODEL_CASES=$(or $(MODEL_CASES),5000) \
		cargo test $(CARGO_FLAGS) -p hookgate --test it -- chaos:: model:: --nocapture

fuzz: ## Try machine-made input on everything that reads what comes from outside: FUZZ_SECONDS=60 for each target
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) tests/fuzz/run.sh

lint: setup ## Check format, lints, licences, bans and sources
	cargo fmt --all --check
	cargo fmt --all --check --manifest-path plugins/Cargo.toml
	cargo fmt --all --check --manifest-path tests/fuzz/Cargo.toml
	cargo clippy $(CARGO_FLAGS) --workspace --all-targets $(if $(CI),-- -D warnings)
	cargo clippy $(CARGO_FLAGS) --manifest-path plugins/Cargo.toml --all-targets $(if $(CI),-- -D warnings)
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny --workspace check licenses bans sources
	cargo deny --manifest-path plugins/Cargo.toml --config deny.toml --workspace check licenses bans sources

infra-check: ## Check infra/: format, validate, terraform test, policies, tables, names, manifests (needs terraform)
	@infra/tests/setup.sh
	@infra/tests/check.sh

infra-docs: ## Write the tables of variables and outputs in infra/ anew
	@infra/tests/setup.sh
	@$(TARGET)/infra/bin/python infra/tests/docs.py --write

infra-image: plugins ## Put the image's root filesystem together and run it: without rights, read-only (needs no Docker)
	@infra/tests/setup.sh
	@infra/image/test.sh

infra-e2e: backends plugins ## Apply queue, claims and secrets to a stand-in for AWS, run the gateway on them, destroy
	@infra/tests/end-to-end.sh

clean: ## Remove everything that was built
	cargo clean
	cargo clean --manifest-path plugins/Cargo.toml
