# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a kernel and one initramfs of an unpacked Debian system. Private to h200.rack.

The initramfs holds /usr as one squashfs file, from which the running system unpacks only what it touches. Unpacking
all of it before the first process starts would cost seconds and twice the memory.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tempfile
import typing as t
from dataclasses import asdict, dataclass, field

from ansible_collections.h200.rack.plugins.module_utils._common.atomic import read_or_none, write_atomic
from ansible_collections.h200.rack.plugins.module_utils._common.errors import InvalidInput, RackError

from . import bootstrap, cpio, kmod, manifest, squash

FORMAT = "h200.rack.ramdisk-contents/1"
CONTENTS = "contents.json"
EARLY = "early"  # the folder of the initramfs with what is needed to mount /usr
EARLY_MODULES = ("loop", "squashfs")


@dataclass(frozen=True)
class Recipe:
    """What goes into a ramdisk. Paths are of the build host; patterns are relative to the system's root."""

    source: str  # what bootstrap left: tree, kernel, firmware
    dest: str  # folder for vmlinuz, initrd.img and contents.json
    arch: str
    suite: str
    files: str | None = None  # a folder laid over the tree
    modules: t.Sequence[str] = ()
    modules_exclude: t.Sequence[str] = ()
    modules_required: t.Sequence[str] = ()
    exclude: t.Sequence[str] = ()
    links: t.Mapping[str, str] = field(default_factory=dict)
    compression_level: int = 15
    mtime: int = 0

    @property
    def tree(self) -> str:
        return os.path.join(self.source, "tree")

    @property
    def kernel_root(self) -> str:
        return os.path.join(self.source, "kernel")

    @property
    def firmware_root(self) -> str:
        return os.path.join(self.source, "firmware", "usr", "lib", "firmware")


def inputs(recipe: Recipe) -> str:
    """The digest of all that decides what comes out."""
    total = hashlib.sha256()
    fields = {key: value for key, value in asdict(recipe).items() if key not in ("source", "dest", "files")}
    total.update(json.dumps({**fields, "format": FORMAT}, sort_keys=True).encode())
    total.update(read_or_none(os.path.join(recipe.source, bootstrap.STAMP)) or b"")
    if recipe.files is not None:
        for entry in cpio.with_parents(walk(recipe.files, ())):
            content = manifest.digest_of_file(entry.source)[0] if entry.source else ""
            total.update(repr((entry.path, entry.mode, entry.data, content)).encode())
    return total.hexdigest()


def built(recipe: Recipe) -> dict[str, t.Any] | None:
    """The contents of the ramdisk that is there, if it is made of the same."""
    text = read_or_none(os.path.join(recipe.dest, CONTENTS))
    document = json.loads(text) if text is not None else {}
    return document if document.get("inputs") == inputs(recipe) else None


def kernel_version(kernel_root: str) -> str:
    found = sorted(
        name[len("vmlinuz-") :] for name in os.listdir(os.path.join(kernel_root, "boot")) if name.startswith("vmlinuz-")
    )
    if len(found) != 1:
        raise InvalidInput(f"{kernel_root}/boot holds {len(found)} kernels, not one")
    return found[0]


def run(*command: str) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, check=False, **pipes)  # pylint: disable=ansible-bad-function  # no AnsibleModule here
    if done.returncode != 0:
        output = done.stdout.decode("utf-8", "replace").strip()
        raise RackError(f"{' '.join(command)} failed: {output[-2000:]}", code="build")


