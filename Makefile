VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
KERNEL := $(VENV)/.kernel
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.tools
JOBS ?= 2
TESTERS ?= 3
SIZE ?= full

# Without stored bytecode every process that a target starts compiles ivme again, which doubles its start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv wheel check test test-long test-browser sanitize clang demo lint tidy format typecheck coverage bench bench-peers bench-peers-record docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## make .venv with ivme (editable) and all it needs; again when pyproject.toml or the kernel changes

$(KERNEL): pyproject.toml CMakeLists.txt scripts/find-python $(wildcard src/ivme/kernel/*)
	@command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { \
		echo "ivme's kernel is built from source: install a C++20 compiler, for example with 'apt-get install g++'"; exit 1; }
	@python="$$(bash scripts/find-python)" && { $(BIN)/python -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear $(VENV); }
	@echo "1/3 getting the tools that build the kernel"
	@$(PIP) 'scikit-build-core>=0.10' 'nanobind>=2.4' 'cmake>=3.15' ninja setuptools wheel
	@echo "2/3 compiling the kernel: a minute or two on two cores, less when little has changed"
	@$(PIP) --no-build-isolation --editable .
	@touch $@

# pip compiles on one core only; some packages have files for other versions of Python, which do not compile.
$(STAMP): $(KERNEL) scripts/find-java scripts/find-psql
	@echo "3/3 getting what ivme, Spark and the tests need: about a minute, most of it for Spark"
	@$(PIP) --no-compile --no-build-isolation --editable '.[dev,spark,plot]'
	@$(BIN)/python -m compileall -q -j $(JOBS) $(VENV)/lib >/dev/null 2>&1 || :
	@bash scripts/find-java
	@bash scripts/find-psql
	@touch $@

$(TOOLS): $(STAMP)
	@echo "getting what checks the code and builds the documentation"
	@$(PIP) --no-build-isolation --editable '.[tools,docs]'
	@touch $@

check: lint typecheck ## what to run after each change: style, types, and the quick unit tests; a minute on two cores
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m "not long and not slow and not browser" tests/unit tests/golden src

# One more than cores: a third of the time a worker waits for Spark, or for processes that it has started.
test: $(STAMP) ## run the tests, except the long ones and those in a browser
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadgroup -m "not long and not browser"

test-long: $(STAMP) ## run the long tests, and those of Hypothesis with all examples, others each time
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m long
	IVME_RANDOM=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "hypothesis and not long and not browser"

test-browser: $(TOOLS) ## run the page's tests in chromium, which is installed on Debian; screenshots are left in build/
	@bash scripts/find-chromium
	$(BIN)/python -m pytest tests/browser -m browser -rs

sanitize: $(STAMP) ## run the kernel's tests on builds with sanitizers: addresses and undefined behaviour, then races
	BIN=$(CURDIR)/$(BIN) JOBS=$(JOBS) bash scripts/sanitize address
	BIN=$(CURDIR)/$(BIN) bash scripts/sanitize thread

clang: $(STAMP) ## build the kernel with clang, warnings being errors, and run its unit tests
	BIN=$(CURDIR)/$(BIN) bash scripts/clang

demo: $(KERNEL) ## a first look, then a flight network kept up to date on local Spark, beside Spark recomputing it; in demo/
	$(BIN)/ivme demo first
	@$(MAKE) --no-print-directory $(STAMP)
	@bash scripts/find-java --needed
	$(BIN)/ivme demo flights --folder demo

lint: $(TOOLS) ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror src/ivme/kernel/*.hpp src/ivme/kernel/*.cpp

tidy: $(TOOLS) ## run clang-tidy over the kernel
	BIN=$(CURDIR)/$(BIN) JOBS=$(JOBS) bash scripts/tidy

format: $(TOOLS) ## format the code, and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i src/ivme/kernel/*.hpp src/ivme/kernel/*.cpp

typecheck: $(TOOLS) ## check the types
	$(BIN)/mypy

# The interrupt tests set trace functions of their own, which would end the measurement.
coverage: $(TOOLS) ## which lines of src/ivme the tests run; in build/coverage, and those that none runs on the terminal
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m "not long and not browser" --ignore tests/interrupts \
		--cov --cov-report term-missing:skip-covered --cov-report html:build/coverage

bench: $(STAMP) ## measure exponents, speeds and memory; some minutes
	for name in exponents order_search short_lists join_count bulk_load expressions access ordered following tables enumerate read_strategies memory recovery serve tpch skew peeling triangles marks closure; do \
		echo "== $$name" && $(BIN)/python -m benchmarks.$$name || exit 1; \
	done
	$(BIN)/python -m benchmarks.kernel
	for name in spark_refresh spark_stream; do echo "== $$name" && $(BIN)/python -m benchmarks.$$name || exit 1; done

bench-peers: $(STAMP) ## measure against DuckDB, SQLite, PostgreSQL, Pathway and Spark; SIZE=quick for a look; writes bench-peers/
	$(BIN)/python -m benchmarks.peers --size $(SIZE)

bench-peers-record: $(STAMP) ## the same, and write the tables of README.md and docs/
	$(BIN)/python -m benchmarks.peers --size $(SIZE) --record

docs: $(TOOLS) ## build the documentation into site/; needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(TOOLS) ## build dist/*.whl and the source distribution, install the wheel into an empty environment, run the tutorial there
	BIN=$(CURDIR)/$(BIN) bash scripts/wheel

clean: ## remove what the other targets made, except .venv
	rm -rf site build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .benchmarks
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
