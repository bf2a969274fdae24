# The commands of this project. A fresh machine needs only `make demo` and `make test`.

CARGO ?= cargo
ROPEWALK = target/release/ropewalk
CARGO_TARGET = $(abspath $(or $(CARGO_TARGET_DIR),target))

.PHONY: all build frames workshop demo test exhaustive lint deny advisories farm mutants bare golden bench bench-release browser docs pages gallery \
	python-package python-tests wheel dist miri lab lab-full lab-smoke lab-speed clean

all: build

# The Python package is named for its features, so that `pip install .` compiles only that package and PyO3 afterwards.
build:
	$(CARGO) build --release --locked -p ropewalk -p python --bin ropewalk

# Builds the program of `ropewalk tor` and `ropewalk nic`, which carries real frames.
frames:
	$(CARGO) build --release --locked -p frames -p ropewalk -p python --bins

# Builds the program of those who work on ropewalk: random trials, and the source of the reference pages.
workshop:
	$(CARGO) build --release --locked -p workshop -p ropewalk -p python --bins

# Compares five schemes with a page, then runs a paper's experiment beside the paper's numbers. Ends with what to type next.
DEMO = results/demo
demo: build
	@echo
	@$(ROPEWALK) compare quickstart --schemes ecmp,rps,ar,drill,themis --record -o $(DEMO) --report --quiet
	@echo
	@echo "A paper's experiment, its numbers beside ours:"
	@echo
	@$(ROPEWALK) reproduce themis-fig1 --report --quiet
	@echo
	@echo "The comparison as a page: $(DEMO)/report.html"
	@echo
	@echo "Next:"
	@echo "  $(ROPEWALK) explain slowest $(DEMO)/ar-1     why was a flow slow under adaptive routing?"
	@echo "  $(ROPEWALK) new my-fabric                    a commented scenario of your own: my-fabric.toml"
	@echo "  $(ROPEWALK) list                             schemes, NICs, switches, workloads, papers"

# Runs all tests and, if clippy and rustfmt are installed, the lints.
# Incremental compilation is off: its artefacts would not be used, and it prevents inlining across crates.
# Random tests draw from one seed, so that a green tree stays green, and 32 cases each where no other number is stated.
# `make exhaustive` draws anew, 256 cases or 1,000; PROPTEST_RNG_SEED=7 PROPTEST_CASES=256 make test does so, too.
# What is quick comes first: lints, then the tests inside the crates, then those of whole programs.
test: export CARGO_INCREMENTAL = 0
test: export PROPTEST_RNG_SEED ?= 1
test: export PROPTEST_CASES ?= 32
test: lint deny bare
	$(CARGO) test --workspace --locked --lib --bins
	$(CARGO) test --workspace --locked --test '*'
	$(CARGO) test --workspace --locked --doc
	@$(MAKE) --no-print-directory python-tests

# Runs all tests in full: also the long ones, of which `make test` runs smaller versions, and random ones with all their cases.
exhaustive: wheel advisories
	$(CARGO) test --workspace --locked -- --include-ignored

lint:
	@if $(CARGO) fmt --version >/dev/null 2>&1; then \
		rustfmt --edition 2024 --check $$(git ls-files '*.rs'); \
	else echo "rustfmt is not installed: formatting not checked"; fi
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
		$(CARGO) clippy --workspace --all-targets --locked -- -D warnings; \
	else echo "clippy is not installed: lints not checked"; fi
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --locked --quiet -p strand

# Checks the licences and sources of all dependencies.
deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		$(CARGO) deny --locked --log-level error check licenses sources bans; \
	else echo "LEFT OUT: licences and sources of dependencies: cargo-deny is not installed"; fi

