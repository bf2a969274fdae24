# The commands of this project. `make demo` and `make test` are all that a fresh machine needs.

CARGO ?= cargo
ROPEWALK = target/release/ropewalk

.PHONY: all build demo test exhaustive lint bare golden bench bench-release docs pages miri clean

all: build

build:
	$(CARGO) build --release --locked -p ropewalk

# The main job: the Themis paper's first figure, its numbers beside ours, on a page to look at: its path comes last.
demo: build
	$(ROPEWALK) reproduce themis-fig1 --report

# Everything that must hold. Lints run where clippy and rustfmt are installed.
# Compiled at one go: incremental artefacts would be written for nothing, and small functions not inlined across crates.
test: export CARGO_INCREMENTAL = 0
test: lint bare
	$(CARGO) test --workspace --locked
	@$(MAKE) --no-print-directory pages

# What `make test` does with smaller numbers, in full.
exhaustive:
	$(CARGO) test --workspace --locked -- --ignored

lint:
	@if $(CARGO) fmt --version >/dev/null 2>&1; then \
		rustfmt --edition 2024 --check $$(git ls-files '*.rs'); \
	else echo "rustfmt is not installed: formatting not checked"; fi
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
		$(CARGO) clippy --workspace --all-targets --locked -- -D warnings; \
	else echo "clippy is not installed: lints not checked"; fi

# Proof that the mechanism and the bytes on the wire need no standard library: programs without one link them.
bare:
	$(CARGO) build --quiet --manifest-path crates/themis/bare/Cargo.toml --target-dir target/bare
	$(CARGO) build --quiet --manifest-path crates/wire/bare/Cargo.toml --target-dir target/bare

# Writes the golden tables anew; review the diff as you would review a measurement.
golden:
	GOLDEN=write $(CARGO) test --release --locked -p ropewalk --test golden

# Speed, memory and set-up time on named workloads, beside the last release's. The machine should be idle.
# One of them: make bench WORKLOAD=incast, or BENCH=incast make bench. Figures: target/bench.json.
bench:
	$(CARGO) bench --locked -p ropewalk --bench hops -- $(WORKLOAD) $(BENCH)

# Writes crates/ropewalk/benches/release.json, which later benches are held against, and shows README's table.
bench-release:
	$(CARGO) bench --locked -p ropewalk --bench hops -- --release --full
	$(CARGO) bench --locked -p ropewalk --bench hops -- --release --markdown

# The documentation site, in target/site. Its tables come from the program.
docs: build target/docs-env/made
	NO_MKDOCS_2_WARNING=1 ROPEWALK=$(ROPEWALK) target/docs-env/bin/mkdocs build --strict --quiet
	@echo "the site: target/site/index.html"

# The site builds, and every command in it works and prints what it says, by the program that the tests have built.
pages:
	@if $(MAKE) --silent target/docs-env/made >target/docs-env.log 2>&1; then \
		NO_MKDOCS_2_WARNING=1 ROPEWALK=target/debug/ropewalk target/docs-env/bin/mkdocs build --strict --quiet && \
		ROPEWALK=target/debug/ropewalk target/docs-env/bin/pytest -q python/tests/test_docs.py; \
	else echo "no Python packages (target/docs-env.log says why): the documentation is not built, its commands not run"; fi

target/docs-env/made: docs/requirements.txt
	python3 -m venv target/docs-env
	target/docs-env/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	touch $@

# Needs the nightly toolchain with miri; checks the crates whose tests it can run.
miri:
	$(CARGO) +nightly miri test -p themis --lib
	$(CARGO) +nightly miri test -p engine --lib

clean:
	$(CARGO) clean
