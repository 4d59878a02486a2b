# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data for AWX: what awx.awx would refuse, or what would start a play that does not exist."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
AWX = ROOT / "docs" / "awx"
PLAYS = "\n".join(path.read_text() for path in (ROOT / "playbooks").rglob("*.yml"))
# awx.awx: options of the modules, and what AWX takes in a survey.
TEMPLATE = {
    *("name", "job_type", "organization", "project", "inventory", "playbook", "credentials", "forks"),
    *("ask_variables_on_launch", "ask_verbosity_on_launch", "ask_job_type_on_launch", "allow_simultaneous"),
    *("survey_enabled", "survey_spec"),
}
WORKFLOW = {"name", "organization", "inventory", "survey_enabled", "survey_spec", "workflow_nodes"}
QUESTION = {"question_name", "question_description", "variable", "type", "required", "default"}
TYPES = {"text", "textarea", "password", "multiplechoice", "multiselect", "integer", "float"}
FIELD = {"id", "type", "label", "secret", "multiline"}


class StrictLoader(yaml.SafeLoader):
    """A key that stands twice is an error."""


def _mapping(loader: StrictLoader, node: yaml.MappingNode) -> dict[t.Any, t.Any]:
    keys = [key.value for key, _value in node.value if key.value != "<<"]
    assert len(keys) == len(set(keys)), f"a key stands twice: {node.start_mark}"
    loader.flatten_mapping(node)
    return {
        loader.construct_object(key, deep=True): loader.construct_object(value, deep=True) for key, value in node.value
    }


StrictLoader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load(path: pathlib.Path) -> t.Any:
    return yaml.load(path.read_text(), StrictLoader)  # noqa: S506 - a safe loader


CREDENTIALS, TEMPLATES, WORKFLOWS = (
    load(AWX / f"{name}.yml") for name in ("credential_types", "job_templates", "workflows")
)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template["name"])
def test_a_job_template_is_complete_and_its_playbook_exists(template):
    assert template.keys() <= TEMPLATE
    assert template["playbook"] and template["inventory"] and template["project"]
    (play,) = load(AWX / "project" / template["playbook"])
    namespace, name = play["ansible.builtin.import_playbook"].rsplit(".", 1)
    assert namespace == "h200.rack"
    assert (ROOT / "playbooks" / f"{name}.yml").is_file()


def test_every_playbook_for_users_has_a_job_template():
    used = {template["playbook"] for template in TEMPLATES}
    assert used == {path.name for path in (AWX / "project").glob("*.yml")}
    assert used == {
        "preflight.yml",
        "images.yml",
        "boot_services.yml",
        "provision.yml",
        "wipe.yml",
        "mirror_check.yml",
        "status.yml",
    }


@pytest.mark.parametrize("owner", [owner for owner in [*TEMPLATES, *WORKFLOWS] if "survey_spec" in owner])
def test_every_question_is_one_that_awx_takes_and_a_play_reads(owner):
    survey = owner["survey_spec"]
    assert owner["survey_enabled"] is True
    assert survey.keys() == {"name", "description", "spec"}
    for question in survey["spec"]:
        assert question.keys() <= QUESTION
        assert question["type"] in TYPES
        assert isinstance(question["default"], str) and isinstance(question["required"], bool)
        assert re.search(rf"\b{question['variable']}\b", PLAYS), f"no play reads {question['variable']}"
    variables = [question["variable"] for question in survey["spec"]]
    assert len(variables) == len(set(variables))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow["name"])
def test_a_workflow_leads_over_templates_that_exist_and_reaches_all_of_them(workflow):
    assert workflow.keys() <= WORKFLOW
    nodes = {node["identifier"]: node for node in workflow["workflow_nodes"]}
    assert {node["unified_job_template"]["name"] for node in nodes.values()} <= {each["name"] for each in TEMPLATES}
    following = [
        after["identifier"]
        for node in nodes.values()
        for listed in node.get("related", {}).values()
        for after in listed
    ]
    assert set(following) <= set(nodes)
    assert len(set(nodes) - set(following)) == 1, "there is one start"


@pytest.mark.parametrize("credential", CREDENTIALS, ids=lambda credential: credential["name"])
def test_a_credential_gives_what_the_modules_read_and_hides_what_is_secret(credential):
    fields = {field["id"]: field for field in credential["inputs"]["fields"]}
    assert all(field.keys() <= FIELD for field in fields.values())
    assert set(credential["inputs"]["required"]) <= set(fields)
    assert fields["password"]["secret"] is True
    injected = credential["injectors"]
    used = set(re.findall(r"{{ (\w+) }}", f"{injected['env']} {injected['file']}"))
    assert used == set(fields)
    fragment = (ROOT / "plugins" / "doc_fragments" / "bmc.py").read_text()
    for variable in injected["env"]:
        assert variable in fragment, f"no module reads {variable}"
