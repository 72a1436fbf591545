# Sets up and runs modtools on Linux and macOS. `make` lists the targets. Without make: see README.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The stamp's name is a checksum of what is installed and where: pip runs only when that changes.
STAMP := $(VENV)/installed-$(shell (pwd; cat pyproject.toml constraints.txt) | cksum | cut -d' ' -f1)
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help lab test test-all jupyter build setup system browser model clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */make \1|/' \
		| awk -F'|' '{printf "  %-15s %s\n", $$1, $$2}'

lab: setup ## run the quick lab on the embedded model (sets everything up first)
	@$(BIN)/modtools lab run --preset quick --model embedded --out runs/quick

test: setup browser ## run every test and notebook (sets everything up first)
	@$(BIN)/python -m pytest

test-all: setup browser ## the same over the whole data sets; long
	@$(BIN)/python -m pytest -m "whole or not whole"

jupyter: setup ## open JupyterLab on the first notebook
	@$(BIN)/python -m jupyterlab $(if $(SUDO),,--allow-root) --ServerApp.root_dir=. notebooks/00_start.ipynb

build: setup ## build notebooks, exercises and solutions from their sources
	@$(BIN)/modtools build

setup: system $(STAMP) model ## environment, sandbox and embedded model; does nothing when all is there

clean: ## remove the environment and caches; runs/ and the model stay
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis
	find modtools tests course -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call debian,TEST,PACKAGES,WHAT IS LOST): where TEST fails, installs Debian packages if this is Debian and we
# may; says what is lost if it still fails, which is an error only with CI set.
define debian
@if ! { $(1); } >/dev/null 2>&1; then \
	if command -v apt-get >/dev/null && $(SUDO) true 2>/dev/null; then \
		echo "installing $(2)"; \
		$(SUDO) apt-get -qq update && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $(2) >/dev/null; \
	fi; \
	{ $(1); } >/dev/null 2>&1 || { echo "missing on this system ($(2)): $(3)" >&2; [ -z "$$CI" ]; }; \
fi
endef

system:
	$(call debian,command -v $(PYTHON) && $(PYTHON) -c 'import ensurepip',python3-venv,no environment can be created)
	$(call debian,command -v bwrap,bubblewrap,code runs in a weaker sandbox or not at all; see modtools doctor)

browser:
ifneq ($(wildcard tests/browser),)
	$(call debian,command -v chromium && command -v chromedriver,chromium chromium-driver,no browser tests)
endif

$(STAMP):
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "modtools needs Python 3.11 or newer with venv; '$(PYTHON)' is: $$($(PYTHON) -V 2>&1)" >&2; \
		echo "Install one (Debian, Ubuntu: apt install python3-venv), then e.g.: make PYTHON=python3.12 lab" >&2; \
		exit 1; }
	@if [ "$$(uname -sm)" = "Linux x86_64" ] && [ -z "$$PIP_EXTRA_INDEX_URL" ] && ! command -v nvidia-smi >/dev/null; then \
		echo "no NVIDIA driver found: the README says how to install the small CPU build of torch"; fi
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[test]'
	@rm -f $(VENV)/installed-* && touch $@

model:
	@$(BIN)/modtools model fetch
