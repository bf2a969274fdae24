# The commands of this project. `make demo` and `make test` are all that a fresh machine needs.

CARGO ?= cargo
ROPEWALK = target/release/ropewalk
CARGO_TARGET = $(abspath $(or $(CARGO_TARGET_DIR),target))

.PHONY: all build demo test exhaustive lint bare golden bench bench-release docs python-package python-tests wheel miri clean

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
	@$(MAKE) --no-print-directory python-tests

# What `make test` does with smaller numbers, in full.
exhaustive: wheel
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

# The Python package as the tests see it, in target/python: built together with the Rust tests, so hardly anything is compiled
# twice. (A wheel would have other features of some dependencies, and then everything above them is another build.)
python-package: export CARGO_INCREMENTAL = 0
python-package:
	$(CARGO) build --workspace --locked --lib --bins --tests
	@rm -rf target/python && mkdir -p target/python && cp -R python/ropewalk target/python/
	@cp $(CARGO_TARGET)/debug/lib_native.so target/python/ropewalk/_native.abi3.so 2>/dev/null || \
		cp $(CARGO_TARGET)/debug/lib_native.dylib target/python/ropewalk/_native.abi3.so

# All of python/tests: the package and its executors, reports in a browser, captures, the documentation and its commands. What
# is not installed is skipped, and said at the end.
python-tests: python-package
	@if $(MAKE) --silent target/python-env/made >target/python-env.log 2>&1; then \
		export NO_MKDOCS_2_WARNING=1 ROPEWALK=$(CARGO_TARGET)/debug/ropewalk PYTHONPATH=$(CURDIR)/target/python && \
		target/python-env/bin/mkdocs build --strict --quiet && \
		target/python-env/bin/pytest -q -rs --durations=5 python/tests; \
	else echo "LEFT OUT: all of python/tests and the documentation: no Python packages (target/python-env.log says why)"; fi

# Where PyPI does not have all of them, what the documentation needs is enough, and the tests say what is missing.
target/python-env/made: docs/requirements.txt python/requirements-test.txt
	python3 -m venv target/python-env
	target/python-env/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	target/python-env/bin/pip install --quiet --disable-pip-version-check -r python/requirements-test.txt && touch $@ || \
		echo "not all of python/requirements-test.txt could be installed"

# `pip install .` into an environment of its own, and a run: what users do, with the optimiser's last word.
wheel:
	python3 -m venv --clear target/wheel-env
	target/wheel-env/bin/pip install --quiet --disable-pip-version-check .
	cd target/wheel-env && bin/python -c "import ropewalk as rw; print(rw.run('quickstart'))" && bin/ropewalk --version

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