def build(recipe: Recipe) -> dict[str, t.Any]:
    """Write vmlinuz, initrd.img and contents.json into ``recipe.dest`` and return the contents."""
    version = kernel_version(recipe.kernel_root)
    with tempfile.TemporaryDirectory(prefix="h200-rack-pack-") as stage:
        names, firmware, absent, builtin = _stage_modules(recipe, version, stage)
        document: dict[str, t.Any] = {
            "format": FORMAT,
            "inputs": inputs(recipe),
            "arch": recipe.arch,
            "suite": recipe.suite,
            "kernel": version,
            "modules": names,
            "modules_sha256": manifest.digest("\n".join(names).encode()),
            "builtin": builtin,
            "firmware": {"present": sorted(firmware), "missing": absent},
            "packages": _packages(recipe.tree),
        }
        marker = json.dumps({key: document[key] for key in ("arch", "suite", "kernel")}, sort_keys=True)
        entries = _system(recipe, stage, firmware)
        entries["etc/h200-rack/ramdisk"] = cpio.regular("etc/h200-rack/ramdisk", f"{marker}\n".encode())
        os.makedirs(recipe.dest, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(recipe.dest, CONTENTS))  # until the new files are complete, nothing vouches for any
        below_usr = [entry for path, entry in entries.items() if path.startswith("usr/")]
        squashed = os.path.join(stage, "usr.squashfs")
        squash.write(
            squashed, cpio.with_parents(squash.below("usr", below_usr)), recipe.compression_level, recipe.mtime
        )
        early = [entry for path, entry in entries.items() if not path.startswith("usr/")]
        early += [
            cpio.directory("."),  # a root that anyone may write to is one that sshd does not trust
            cpio.directory("usr"),
            cpio.Entry(f"{EARLY}/usr.squashfs", stat.S_IFREG | 0o644, source=squashed),
            cpio.Entry(f"{EARLY}/busybox", stat.S_IFREG | 0o755, source=os.path.join(recipe.tree, "usr/bin/busybox")),
            cpio.symlink("usr/bin/sh", f"/{EARLY}/busybox"),  # what /init is run by; the mounted /usr hides it
            *_early_modules(os.path.join(stage, "lib", "modules", version)),
        ]
        _write_initrd(os.path.join(recipe.dest, "initrd.img"), cpio.with_parents(early), recipe.mtime)
    shutil.copyfile(
        os.path.join(recipe.kernel_root, "boot", f"vmlinuz-{version}"), os.path.join(recipe.dest, "vmlinuz")
    )
    document["files"] = {}
    for name in ("vmlinuz", "initrd.img"):
        sha256, size = manifest.digest_of_file(os.path.join(recipe.dest, name))
        document["files"][name] = {"sha256": sha256, "size": size}
    write_atomic(os.path.join(recipe.dest, CONTENTS), manifest.canonical(document))
    return document


def _system(recipe: Recipe, stage: str, firmware: t.Mapping[str, str]) -> dict[str, cpio.Entry]:
    """The whole system by path: the tree, our files, the kernel's modules, firmware, links and devices over it."""
    entries = {entry.path: entry for entry in walk(recipe.tree, recipe.exclude)}
    if recipe.files is not None:
        entries.update((entry.path, _as_root(entry)) for entry in walk(recipe.files, ()))
    for entry in walk(os.path.join(stage, "lib"), ()):
        path = f"usr/lib/{entry.path}"
        entries[path] = cpio.Entry(path, entry.mode, entry.data, entry.source)
    for name, source in firmware.items():
        path = f"usr/lib/firmware/{name}"
        entries[path] = _as_root(_entry(path, source))
    for path, target in recipe.links.items():
        entries[path] = cpio.symlink(path, target)
    for entry in (
        cpio.regular("etc/machine-id", b""),
        cpio.character_device("dev/console", 5, 1),
        cpio.character_device("dev/null", 1, 3, 0o666),
    ):
        entries[entry.path] = entry
    return entries


def _early_modules(modules: str) -> t.Iterator[cpio.Entry]:
    """The modules that mounting /usr takes, numbered in the order in which they load."""
    dep = kmod.parse_dep(_read(modules, "modules.dep"))
    order: list[str] = []
    for path in (path for name in EARLY_MODULES for path in dep if kmod.name_of(path) == name):
        order += [need for need in (*reversed(dep[path]), path) if need not in order]
    for number, path in enumerate(order):
        name = f"{EARLY}/modules/{number:02d}-{os.path.basename(path)}"
        yield cpio.Entry(name, stat.S_IFREG | 0o644, source=os.path.join(modules, path))


