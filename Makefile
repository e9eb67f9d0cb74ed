# Every target sets up what it needs: a virtual environment in .venv with the pinned versions of constraints.txt.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax

.PHONY: demo test check tests test-browser test-peers docs reference pictures faults results install bench clean waiting rendering browser pixels dreamer

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (two minutes the first time) ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: install  ## a quarter of an hour: three heads become "go to A, to B, to C"; ends with the success rate and the picture
	$(BIN)/grasp train SA-3 --task collect --planner.depth 1 --steps 700000 --learning-rate-hold 32000 --seed 1 --run demo/collect-SA-3
	$(BIN)/grasp evaluate demo/collect-SA-3 --episodes 500
	$(BIN)/grasp look demo/collect-SA-3

test: check tests  ## everything that CI runs

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_layers.py
	$(BIN)/pyright

tests: install
	$(BIN)/pytest

bench: .venv-bench/installed  ## ratios against PyTorch, mctx, Stable-Baselines3 and SBX; leave the machine alone meanwhile
	.venv-bench/bin/python bench $(BENCH)

test-peers: .venv-bench/installed  ## our statistics against rliable's
	.venv-bench/bin/pytest -q -o addopts= -o filterwarnings=default tests/peers/statistics_beside_rliable.py

.venv-bench/installed: pyproject.toml constraints.txt bench/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --constraint constraints.txt --editable . --requirement bench/requirements.txt
	touch $@

# $(call packages,NAMES,WHAT): Debian's packages where that is possible, else what to do.
packages = { \
	if ! command -v apt-get >/dev/null; then echo "no apt-get here: install $(2) by your system's own packages"; exit 2; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -q && apt-get install -y -q $(1); \
	elif sudo -n true 2>/dev/null; then sudo apt-get update -q && sudo apt-get install -y -q $(1); \
	else echo "not root here: run sudo apt-get install $(1)"; exit 2; fi; }

CORE ?= 0
SEEDS ?= 0
waiting: .venv-bench/installed  ## minutes until walker-walk, finger-spin and cartpole-swingup are learned, beside Stable-Baselines3 and SBX; an hour or two on one core
	.venv-bench/bin/python bench/waiting.py --core $(CORE) --seeds $(SEEDS) $(if $(AGENTS),--agents $(AGENTS)) $(if $(TASKS),--tasks $(TASKS))

rendering: install  ## what pictures without a screen need, from the system's packages
	@$(BIN)/python -m grasp.environments.rendering || { \
	  $(call packages,libegl1 libgl1-mesa-dri,EGL (libEGL and Mesa's drivers) or OSMesa) && \
	  $(BIN)/python -m grasp.environments.rendering; }

browser:  ## Chromium, from the system's packages, unless there is one (or CHROMIUM=path)
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || command -v google-chrome >/dev/null || \
	  $(call packages,chromium,Chromium)

pixels: rendering  ## GA-4 from images on the paper's four tasks, beside Dreamer's published scores
	$(BIN)/grasp reproduce pixels

TASK ?= ball_in_cup-catch
STEPS ?= 100000
dreamer: rendering .venv-dreamer/installed  ## sheeprl's Dreamer on TASK for STEPS, into results/pixels
	MUJOCO_GL=$${MUJOCO_GL:-egl} .venv-dreamer/bin/python bench/dreamer.py --task $(TASK) --steps $(STEPS) $(if $(REPLAY_RATIO),--replay-ratio $(REPLAY_RATIO))

.venv-dreamer/installed: bench/dreamer-requirements.txt
	$(PYTHON) -m venv .venv-dreamer
	.venv-dreamer/bin/python -m pip install --quiet --requirement bench/dreamer-requirements.txt
	touch $@

faults: install  ## the long suite of faults (an hour or more); ONLY=kill for one part of it
	$(BIN)/python tools/faults.py --only '$(ONLY)'

results: install  ## docs/results.md from what is committed under results/
	$(BIN)/grasp report results --to docs/results.md --title 'Results, claim by claim'

test-browser: browser $(VENV)/browser  ## the Lens in a real browser: Chromium, installed where that is possible (or CHROMIUM=path)
	$(BIN)/pytest -n 0 tests/browser/lens_in_browser.py

docs: $(VENV)/docs reference  ## the site into .cache/site; every link inside it is checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open .cache/site/index.html"

reference: install  ## what the pages take from the code and from results/
	$(BIN)/python tools/reference.py

pictures: test-browser  ## docs/pictures, drawn anew; those of the Lens are what the browser test saw
	$(BIN)/python tools/pictures.py
	cp .cache/lens-browser/dragging.png docs/pictures/lens-world.png
	cp .cache/lens-browser/tree.png docs/pictures/lens-tree.png
	cp .cache/lens-browser/training.png docs/pictures/lens-training.png

$(VENV)/browser $(VENV)/docs: $(VENV)/%: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) .venv-bench .venv-dreamer .cache
