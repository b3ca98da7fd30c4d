# Names for the commands of daily work; each is one that a person could type. README.md explains them.

PYTHON ?= python3
BIN := .venv/bin
MKDOCS := $(BIN)/python -m mkdocs
# The same input gives the same bytes: dates of the build come from the last commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# MkDocs 1.6 and Material are pinned on purpose; their notices about successors are known.
export NO_MKDOCS_2_WARNING = 1
export DISABLE_MKDOCS_2_WARNING = true

.PHONY: build deployable serve test check preview compare benchmark lock clean

build: .venv/locked  ## check everything, then the site into site/, strictly
	$(BIN)/python -m macros check
	$(MKDOCS) build --strict

deployable: .venv/locked  ## like build, and refuses a site that nobody answers for (data/site.yml)
	$(BIN)/python -m macros check --deploy
	$(MKDOCS) build --strict

serve: .venv/locked  ## the site on http://127.0.0.1:8000/, rebuilt at each edit
	$(MKDOCS) serve

test: .venv/locked  ## all tests
	$(BIN)/python -m pytest --ignore=tests/test_portable.py --ignore=tests/test_calculator_script.py
	$(BIN)/python -m pytest tests/test_portable.py tests/test_calculator_script.py  # by themselves: V8 waits for ever beside Playwright's event loop

check: .venv/locked  ## all findings in pages and data
	$(BIN)/python -m macros check

preview: .venv/locked  ## make preview PR=12 COMMIT=abc BASE=main: the site with a banner, not for search engines, and which figures change
	PREVIEW_PR=$(or $(PR),$(error say which pull request: make preview PR=12 COMMIT=abc)) PREVIEW_COMMIT=$(COMMIT) $(MKDOCS) build --strict
	$(if $(BASE),$(BIN)/python -m macros changes --base $(BASE) --site site --page site/preview/changes/index.html \
		--json site/preview/changes/changes.json || test $$? = 3  # 3: a verdict flipped, which the report says)

compare: .venv/locked .cache/peer/locked  ## our errors in the simulation and those of other tools on measured runs, into data/
	$(BIN)/python -m tests.record_simulation
	$(BIN)/python -m tests.record_peers

benchmark: .venv/locked .cache/peer/locked  ## how long builds and estimates take, also against another tool
	$(BIN)/python -m tests.benchmark
	$(BIN)/python -m tests.benchmark_calculator
	.cache/peer/bin/python -m tests.benchmark_estimator

lock: .venv/locked  ## write requirements.txt anew from requirements.in (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header requirements.in -o requirements.txt

clean:  ## remove what builds and tests leave behind
	rm -rf site .pytest_cache .hypothesis .cache/open-data

.cache/peer/locked: requirements-benchmark.txt
	$(PYTHON) -m venv .cache/peer
	.cache/peer/bin/python -m pip install --quiet --require-hashes -r requirements-benchmark.txt
	touch .cache/peer/locked

.venv/locked: requirements.txt
	$(PYTHON) -m venv .venv || { echo "Python cannot make a virtual environment here; try: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.txt
	touch .venv/locked