def _stage_modules(recipe: Recipe, version: str, stage: str) -> tuple[list[str], dict[str, str], list[str], list[str]]:
    """Lay the kept modules into ``stage``; their names, their firmware (found, absent), and what is built in."""
    usr_merged = os.path.join(recipe.kernel_root, "lib")
    if not os.path.lexists(usr_merged):
        os.symlink("usr/lib", usr_merged)
    source = os.path.join(recipe.kernel_root, "lib", "modules", version)
    run("depmod", "-b", recipe.kernel_root, version)
    dep = kmod.parse_dep(_read(source, "modules.dep"))
    softdep = kmod.parse_softdep(_read(source, "modules.softdep"))
    builtin = _read(source, "modules.builtin")
    kept = kmod.select(dep, softdep, recipe.modules, recipe.modules_exclude)
    gaps = kmod.missing(recipe.modules_required, kept, builtin)
    if gaps:
        raise InvalidInput(f"kernel {version} has no module {', '.join(gaps)}, or no pattern keeps it", missing=gaps)

    target = os.path.join(stage, "lib", "modules", version)
    wanted: set[str] = set()
    for path in kept:
        data = kmod.read_module(os.path.join(source, path))
        wanted.update(kmod.firmware_of(data))
        plain = os.path.join(target, path[: path.index(".ko") + len(".ko")])
        os.makedirs(os.path.dirname(plain), exist_ok=True)
        with open(plain, "wb") as handle:
            handle.write(data)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        if os.path.exists(os.path.join(source, name)):
            shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
    run("depmod", "-b", stage, version)
    found, absent = kmod.find_firmware(sorted(wanted), recipe.firmware_root)
    names = sorted(kmod.name_of(path) for path in kept)
    return names, found, absent, sorted(kmod.name_of(line) for line in builtin.split())


def _read(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as handle:
        return handle.read()


def _packages(tree: str) -> list[str]:
    return manifest.packages(_read(os.path.join(tree, "var/lib/dpkg"), "status"))


def _as_root(entry: cpio.Entry) -> cpio.Entry:
    return cpio.Entry(entry.path, entry.mode & ~0o022, entry.data, entry.source)


def walk(root: str, exclude: t.Sequence[str]) -> t.Iterator[cpio.Entry]:
    """Everything below ``root`` but what a pattern excludes; an excluded folder goes with all that is in it."""
    for folder, dirs, files in os.walk(root):
        relative = os.path.relpath(folder, root)
        prefix = "" if relative == "." else f"{relative}/"
        links = [name for name in dirs if os.path.islink(os.path.join(folder, name))]
        kept = [name for name in dirs if not _excluded(f"{prefix}{name}", exclude)]
        dirs[:] = [name for name in kept if name not in links]
        for name in kept + [name for name in files if not _excluded(f"{prefix}{name}", exclude)]:
            full = os.path.join(folder, name)
            if not stat.S_ISSOCK(os.lstat(full).st_mode):
                yield _entry(f"{prefix}{name}", full)


def _excluded(path: str, patterns: t.Sequence[str]) -> bool:
    """Whether the last pattern that fits the path says so; one that begins with ! takes the path back in."""
    verdict = False
    for pattern in patterns:
        if fnmatch.fnmatchcase(path, pattern.lstrip("!")):
            verdict = not pattern.startswith("!")
    return verdict


def _entry(path: str, full: str) -> cpio.Entry:
    info = os.lstat(full)
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFLNK:
        return cpio.Entry(path, info.st_mode, os.fsencode(os.readlink(full)), None, info.st_uid, info.st_gid)
    if kind == stat.S_IFREG:
        return cpio.Entry(path, info.st_mode, b"", full, info.st_uid, info.st_gid)
    device = (os.major(info.st_rdev), os.minor(info.st_rdev)) if kind in (stat.S_IFCHR, stat.S_IFBLK) else (0, 0)
    return cpio.Entry(path, info.st_mode, b"", None, info.st_uid, info.st_gid, device)


def _write_initrd(path: str, entries: t.Iterable[cpio.Entry], mtime: int) -> int:
    """Write the archive, not packed once more: what is large in it is a packed file, and the kernel copies faster."""
    with open(path, "wb") as handle:
        return cpio.write(handle, entries, mtime)
