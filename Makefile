# Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := $(wildcard ../shared/data)
ifdef DATA
export STRUCTLEARN_DATA ?= $(abspath $(DATA))
endif

HOURS ?= 1

.PHONY: demo test campaign lint bench docs clean

$(VENV)/.core: pyproject.toml papers/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[plot,networkx]" -e papers
	touch $@

$(VENV)/.%: $(VENV)/.core
	$(BIN)/python -m pip install --quiet -e ".[$*]"
	touch $@

demo: $(VENV)/.core  ## a first tour; pictures land in out/demo
	mkdir -p out
	$(BIN)/structlearn demo --output out/demo --report out/tour.html

test: $(VENV)/.test  ## the test suite, on all cores
	$(BIN)/python -m pytest -n auto --dist worksteal

campaign: $(VENV)/.test  ## random problems against oracles, fuzzed files, kills: for HOURS, from SEED, ONLY some
	$(BIN)/python -m campaign --hours $(HOURS) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

lint: $(VENV)/.lint  ## style, types, layer order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench  ## side-by-side timings; peers that clash get environments of their own
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.docs  ## HTML in docs/_build
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build

clean:
	rm -rf $(VENV) out build dist docs/_build
