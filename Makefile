# make run     start Kilter on this machine and keep it running (Ctrl-C stops it)
# make test    install the test tools, then check and test everything, the browser too
# make check   lint, types, import rules, migrations
# make lint    only ruff, with repairs
# make words   bring the Chinese catalogue up to date; needs xgettext (apt-get install gettext)
# make clean   remove caches and the virtual environment; never the data folder

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
# Checks read the settings too: they get a data folder of their own.
SCRATCH := $(CURDIR)/$(VENV)/check-data
PURE := $(wildcard $(addprefix tests/,scheduler/core scheduler/decide scheduler/simulate \
	telemetry/forecast telemetry/sense properties golden))

# Of these tests the properties think for minutes; the few that want a database get one a process.
PARALLEL := -n logical --maxprocesses 4 --dist worksteal

export PYTHON
.DEFAULT_GOAL := help
.PHONY: help run test check lint words clean installed tools

help:
	@sed -n 's/^# make/make/p' $(firstword $(MAKEFILE_LIST))

run: installed
	@exec $(BIN)/python manage.py up

installed:
	@sh scripts/install.sh run

tools:
	@sh scripts/install.sh test

check: tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	KILTER_DATA=$(SCRATCH) $(BIN)/mypy .
	KILTER_DATA=$(SCRATCH) $(BIN)/python manage.py check
	$(BIN)/python -m tests.stack makemigrations --check --dry-run

lint: tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

words: tools
	$(BIN)/python -m scripts.messages

test: tools
	@sh scripts/chromium.sh
	@$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -m "not e2e" $(PARALLEL) $(PURE)
	$(BIN)/python -m pytest -m "not e2e" $(addprefix --ignore=,$(PURE))
	KILTER_CHROMIUM="$$(sh scripts/chromium.sh)" $(BIN)/python -m pytest -m e2e tests/e2e

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './data/*' -prune -exec rm -rf {} +
