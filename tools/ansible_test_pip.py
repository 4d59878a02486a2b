# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give ansible-test the pip bootstrap script that it would otherwise download.

ansible-test fetches a get-pip script once and keeps it in ~/.ansible/test/cache. Python brings pip with it
(ensurepip), so a script that calls that serves as well, also where the script's host is not reached.
"""

from __future__ import annotations

import pathlib
import re

import ansible_test

SCRIPT = """\
import ensurepip
import os
import runpy
import sys

ensurepip.bootstrap(default_pip=True)
os.environ.pop("PIP_CONFIG_FILE", None)  # ensurepip hides the machine's pip.conf, with its certificates and mirrors
sys.argv[1:] = ["install", *(a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel"))]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


def main() -> None:
    source = pathlib.Path(ansible_test.__path__[0], "_internal", "python_requirements.py").read_text(encoding="utf-8")
    version = re.search(r"pip='([0-9.]+)'", source)
    if version is None:
        raise SystemExit("tools/ansible_test_pip.py: this ansible-test names its pip in another way; look there")
    name = f"get_pip_{version.group(1).replace('.', '_')}.py"
    path = pathlib.Path("~/.ansible/test/cache", name).expanduser()
    if not path.exists() or path.read_text(encoding="utf-8") != SCRIPT:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCRIPT, encoding="utf-8")


if __name__ == "__main__":
    main()
