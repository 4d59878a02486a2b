# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules in the built ramdisk, on a machine with firmware and disks of four kinds, each step as a play would."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import typing as t

import guest
import pytest
from guest import MIB, Guest
from image_testing import make_key, publish_raw

pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(guest.missing()), reason=f"not here: {guest.missing()}")]


@pytest.fixture(scope="module")
def bootable(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, str, pathlib.Path]:
    """A mirror's root with an image that boots, its digest, and the public key."""
    folder = tmp_path_factory.mktemp("bootable")
    private, public = make_key(folder, "signing")
    outcome = publish_raw(folder, guest.bootable_image(folder), private)
    assert outcome.digest
    return folder / "mirror", outcome.digest, public


@pytest.fixture(scope="module")
def machine(bootable, tmp_path_factory) -> t.Iterator[Guest]:
    running = Guest(tmp_path_factory.mktemp("guest"), bootable[2].read_text())
    try:
        running.wait_for_ssh()
        yield running
    finally:
        running.stop()


def results(machine: Guest, tasks: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Run modules with their options; returns their results."""
    out = machine.folder / "results"
    play: list[dict[str, t.Any]] = []
    for number, task in enumerate(tasks):
        (out / str(number)).unlink(missing_ok=True) if out.exists() else out.mkdir()
        play.append({"name": "work", **task, "register": "done", "ignore_errors": True})
        copy = {"content": "{{ done | to_json }}", "dest": f"{out}/{number}"}
        play.append({"name": "told", "ansible.builtin.copy": copy, "delegate_to": "localhost", "check_mode": False})
    done = machine.play(play)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads((out / str(number)).read_text()) for number in range(len(tasks))]


def test_how_large_the_ramdisk_is_and_how_long_it_took_is_told(machine, record_property, capsys) -> None:
    """Emulated here, so many times what a server takes; the journal of a real one has the same line."""
    lines = re.findall(rf"h200-rack: {machine.NODE}: .* ([0-9.]+) s after the kernel's start", machine.run("dmesg"))
    size = sum((guest.RAMDISK / name).stat().st_size for name in ("vmlinuz", "initrd.img"))
    assert len(lines) == 1
    record_property("network_seconds", float(lines[0]))
    with capsys.disabled():
        print(f"\nramdisk: {size / MIB:.1f} MiB, its network is up {lines[0]} s after the kernel's start")


def test_each_disk_is_erased_in_the_best_way_that_it_really_has(machine) -> None:
    for name in ("nvme", "sata", "scsi"):
        with machine.disks[name].open("r+b") as handle:
            for offset in range(0, 128 * MIB, 8 * MIB):
                handle.seek(offset)
                handle.write(os.urandom(MIB))

    def wipe(serial: str, **more: t.Any) -> dict[str, t.Any]:
        options = {"node": machine.NODE, "confirm": machine.NODE, "disk": {"serial": serial}, **more}
        return {"h200.rack.disk_wipe": options}

    planned, crypto, nvme, sata, scsi, other = results(
        machine,
        [
            {**wipe("NVME-0001"), "check_mode": True},
            # QEMU's NVMe controller has no crypto erase, and the module must not pretend one.
            wipe("NVME-0001", methods=["crypto"]),
            wipe("NVME-0001"),
            wipe("SATA-0001"),
            wipe("SCSI-0001"),
            wipe("SCSI-0001", confirm="gpu002"),
        ],
    )
    assert planned["disks"][0]["verdict"] == "would_erase" and planned["disks"][0]["disk"]["serial"] == "NVME-0001"
    assert crypto["failed"] and crypto["disks"][0]["verdict"] == "unsupported"
    assert (nvme["disks"][0]["verdict"], nvme["disks"][0]["how"]) == ("erased", "nvme format -s 1")
    assert (sata["disks"][0]["verdict"], sata["disks"][0]["method"]) == ("erased", "overwrite")
    assert (scsi["disks"][0]["verdict"], scsi["disks"][0]["method"]) == ("erased", "overwrite")
    assert other["failed"] and "confirm" in other["msg"]
    for name in ("nvme", "sata", "scsi"):
        assert not any(machine.disks[name].read_bytes())


@pytest.mark.skipif(shutil.which("opentracker") is None, reason="opentracker is not installed")
def test_an_image_comes_by_bittorrent_and_its_pieces_are_in_memory(machine, bootable, mirror) -> None:
    root, digest, _public = bootable
    port = guest.free_port()
    (machine.folder / "whitelist").write_text((root / "images/test" / digest / "image.infohash").read_text())
    tracker = subprocess.Popen(
        ["opentracker", "-i", "127.0.0.1", "-p", str(port), "-d", str(machine.folder), "-w", "/whitelist"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    options = {
        "mirrors": [f"http://10.0.2.2:{mirror(root=root).url.rpartition(':')[2]}"],
        "image": "test",
        "digest": digest,
        "node": machine.NODE,
        "disk": {"serial": "SCSI-0001"},
        "boot_order": "keep",
        "verify": "all",
        "transport": "bittorrent",
        "trackers": [f"http://10.0.2.2:{port}/announce"],
    }
    try:
        (written,) = results(machine, [{"h200.rack.image_write": options}])
    finally:
        tracker.kill()
        tracker.wait()
    assert written["changed"], written
    assert written["transport"]["used"] == "bittorrent" and written["transport"]["pieces"] == "memory"
    assert not written["transport"]["error"]
    assert "h200-rack-pieces" not in machine.run("cat", "/proc/mounts")


def test_the_written_system_is_started_without_the_firmware(machine, bootable, mirror) -> None:
    root, digest, _public = bootable
    server = mirror(root=root)
    options = {
        "mirrors": [f"http://10.0.2.2:{server.url.rpartition(':')[2]}"],
        "image": "test",
        "digest": digest,
        "node": machine.NODE,
        "disk": {"serial": "ROOT-0001"},
        "seed": {"hostname": machine.NODE},
        "boot_order": "disk_first",
        "finish": "kexec_load",
    }
    planned, two, none, wrong, written, again = results(
        machine,
        [
            {"h200.rack.image_write": options, "check_mode": True},
            {"h200.rack.image_write": {**options, "disk": {"size": "<1"}}},
            {"h200.rack.image_write": {**options, "disk": {"serial": "nothing"}}},
            {"h200.rack.image_write": {**options, "node": "gpu002"}},
            {"h200.rack.image_write": options},
            {"h200.rack.image_write": options},
        ],
    )
    assert planned["changed"] and planned["disk"]["serial"] == "ROOT-0001" and "finish" not in planned
    for result, word in ((two, "4 disks match"), (none, "no disk matches")):
        assert result["failed"] and word in result["msg"]
        assert all(serial in result["msg"] for serial in ("ROOT-0001", "NVME-0001", "SATA-0001", "SCSI-0001"))
    assert wrong["failed"] and "booted as gpu001" in wrong["msg"]
    assert written["changed"] and written["boot_entry"]["state"] == "present"
    assert written["boot_entry"]["order"][0] == written["boot_entry"]["number"]
    assert written["finish"]["method"] == "kexec_loaded" and written["finish"]["kernel"] == "/vmlinuz"
    assert again["already"] and not again["changed"] and again["boot_entry"] == written["boot_entry"]
    assert again["finish"]["method"] == "kexec_loaded"
    assert machine.run("cat", "/sys/kernel/kexec_loaded").strip() == "1"
    machine.run("setsid sh -c 'sleep 1; exec kexec --exec' >/dev/null 2>&1 </dev/null &")
    machine.wait_until_off()
    line = next(line for line in machine.said().splitlines() if guest.STARTED in line)
    assert "root=LABEL=written" in line and "$extra" not in line and "rack.node" not in line
