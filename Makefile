# h200.rack: what a developer types. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
RUN := tests/virtual_rack/run
PLAY := $(RUN) ansible-playbook
PYTEST := .venv/bin/pytest -ra
# Cheap ones first. Each starts what it needs and ends it; those of rack/ bring the whole rack up.
QUICK := $(addprefix tests/integration/,artifact ramdisk bmc image rack)
INTEGRATION := $(QUICK) $(addprefix tests/integration/,gpu boot mirror slurm vrack)
# The Python of .venv; SANITY_ARGS= takes every one that is here.
SANITY_ARGS ?= --python $$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

include tests/virtual_rack/rack.mk

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort -u | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Debian packages, .venv and the collection's path; nothing is changed when all is there
	@tools/bootstrap

.PHONY: python
python:
	@tools/bootstrap --python

.PHONY: demo
demo: rack-up ## two powered-off virtual machines become idle Slurm nodes (vrack_nodes=3 for three)
	$(PLAY) h200.rack.images
	$(PLAY) h200.rack.provision
	tests/virtual_rack/show

.PHONY: lint
lint: python ## every linter
	@tools/lint

.PHONY: unit
unit: python ## unit tests
	@$(PYTEST) -n 4 tests/unit

.PHONY: check
check: lint unit ## lint and unit tests (needs no root)

.PHONY: sanity
sanity: python ## ansible-test sanity, no ignores; SANITY_ARGS= for every Python that is here
	@tools/sanity $(SANITY_ARGS)

.PHONY: test
test: check sanity setup rack-build ## check, sanity, and the integration tests up to powered-off machines becoming Slurm nodes
	@$(PYTEST) -m 'not full' $(QUICK)

.PHONY: test-full
test-full: check setup rack-build ## every test: all boot paths, both Slurm versions, long fault runs, molecule; every Python that is here
	@tools/sanity
	@tools/bmc-versions
	@$(PYTEST) $(INTEGRATION)

.PHONY: bench
bench: setup rack-build ## the benchmarks, each with its bars
	@tools/bench

.PHONY: build
build: python ## the collection as a file for ansible-galaxy collection install
	@ANSIBLE_CONFIG=ansible.cfg .venv/bin/ansible-galaxy collection build --force

.PHONY: clean
clean: rack-down ## the rack, the caches and the virtual environment go
	rm -rf .cache .venv