# Looks for known vulnerabilities of all dependencies in the RustSec database.
advisories:
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
		echo "LEFT OUT: known vulnerabilities of dependencies: cargo-deny is not installed"; \
	elif $(CARGO) deny --log-level off fetch db >/dev/null 2>&1; then \
		$(CARGO) deny --locked check advisories; \
	elif ls -d $${CARGO_HOME:-$$HOME/.cargo}/advisory-dbs/*/ >/dev/null 2>&1; then \
		echo "the RustSec database could not be renewed; an older copy is used"; \
		$(CARGO) deny --locked --offline check advisories; \
	else echo "LEFT OUT: known vulnerabilities of dependencies: the RustSec database cannot be reached"; fi

# Makes random trials of the whole program until it is interrupted, or for some minutes: make farm MINUTES=20 SEED=7
farm: workshop
	$(ROPEWALK)-workshop fuzz $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

# Links `themis` and `wire` into programs without a standard library, which proves that they need none.
bare:
	$(CARGO) build --quiet --manifest-path crates/themis/bare/Cargo.toml --target-dir target/bare
	$(CARGO) build --quiet --manifest-path crates/wire/bare/Cargo.toml --target-dir target/bare

# Rewrites the golden tables; review the diff as you would review a measurement.
golden:
	GOLDEN=write $(CARGO) test --release --locked -p ropewalk --test stories golden

# Measures speed, memory and set-up time on named workloads, beside the last release's. The machine should be idle.
# For one workload: make bench WORKLOAD=incast, or BENCH=incast make bench. Figures go to target/bench.json.
bench:
	$(CARGO) bench --locked -p ropewalk --bench hops -- $(WORKLOAD) $(BENCH)

# Writes crates/ropewalk/benches/release.json, with which later runs are compared, and which docs/speed.md shows.
bench-release:
	$(CARGO) bench --locked -p ropewalk --bench hops -- --release --full

# Makes the page that runs the engine in a browser, target/browser/ropewalk.html. It needs the compiler's target for WebAssembly
# (rustup target add wasm32-unknown-unknown); without the target the page is left out, and says so.
browser: export CARGO_INCREMENTAL = 0
browser:
	@CARGO="$(CARGO)" scripts/browser

# Builds the documentation site in target/site. The program generates its tables.
docs: workshop browser target/docs-env/made
	NO_MKDOCS_2_WARNING=1 ROPEWALK=$(ROPEWALK) target/docs-env/bin/mkdocs build --strict --quiet
	@echo "the site: target/site/index.html"

# Writes the text that the program gives, such as settings and commands, into the pages of docs.
pages: python-package target/python-env/made
	ROPEWALK=$(CARGO_TARGET)/debug/ropewalk target/python-env/bin/python docs/tools/site.py

# Makes the pictures of docs/gallery.md anew, from the commands of that page.
gallery: python-package target/python-env/made
	ROPEWALK=$(CARGO_TARGET)/debug/ropewalk PYTHONPATH=$(CURDIR)/target/python PYTHONDONTWRITEBYTECODE=1 \
		target/python-env/bin/python docs/tools/gallery.py

# Builds the Python package for the tests in target/python, together with the Rust tests, so that hardly anything is compiled
# twice. (A wheel needs other features of some dependencies, so all crates above them would be compiled again.)
python-package: export CARGO_INCREMENTAL = 0
python-package:
	$(CARGO) build --workspace --locked --lib --bins --tests
	@rm -rf target/python && mkdir -p target/python && cp -R python/ropewalk target/python/
	@cp $(CARGO_TARGET)/debug/lib_native.so target/python/ropewalk/_native.abi3.so 2>/dev/null || \
		cp $(CARGO_TARGET)/debug/lib_native.dylib target/python/ropewalk/_native.abi3.so

# Runs all of python/tests: the package and its executors, reports in a browser, captures, the documentation and its commands.
# Tests of missing packages are skipped, and listed at the end.
python-tests: python-package browser
	@if $(MAKE) --silent target/python-env/made >target/python-env.log 2>&1; then \
		export NO_MKDOCS_2_WARNING=1 ROPEWALK=$(CARGO_TARGET)/debug/ropewalk PYTHONPATH=$(CURDIR)/target/python && \
		target/python-env/bin/mkdocs build --strict --quiet && \
		target/python-env/bin/pytest -q -rs -n auto --maxprocesses 4 --dist worksteal --durations=5 python/tests; \
	else echo "LEFT OUT: all of python/tests and the documentation: no Python packages (target/python-env.log says why)"; fi

# If PyPI does not have all packages, those of the documentation are enough; the tests list the missing ones.
target/python-env/made: docs/requirements.txt python/requirements-test.txt
	python3 -m venv target/python-env
	target/python-env/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	target/python-env/bin/pip install --quiet --disable-pip-version-check -r python/requirements-test.txt && touch $@ || \
		echo "not all of python/requirements-test.txt could be installed"

# Installs the package with `pip install .` into an environment of its own, and makes a run, as users do.
wheel:
	python3 -m venv --clear target/wheel-env
	target/wheel-env/bin/pip install --quiet --disable-pip-version-check .
	cd target/wheel-env && bin/python -c "import ropewalk as rw; print(rw.run('quickstart'))" && bin/ropewalk --version

# Makes what users install, in target/dist: a wheel, a static program with a container file, sources and checksums (docs/install.md).
# Needs maturin, cargo-zigbuild and Zig, which it takes from PyPI. make dist RELEASE=1 refuses if versions and tag differ.
dist:
	python3 scripts/dist $(if $(RELEASE),--release)

target/docs-env/made: docs/requirements.txt
	python3 -m venv target/docs-env
	target/docs-env/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	touch $@

# Real RDMA clients in two QEMU guests, through `ropewalk nic` and `ropewalk tor` (docs/soft-tor.md). Root on a Debian installs
# QEMU and builds the guests first; what is missing is named, and counts as skipped. For some tests: make lab TESTS="A2 A3".
# With MINUTES=6, tests that come later than that are skipped, too.
lab: lab-smoke
	PYTHONDONTWRITEBYTECODE=1 python3 scripts/lab/lab.py $(CARGO_TARGET)/debug/ropewalk $(if $(MINUTES),--minutes $(MINUTES)) $(TESTS)

lab-full: lab-smoke
	PYTHONDONTWRITEBYTECODE=1 python3 scripts/lab/lab.py $(CARGO_TARGET)/debug/ropewalk --full $(TESTS)

# A ToR between network namespaces, by packet sockets; and Themis in eBPF, held to the test vectors inside the kernel.
# It builds what the tests build: alone, the program has other features of some dependencies, and they would be compiled again.
lab-smoke: export CARGO_INCREMENTAL = 0
lab-smoke:
	$(CARGO) build --workspace --locked --lib --bins --tests
	PYTHONDONTWRITEBYTECODE=1 python3 scripts/lab/smoke.py $(CARGO_TARGET)/debug/ropewalk
	PYTHONDONTWRITEBYTECODE=1 python3 scripts/lab/ebpf.py

# The speed of the ToR between packet sockets, in frames per second of its CPU time. Root only.
lab-speed: frames
	PYTHONDONTWRITEBYTECODE=1 python3 scripts/lab/packets.py $(ROPEWALK)

# Needs the nightly toolchain with miri; checks the crates whose tests it can run.
miri:
	$(CARGO) +nightly miri test -p themis --lib
	$(CARGO) +nightly miri test -p engine --lib

# Checks the tests: makes small changes to the code, and lists those that the changed crate's own tests do not notice
# (docs/mutants.md). Some mutants of each part: make mutants PART="tor sack" COUNT=50 SEED=7; COUNT=0 makes all.
mutants:
	scripts/mutants $(PART) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

clean:
	$(CARGO) clean
