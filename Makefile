.DEFAULT_GOAL := help
# PYTHON=python3.13 and DEPENDENCIES=lowest (or newest, instead of the pinned ones) have environments of their own.
VENV := .venv$(if $(PYTHON),-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))$(if $(DEPENDENCIES),-$(DEPENDENCIES))
BIN := $(VENV)/bin
# The demonstrations have a small environment, without the tools of the tests.
DEMO := .venv-demo
DATABASE := demo.db
FAST := not postgres and not redis and not browser and not slow
# Tests wait for servers, child processes and clocks, so two workers more than processors keep these at work.
WORKERS := --numprocesses $(shell python3 -c 'import os; print((os.cpu_count() or 1) + 2)') --dist worksteal
SOURCES := libs tests benchmarks examples scripts

.PHONY: help demo page test test-fast coverage test-citus simulate plant proof check format bench bench-full docs pins release-check

help: ## What can be made here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(DEMO)/.ready ## See the main job: an agent is killed in the middle and goes on
	$(DEMO)/bin/python examples/langgraph_agent.py --keep agent-demo.db

page: $(DEMO)/.ready ## The page in the browser, of a demo database (or DATABASE=agent-demo.db, which `make demo` leaves)
	test -e $(DATABASE) || $(DEMO)/bin/python examples/demo_database.py $(DATABASE)
	$(DEMO)/bin/threadmark serve --write $(DATABASE)

test: $(VENV)/.ready ## The whole suite, on real databases (Postgres, PgBouncer, Redis and Chromium are installed if they can be)
	@scripts/ensure-postgres >/dev/null
	@scripts/ensure-pgbouncer >/dev/null || true
	@scripts/ensure-redis >/dev/null
	@scripts/ensure-chromium >/dev/null
	@# Without compiled files every worker and every child process would compile the packages again.
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(WORKERS)
	@# Again without the compiled parts, if there are any, and on the newest Postgres: tests/length.py.
	case "$$($(BIN)/python -c 'from threadmark.runtime.compiled import IN_USE; print(IN_USE)')" in \
	    True) POSTGRES_BIN="$$($(BIN)/python scripts/newest_postgres.py)" THREADMARK_PURE_PYTHON=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(WORKERS);; \
	    False) ;; \
	    *) exit 1;; \
	esac

test-fast: $(VENV)/.ready ## What needs no server and is quick, in two minutes
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m "$(FAST)" $(WORKERS)

coverage: $(VENV)/.ready ## What the quick tests reach of libs/, by lines and branches; fails below the floor of pyproject.toml
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m "$(FAST)" $(WORKERS) --cov --cov-report= \
	    --deselect tests/test_public_names.py::test_what_is_needed_rarely_is_not_imported_with_the_package

test-citus: $(VENV)/.ready ## What needs Citus, on a coordinator with two workers (it must be installed: docs/how-to/citus.md)
	@scripts/ensure-postgres >/dev/null
	@scripts/ensure-chromium >/dev/null
	THREADMARK_CITUS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest tests/citus tests/cli/test_reading.py \
	    tests/cli/test_manage.py tests/page/test_api.py tests/page/test_browser_reading.py \
	    tests/page/test_browser_changing.py -k citus $(WORKERS) -rs

simulate: $(VENV)/.ready ## Simulated worlds: SEEDS=2000, HOURS=8, or PLAN='17' for one again (tests/simulator/README.md)
	PYTHONPATH=tests $(BIN)/python tests/simulator/simulate.py

plant: $(VENV)/.ready ## Plant faults into copies of the code, to see that tests find them; FAULTS='--list' (tests/planted/README.md)
	@scripts/ensure-postgres >/dev/null
	@scripts/ensure-pgbouncer >/dev/null || true
	@scripts/ensure-redis >/dev/null
	PYTHONPATH=tests $(BIN)/python tests/planted/plant.py $(FAULTS)

proof: $(VENV)/.ready ## Attack each guarantee and write docs/proof.md (PROOF=--long for the long forms)
	$(BIN)/python benchmarks/proof.py $(PROOF)

check: $(VENV)/.ready ## Format, lint, types, and what is written from other code
	$(BIN)/python scripts/write_twins.py --check
	$(BIN)/python scripts/write_tests_table.py --check
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 libs
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin libs

format: $(VENV)/.ready ## Format the sources, mend what can be mended, and write the asyncio methods and the table of tests
	$(BIN)/python scripts/write_twins.py
	$(BIN)/python scripts/write_tests_table.py
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

bench: $(VENV)/.ready ## Speed and size, compared with the peers, in a few minutes; fails if a required figure is missed
	@scripts/ensure-postgres >/dev/null
	$(BIN)/python benchmarks/report.py --output benchmarks/quick

bench-full: $(VENV)/.ready ## The same with everything that is measured, in an hour and a half; writes benchmarks/report.md, its charts and versions.md
	@scripts/ensure-postgres >/dev/null
	@scripts/ensure-redis >/dev/null
	$(BIN)/python benchmarks/report.py --full

docs: .venv-docs/.ready ## The documentation as a site, in site/; a warning, such as a broken link, is an error
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	@echo "site/index.html is ready"

pins: $(VENV)/.ready ## Write constraints.txt again, from the installed packages
	$(BIN)/python -m pip freeze --all --exclude pip --exclude-editable >constraints.txt

release-check: .venv-release/.ready ## Build what a release uploads, and try it without a compiler on each Python at hand (Linux; PYTHONS=...)
	.venv-release/bin/python scripts/release_check.py

$(VENV)/.ready: scripts/make-venv constraints.txt requirements-dev.txt $(wildcard libs/*/pyproject.toml libs/speed/*.py \
    libs/speed/src/*/*.pyx libs/speed/src/*/*.pxd)
	@VENV=$(VENV) scripts/make-venv

.venv-docs/.ready: docs/requirements.txt
	$(or $(PYTHON),python3) -m venv --clear .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	@touch $@

.venv-release/.ready: scripts/release-requirements.txt
	$(or $(PYTHON),python3) -m venv --clear .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check -r scripts/release-requirements.txt
	@touch $@

$(DEMO)/.ready: scripts/make-venv constraints.txt examples/requirements.txt $(wildcard libs/*/pyproject.toml)
	@VENV=$(DEMO) REQUIREMENTS=examples/requirements.txt COMPILED=no DEPENDENCIES=pinned scripts/make-venv
