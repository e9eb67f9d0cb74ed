# Every target sets up what it needs: a virtual environment in .venv with the pinned versions of constraints.txt.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax

.PHONY: demo test check tests test-browser install clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (two minutes the first time) ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: install  ## five minutes: train an agent, end with a score and a picture
	$(BIN)/grasp train GA-4 --task cartpole-swingup --steps 15000 --evaluate-every 3000 --run demo/cartpole-swingup-GA-4

test: check tests  ## everything that CI runs

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_layers.py
	$(BIN)/pyright

tests: install
	$(BIN)/pytest

test-browser: install  ## the Lens in a real browser; needs Chromium (or CHROMIUM=path)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[browser]'
	$(BIN)/pytest -n 0 tests/browser/lens_in_browser.py

clean:
	rm -rf $(VENV) .cache
