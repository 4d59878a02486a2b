# The virtual rack: included by the Makefile of the repository.
# Variables of the rack are given to make as they are to Ansible: make rack-up vrack_nodes=3. RACK_ARGS holds the rest.
RACK_ARGS ?=
RACK_VARIABLES := $(foreach name,$(filter vrack_%,$(.VARIABLES)),\
  $(if $(filter command,$(firstword $(origin $(name)))),-e $(name)=$($(name))))
RACK_PLAY = ANSIBLE_CONFIG=ansible.cfg .venv/bin/ansible-playbook -i tests/virtual_rack/hosts.yml $(RACK_VARIABLES) $(RACK_ARGS)

.PHONY: rack-up rack-down rack-status rack-build

rack-build: ## build what the virtual rack caches (containers' root, BMC emulator, ramdisk, OS image)
	@tools/bootstrap
	@$(RACK_PLAY) tests/virtual_rack/build.yml

rack-up: ## bring the virtual rack up, or repair it: two nodes, unless vrack_nodes=3
	@tools/bootstrap
	@$(RACK_PLAY) tests/virtual_rack/up.yml

rack-down: ## end the virtual rack and leave nothing of it but caches
	@$(RACK_PLAY) tests/virtual_rack/down.yml

rack-status: ## tell what of the virtual rack is there
	@$(RACK_PLAY) tests/virtual_rack/status.yml
