# h200.rack: what a developer types. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
nodes ?= 2
RUN := tests/virtual_rack/run
PLAY := $(RUN) ansible-playbook

include tests/virtual_rack/rack.mk

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort -u | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Debian packages, .venv and the collection's path; nothing is changed when all is there
	@tools/bootstrap

.PHONY: demo
demo: rack-up ## two powered-off virtual machines become idle Slurm nodes (vrack_nodes=3 for three)
	$(PLAY) h200.rack.images
	$(PLAY) h200.rack.provision
	tests/virtual_rack/show

.PHONY: lint
lint: setup ## every linter
	@tools/lint

.PHONY: unit
unit: setup ## unit tests
	@.venv/bin/pytest tests/unit

.PHONY: check
check: lint unit ## lint and unit tests

.PHONY: sanity
sanity: setup ## ansible-test sanity, no ignores
	@tools/sanity

.PHONY: clean
clean: rack-down ## the rack, the caches and the virtual environment go
	rm -rf .cache .venv
