# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what cannot work in an iPXE script before a machine finds it. Private to h200.rack."""

from __future__ import annotations

import re
import typing as t

from . import kernel_advice
from .builds import Build
from .kernel_args import MAX_COMMAND_LINE

# Long before a limit of iPXE: a line that nobody can read in a log.
MAX_LINE = 4096

ERROR, WARNING = "error", "warning"

_FETCHES = {"chain", "imgfetch", "module", "initrd", "kernel", "imgload", "imgselect", "imgverify", "imgtrust", "shim"}
_LOADS_INITRD = {"initrd", "module", "imgfetch"}
_WITH_ARGS = {"kernel", "chain", "imgexec", "boot", "imgargs", "imgselect", "imgload"}
_VALUE_OPTIONS = {"-n", "--name", "-t", "--timeout"}
_TERMINATORS = {"||", "&&", ";"}
_SECRET = re.compile(
    r"(-----BEGIN [A-Z ]*PRIVATE KEY|://[^\s/@:]+:[^\s/@]+@|\bAKIA[0-9A-Z]{16}\b"
    r"|(?i:(?:^|[\s;,?&])[\w.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|rootpw|crypted)[\w.-]*=[^\s$]))"
)


class Finding(t.NamedTuple):
    """One thing that is wrong, and where."""

    line: int
    code: str
    severity: str
    message: str


class Command(t.NamedTuple):
    """One command of a line: its words, and the terminator that follows it (empty at the end of the line)."""

    line: int
    words: list[str]
    then: str


def lint(text: str, build: Build, build_name: str) -> list[Finding]:
    """Everything that is wrong with one script for one build, in the order of its lines."""
    found = list(_characters(text))
    if not re.match(r"#!ipxe\s*?(\r?\n|$)", text):
        found.append(Finding(1, "magic", ERROR, "the first line is not #!ipxe alone, so this is no script"))
    lines = list(_logical_lines(text))
    labels = _labels(lines, found)
    commands = [command for number, line in lines for command in _commands(number, line, found)]
    for command in commands:
        found += _check(command, labels, build, build_name)
    if "${platform}" not in text:
        found += _exits(commands)
    found += _reboots(commands)
    found += _initrd_names(commands)
    found += _fetched_twice(commands)
    return sorted(found)


def _characters(text: str) -> t.Iterator[Finding]:
    for number, line in enumerate(text.split("\n"), 1):
        bad = re.search(r"[^\t\x20-\x7e]", line.rstrip("\r"))
        if bad:
            yield Finding(number, "characters", ERROR, f"the character {bad.group()!r}: only printable ASCII survives")
        if len(line) > MAX_LINE:
            yield Finding(number, "line_length", ERROR, f"the line has {len(line)} characters, more than {MAX_LINE}")
        if _SECRET.search(line):
            yield Finding(number, "secret", ERROR, "looks like a secret, and the whole network reads scripts")


def _logical_lines(text: str) -> t.Iterator[tuple[int, str]]:
    """Lines with their continuations (a backslash at the end) joined, as iPXE does, without the first."""
    start, parts = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        start = start or number
        if line.endswith("\\"):
            parts += line[:-1]
            continue
        if start > 1 or parts:
            yield start, parts + line
        start, parts = 0, ""
    if parts:
        yield start, parts


def _labels(lines: t.Sequence[tuple[int, str]], found: list[Finding]) -> set[str]:
    labels: set[str] = set()
    for number, line in lines:
        match = re.match(r"\s*:(\S*)", line)
        if match:
            if match.group(1) in labels:
                found.append(Finding(number, "duplicate_label", ERROR, f"the label :{match.group(1)} stands twice"))
            labels.add(match.group(1))
    return labels


def _commands(number: int, line: str, found: list[Finding]) -> t.Iterator[Command]:
    words = re.sub(r"^\s*:\S*", "", line).split()
    if words and words[0].startswith("#"):
        return
    current: list[str] = []
    for word in words:
        if word.startswith("#"):
            message = f"{word} and all after it is a comment to iPXE, which cuts the line here"
            found.append(Finding(number, "comment_argument", ERROR, message))
            break
        if word in _TERMINATORS:
            yield Command(number, current, word)
            current = []
        else:
            current.append(word)
    if current:
        yield Command(number, current, "")


def _check(command: Command, labels: set[str], build: Build, build_name: str) -> t.Iterator[Finding]:
    if not command.words:
        return
    number, verb, rest = command.line, command.words[0], command.words[1:]
    if "${" in verb:
        return
    if verb not in build.commands:
        yield Finding(number, "command", ERROR, f"the build {build_name} has no command {verb}")
        return
    if "|" in rest or "&" in rest:
        yield Finding(number, "operator", ERROR, "| and & are no operators of iPXE, write || or &&")
    if verb == "goto" and rest and "${" not in rest[0] and rest[0] not in labels:
        yield Finding(number, "unknown_label", ERROR, f"there is no label :{rest[0]}, the script would end here")
    if verb in _FETCHES and _operands(rest):
        if command.then != "||":
            yield Finding(number, "unguarded_fetch", ERROR, f"{verb} without || behind it: a failure ends the script")
        scheme = re.match(r"([a-z0-9+.-]+)://", _operands(rest)[0])
        if scheme and scheme.group(1) not in build.schemes:
            yield Finding(number, "scheme", ERROR, f"the build {build_name} cannot fetch {scheme.group(1)}://")
    yield from _habits(number, verb, rest)
    if verb in _WITH_ARGS:
        args = _operands(rest)[1:]
        yield from (Finding(number, code, severity, msg) for code, severity, msg in kernel_advice.judge(args))
        if len(" ".join(args)) > MAX_COMMAND_LINE:
            yield Finding(number, "command_line", ERROR, f"a kernel reads at most {MAX_COMMAND_LINE} bytes of it")


