# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's variables for another Slurm role must not mean something else to ours, and every option has one default."""

from __future__ import annotations

import pathlib

import yaml

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles/slurm"
# What galaxyproject.slurm and DeepOps's slurm read; openhpc's begin with openhpc_.
_OTHERS = """
    slurm_upgrade slurm_roles slurm_partitions slurm_nodes slurm_config_dir slurm_create_user slurm_create_dirs
    slurm_rotate_logs slurm_configure_munge slurm_start_services slurm_user slurm_config slurm_munge_key
    slurm_cgroup_config slurm_gres_config slurm_build_dir slurm_workflow_build slurm_version slurm_src_url
    slurm_build_make_clean slurm_build_dir_cleanup slurm_sysconf_dir slurm_install_prefix slurm_cuda_prefix
    slurm_configure slurm_configure_nvml slurm_force_rebuild slurm_contain_ssh slurm_cluster_name slurm_username
    slurm_password slurm_user_uid slurm_user_home slurm_allow_ssh_user slurm_db_username slurm_db_password
    slurm_enable_ha slurm_ha_state_save_location slurm_return_to_service slurm_reboot_program slurm_resume_timeout
    slurm_manage_gpus slurm_autodetect_nvml slurm_conf_template slurm_cgroup_conf_template slurm_gres_conf_template
    slurm_dbd_conf_template slurm_conf_symlink slurm_oversubscribe slurm_max_job_timelimit
    slurm_default_job_timelimit slurm_node_reboot_timeout slurm_enable_prolog_epilog slurm_clear_old_prolog_epilog
    slurm_fix_shm slurm_enable_pam_slurm_adopt slurm_restrict_node_access slurm_include_hwloc slurm_include_pmix
"""


def _read(name):
    return yaml.safe_load((ROLE / name).read_text())


def test_no_variable_is_one_of_another_slurm_role():
    ours = set(_read("defaults/main.yml")) | set(_read("vars/main.yml"))
    for entry in _read("meta/argument_specs.yml")["argument_specs"].values():
        ours |= set(entry["options"])
    assert ours & set(_OTHERS.split()) == set()


def test_what_the_specification_says_is_the_default():
    defaults = _read("defaults/main.yml")
    for entry, spec in _read("meta/argument_specs.yml")["argument_specs"].items():
        for name, option in spec["options"].items():
            if "default" in option:
                assert defaults.get(name) == option["default"], (entry, name)
