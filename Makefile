# Everything goes through .venv; `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
TESTS  ?= tests
# Says that the models have been compiled, by the only target that does so before they run.
COMPILED := build/.compiled
# Says that what tests need is there, too (mypy, z3 and the like): the demo does without.
TOOLS := $(VENV)/.tools
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Workers of the test suite. A file's tests stay together, so that its simulations run once. The slow
# ones begin so, but who is done takes from another's end: files of many long tests would end last.
# A worker that a hanging test ends is not replaced: another would hang on the same test.
XDIST  := -n auto --maxprocesses 4 --max-worker-restart 0 --dist

.DEFAULT_GOAL := help
.PHONY: help install tools demo picture docs notebooks test test-slow lint .types .verilog format gates proofs stress mutations accuracy kill bench pins record-slow clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(COMPILED) ## create .venv with the command `wafertlm` and all that it needs, compile the models

tools: $(TOOLS) ## add what tests, lint, gates and proofs need; their targets do so themselves

demo: install ## in five minutes: measure on RTL, simulate a wafer, serve a model, write the report
	$(RUN) -m wafertlm.demo

picture: install ## draw the README's picture from stored results and short runs
	$(RUN) -m wafertlm.report.picture

docs: $(TOOLS) ## build the site of the documents in build/site; links that lead nowhere fail
	$(RUN) -m wafertlm.site.build

notebooks: install ## run the notebooks of docs, which calibrates routers, and keep what they show
	cd docs/notebooks && ../../$(RUN) -m wafertlm.site.notebook *.ipynb

test: $(COMPILED) lint ## static checks and the default tests
	$(RUN) -m pytest $(XDIST) loadfile $(TESTS)

test-slow: $(TOOLS) ## the tests that take minutes: more RTL builds, larger shapes
	$(RUN) -m pytest $(XDIST) worksteal -m slow $(TESTS)

lint: $(TOOLS) ## ruff, mypy and the Verilog lint
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	@$(MAKE) --no-print-directory -j2 -O .types .verilog

.types:
	$(RUN) -m mypy

.verilog:
	PYTHON=$(RUN) .ci/lint-verilog

format: $(TOOLS) ## put the Python sources into the one format
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

gates: $(TOOLS) ## count the gates of the router's variants anew, and store them
	$(RUN) -m verification.gates --write

proofs: $(TOOLS) ## prove the FIFOs and the arbiter of the network
	$(RUN) -m verification.prove

mutations: $(TOOLS) ## put small faults into the Verilog, one at a time, and see whether tests fail
	$(RUN) -m verification.mutations

stress: $(TOOLS) ## press meshes of many forms with a million random packets
	$(RUN) -m verification.stress

accuracy: $(TOOLS) ## compare the models of network and memory with the Verilog, and store the tables
	$(RUN) -m verification.accuracy --write

kill: $(TOOLS) ## end commands at 100 random moments, begin them again, and compare what is left
	$(RUN) -m tests.hostile.kill

bench: $(TOOLS) ## measure how fast the models and the command are, against their targets
	$(RUN) -m tests.bench

record-slow: test-slow ## run the slow tests and record that they hold for these sources
	.ci/slow-parts --record $(TESTS)

pins: ## renew constraints.txt from the newest versions that fit pyproject.toml
	PYTHON=$(PYTHON) .ci/pin > constraints.new
	mv constraints.new constraints.txt

clean: ## remove built models and caches; .venv and results/ stay
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "error: $(PYTHON) cannot create a virtual environment:" \
	       "install the system package python3-venv, or set PYTHON=..." >&2; exit 1; }
	$(PIP) -e .
	@touch $@

$(TOOLS): $(VENV)/.installed
	$(PIP) -e '.[test]'
	@touch $@

$(COMPILED): $(VENV)/.installed $(shell find tlm workloads -name "*.py") wafertlm/warm.py
	$(RUN) -m wafertlm.warm
	@mkdir -p $(@D) && touch $@