def _habits(number: int, verb: str, rest: t.Sequence[str]) -> t.Iterator[Finding]:
    """Widespread recipes that do something else than is hoped."""
    if verb == "dhcp" or (verb == "ifconf" and not {"-c", "--configurator"} & {word.split("=")[0] for word in rest}):
        message = f"{verb} waits for IPv6 as well, some 15 s without a router; write ifconf -c dhcp netX"
        yield Finding(number, "waits_for_ipv6", ERROR, message)
    if verb in ("dhcp", "ifconf", "ifopen") and any(re.match(r"net\d+$", word) for word in rest):
        yield Finding(number, "fixed_port", ERROR, "net0 is the first port and not the one that booted; write netX")
    if verb in ("chain", "imgfetch", "kernel") and re.search(
        r"(snponly|undionly|ipxe)[^/]*\.(efi|k*pxe|lkrn)$", _first(rest)
    ):
        message = f"{verb} loads another iPXE, which asks DHCP again and can end up here for ever"
        yield Finding(number, "loads_ipxe", ERROR, message)
    if verb == "set" and rest[:1] == ["debug"]:
        yield Finding(number, "set_debug", ERROR, "set debug only stores a word; debugging is built in or not")


def _exits(commands: t.Sequence[Command]) -> t.Iterator[Finding]:
    """UEFI goes on to its next boot option only after a failure."""
    for command in commands:
        if command.words[:1] == ["exit"] and command.words[1:] in ([], ["0"]):
            message = "on UEFI this leads to the firmware's menu; write iseq ${platform} efi && exit 1 || exit 0"
            yield Finding(command.line, "exit_0", ERROR, message)


def _reboots(commands: t.Sequence[Command]) -> t.Iterator[Finding]:
    """After a failure the same script comes again, with minutes of self-test in between, for ever."""
    for before, command in zip(commands, commands[1:]):
        slept = before.words[:1] == ["sleep"]
        if command.words[:1] == ["reboot"] and (slept or (before.then == "||" and before.line == command.line)):
            message = "a reboot after a failure repeats it for ever; retry in place, a few times, and leave by exit"
            yield Finding(command.line, "reboot_loop", ERROR, message)


def _operands(words: t.Sequence[str]) -> list[str]:
    """What follows the options of a fetching command: its URL, then the arguments."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in _VALUE_OPTIONS else 1
    return list(words[index:])


def _first(words: t.Sequence[str]) -> str:
    return (_operands(words) or [""])[0]


def _option(words: t.Sequence[str], *names: str) -> str:
    for index, word in enumerate(words):
        if word in names and index + 1 < len(words):
            return words[index + 1]
        for name in names:
            if word.startswith(f"{name}="):
                return word[len(name) + 1 :]
        if not word.startswith("-") and (index == 0 or words[index - 1] not in _VALUE_OPTIONS):
            break
    return ""


def _image_name(command: Command) -> str:
    rest = command.words[1:]
    return _option(rest, "--name", "-n") or _first(rest).split("?")[0].rstrip("/").rsplit("/", 1)[-1]


def _initrd_names(commands: t.Sequence[Command]) -> t.Iterator[Finding]:
    """On UEFI the kernel finds an initrd only by the name that initrd= says."""
    loaded = {_image_name(command) for command in commands if command.words and command.words[0] in _LOADS_INITRD}
    wanted: dict[str, int] = {}
    for command in commands:
        if command.words and command.words[0] in _WITH_ARGS:
            for word in _operands(command.words[1:])[1:]:
                if word.startswith("initrd="):
                    wanted.setdefault(word[len("initrd=") :], command.line)
    if any("${" in name for name in (*loaded, *wanted)):
        return
    initrds = {_image_name(command): command.line for command in commands if command.words[:1] == ["initrd"]}
    for name in sorted(set(wanted) - loaded - {"initrd.magic"}):
        yield Finding(wanted[name], "initrd_name", ERROR, f"initrd={name}, but none is fetched under that name")
    if "initrd.magic" in wanted:
        return
    for name in sorted(set(initrds) - set(wanted)):
        message = f"the initrd {name} is fetched, but no initrd={name} tells a UEFI kernel about it"
        yield Finding(initrds[name], "initrd_name", ERROR, message)


def _fetched_twice(commands: t.Sequence[Command]) -> t.Iterator[Finding]:
    """iPXE has no cache: the same URL again is the same load again, and one image more in the initrd."""
    seen: dict[str, int] = {}
    for command in commands:
        if command.words and command.words[0] in ("kernel", "initrd", "imgfetch", "module"):
            url = _first(command.words[1:])
            if url in seen and seen[url] != command.line:
                yield Finding(command.line, "fetched_twice", ERROR, f"{url} is fetched in line {seen[url]} already")
            seen.setdefault(url, command.line)
