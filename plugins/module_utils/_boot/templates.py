# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot scripts, one command a line, as Jinja2 templates. Private to h200.rack.

A failing command ends an iPXE script unless ``||`` follows, so every fetch has one. ``imgfree`` comes first in every
round: builds since 2023 hand all images they hold to the kernel as one initrd.
"""

from __future__ import annotations

ENTRY = """\
#!ipxe
# Entry of every node, by h200.rack. It looks for the script of the port that iPXE booted from.

# The second time in one boot means that a script led back here.
isset ${rack-entered} && goto loop ||
set rack-entered 1
set rack-round:int32 0

:again
chain --replace --autofree --timeout {{ timeout.script }} ${netX/mac:hexhyp}.ipxe ||
chain --replace --autofree --timeout {{ timeout.script }} unknown.ipxe ||
inc rack-round
iseq ${rack-round} {{ rounds.entry }} && goto give_up ||
echo h200.rack: no answer from the boot server, round ${rack-round} of {{ rounds.entry }}
sleep ${rack-round}
goto again

:loop
echo h200.rack: a boot script led back to boot.ipxe, this boot ends here
goto leave

:give_up
echo h200.rack: the boot server did not answer, this boot ends here

:leave
{{ leave }}
"""

# UEFI tries its next boot option only after a failure; a BIOS goes on after a success.
LEAVE = "iseq ${platform} efi && exit 1 || exit 0"

LOCAL = """\
#!ipxe
# {{ node.name }}: local. By h200.rack; changes are overwritten.
echo {{ node.name }}: boots from its own disk
{{ leave }}
"""

POWEROFF = """\
#!ipxe
# {{ node.name }}: poweroff. By h200.rack; changes are overwritten.
echo {{ node.name }}: powers off
poweroff ||
{{ leave }}
"""

# The mirrors of one fetch stand below each other: a backslash continues the line.
NEXT = " \\"
RETRY = " goto retry"

# The kernel and its initrds may come from different mirrors: their paths are immutable, named by digest.
LINUX = """\
#!ipxe
# {{ node.name }}: {{ node.action }}. By h200.rack; changes are overwritten.
echo {{ node.name }}: {{ node.action }}
set rack-round:int32 0
{% if space %}
set rack-space:hex 20
{% endif %}

:again
imgfree
{% for item in fetches %}
{% for url in item.urls %}
{{ item.verb }} --name {{ item.name }} --timeout {{ item.timeout }} {{ url }} ||{{ retry if loop.last else next }}
{% endfor %}
{% endfor %}
imgargs {{ fetches[0].name }} {{ args }} || goto retry
boot || goto retry

:retry
inc rack-round
iseq ${rack-round} {{ rounds.fetch }} && goto give_up ||
echo {{ node.name }}: not booted, round ${rack-round} of {{ rounds.fetch }}
sleep ${rack-round}
goto again

:give_up
echo {{ node.name }}: no mirror served what {{ node.action }} needs, this boot ends here
{{ leave }}
"""

UNKNOWN = {
    "local": """\
#!ipxe
# A machine that is not in the plan boots from its own disk. By h200.rack; changes are overwritten.
echo h200.rack: ${netX/mac} is not in the plan, boots from its own disk
{{ leave }}
""",
    "poweroff": """\
#!ipxe
# A machine that is not in the plan powers off. By h200.rack; changes are overwritten.
echo h200.rack: ${netX/mac} is not in the plan, powers off
poweroff ||
{{ leave }}
""",
    "shell": """\
#!ipxe
# A machine that is not in the plan waits for a person. By h200.rack; changes are overwritten.
echo h200.rack: ${netX/mac} is not in the plan
shell ||
{{ leave }}
""",
}

ACTIONS = {"local": LOCAL, "poweroff": POWEROFF, "deploy": LINUX, "rescue": LINUX, "installer": LINUX}
