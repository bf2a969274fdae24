# The commands of this project. `make demo` and `make test` are all that a fresh machine needs.

CARGO ?= cargo
ROPEWALK = target/release/ropewalk

.PHONY: all build demo test lint bare golden bench bench-release miri clean

all: build

build:
	$(CARGO) build --release --locked -p ropewalk

# The main job: the Themis paper's first figure, its numbers beside ours.
demo: build
	$(ROPEWALK) reproduce themis-fig1

# Everything that must hold. Lints run where clippy and rustfmt are installed.
test: lint bare
	$(CARGO) test --workspace --locked

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

# Needs the nightly toolchain with miri; checks the crates whose tests it can run.
miri:
	$(CARGO) +nightly miri test -p themis --lib
	$(CARGO) +nightly miri test -p engine --lib

clean:
	$(CARGO) clean
