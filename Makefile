# The menu. Anything that needs a decision is a verb of `cargo xtask`.
.PHONY: menu demo test check e2e bench bless release cargo
.DEFAULT_GOAL := menu

menu:
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/make \1@\2/p' Makefile | awk -F@ '{ printf "%-12s %s\n", $$1, $$2 }'

demo: cargo ## the main job on this machine, live; ONCE=1 ends when all is ready, KUBERNETES=1 builds a real one first
	cargo build --release
	cargo xtask demo $(if $(ONCE),--once) $(if $(KUBERNETES),--kubernetes)

test: cargo ## everything a fresh machine can prove, with counts and the reason of each skip
	cargo xtask test

check: cargo ## formatting, lints, the rules of the house, licences
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --workspace --test e2e -- -D warnings
	cargo xtask tidy
	@if command -v cargo-deny >/dev/null; then cargo deny check; else echo "skipped: cargo deny check (cargo-deny is not installed; cargo install --locked cargo-deny)"; fi

e2e: cargo ## the long proofs on a real Kubernetes; SMOKE=1 the shortest, STORY=word those with the word
	cargo xtask e2e $(if $(SMOKE),--smoke) $(STORY)
	$(if $(SMOKE)$(STORY),,cargo test --package slipway --release --test program kill)

bench: cargo ## what was promised, measured: ours, budget, met or not
	cargo xtask bench

release: cargo ## a static program with checksums, bill of materials and OCI image, in target/dist
	cargo xtask release

bless: cargo ## rewrite the golden files; read the diff before you commit it
	UPDATE_EXPECT=1 SLIPWAY_BLESS=1 cargo test --workspace
	cargo xtask tidy --bless

cargo:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.95 or newer, for example with rustup, and a C compiler" >&2; exit 1; }
