.DEFAULT_GOAL := help
BIN := .venv/bin
SOURCES := libs tests benchmarks examples

.PHONY: help demo test check format bench pins

help: ## What can be made here
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.ready ## The main job, shown: an agent is killed in the middle and goes on
	$(BIN)/python examples/langgraph_agent.py

test: .venv/.ready ## The whole suite, on real databases (Postgres and PgBouncer are installed if they can be)
	@scripts/ensure-postgres >/dev/null
	@scripts/ensure-pgbouncer >/dev/null || true
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: .venv/.ready ## Format, lint and types
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy $(SOURCES)

format: .venv/.ready ## Format the sources and mend what can be mended
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

bench: .venv/.ready ## The figures that the README quotes, measured beside the peers
	$(BIN)/python benchmarks/report.py

pins: .venv/.ready ## Write constraints.txt anew from what is installed
	$(BIN)/python -m pip freeze --exclude-editable >constraints.txt

.venv/.ready: scripts/make-venv constraints.txt requirements-dev.txt $(wildcard libs/*/pyproject.toml)
	@scripts/make-venv
