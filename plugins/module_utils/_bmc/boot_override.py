# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the boot override and making sure that it stuck. Private to h200.rack."""

from __future__ import annotations

import typing as t

from . import boot_words as bw
from .answer import Answer
from .errors import BmcError
from .patch import patch
from .quirks import Traits
from .redfish import Redfish
from .systems import path_of

# Seconds before each further look: some BMCs show a change late.
READ_BACK_PAUSES = (0.0, 1.0, 2.0, 3.0)
# "Not here, but in the settings": Tacklebox #144 (AMI), c.g #11297 (iDRAC 10).
ELSEWHERE = ("OperationSupportedInFutureStateURI", "PropertyNotWritable", "PropertyNotWritableOrUnknown")


class BootOverride:
    """The override of the chosen system: read, then written by the smallest request that sticks."""

    def __init__(self, client: Redfish, traits: Traits) -> None:
        self.client = client
        self.traits = traits
        self.system = client.read_system().body
        self.settings_path = self._settings_path()
        self.settings = self._read_settings()
        self.strategy = "none"
        self.scheduled = False  # the BMC made a job of it, and shows nothing before the restart

    # -- reading ------------------------------------------------------------------------------------------

    def _settings_path(self) -> str | None:
        settings = self.system.get("@Redfish.Settings")
        path = path_of(settings.get("SettingsObject")) if isinstance(settings, dict) else None
        return path if path != self.client.system_path else None

    def _read_settings(self) -> dict[str, t.Any]:
        if not self.settings_path:
            return {}
        answer = self.client.try_get(self.settings_path)
        return answer.body if answer.ok else {}

    @property
    def boot(self) -> dict[str, t.Any]:
        """The Boot object; what only the settings resource knows is added."""
        return {**bw.boot_of(self.settings), **bw.boot_of(self.system)}

    def missing(self, want: dict[str, str]) -> list[str]:
        """What is not as wanted, neither now nor pending in the settings resource."""
        wrong = bw.mismatch(want, self.boot, self.traits)
        pending = bw.boot_of(self.settings)
        if wrong and pending.get(bw.TARGET) and not bw.mismatch(want, pending, self.traits):
            return []
        return wrong

    def words(self, want: dict[str, str] | None = None) -> bw.Words:
        """The override in our words; given ``want``, the pending one if only that fulfils it."""
        if want and bw.mismatch(want, self.boot, self.traits) and not self.missing(want):
            return bw.decode(bw.boot_of(self.settings))
        return bw.decode(self.boot)

    # -- writing ------------------------------------------------------------------------------------------

    def write(self, want: dict[str, str]) -> list[str]:
        """Apply ``want``; the warnings. Raises BmcError when nothing made it stick."""
        before = self.boot
        error: BmcError | None = None
        stuck: list[str] | None = None  # what was still wrong after the last request that was accepted
        elsewhere = False  # whether the BMC said so
        for path, advertised in self._places():
            if not advertised and not (elsewhere and self.client.try_get(path).ok):
                continue
            if path != self.client.system_path:
                self.settings_path = path
            for data in bw.payloads(want, self.boot, self.traits):
                answer = patch(self.client, path, {"Boot": data})
                if answer is not None and answer.status in (401, 403):
                    raise answer.error("Setting the boot override")
                wrong = self._read_back(want, accepted=answer is None or answer.ok)
                flipped = self._flipped(want, before)
                if not wrong and not flipped:
                    self.strategy = "settings" if path != self.client.system_path else "system"
                    return self._warnings(want, answer)
                if self._is_scheduled(path, answer):
                    self.strategy, self.scheduled = "settings", True
                    return ["The BMC scheduled the override for the next restart; until then it cannot be read back."]
                if answer is None or answer.ok:
                    stuck = wrong + flipped
                    if flipped:  # the BMC changed the mode by itself: put it right with the next, fuller request
                        want = {**want, bw.MODE: before[bw.MODE]}
                else:
                    error = answer.error("Setting the boot override", **self._facts(before))
                    if answer.verdict == ("busy", True):
                        raise error  # the machine did not become ready in time; other words do not help
                    elsewhere = answer.status == 405 or answer.says(*ELSEWHERE)
                    if elsewhere:
                        break
        if stuck is not None or error is None:
            raise self._not_applied(want, stuck or [], before)
        allowed = before.get(bw.ALLOWED)
        if want[bw.ENABLED] == "Disabled" and isinstance(allowed, list) and "None" not in allowed:
            names = ", ".join(map(str, allowed))
            said = f"This BMC always boots from one target and cannot remove it; it allows: {names}."
            raise BmcError(
                "unsupported", f"{said} Use target=disk.", http_status=error.http_status, **self._facts(before)
            )
        offered = before.get(bw.ALLOWED_ENABLED)
        if isinstance(offered, list) and offered and want[bw.ENABLED] not in offered:
            error.msg += f" It offers the persistence {', '.join(map(str, offered))}, not {want[bw.ENABLED]}."
        error.details.update(self._facts(before))
        raise error

    def _places(self) -> list[tuple[str, bool]]:
        """Where to write, and whether the BMC advertises it: first settings with an override of their own, as Redfish
        has it. Where nothing is advertised, iDRAC 10 and AMI keep the settings at these URIs."""
        system = (self.client.system_path, True)
        if not self.settings_path:
            return [system, *((f"{system[0]}/{name}", False) for name in ("Settings", "SD"))]
        settings = (self.settings_path, True)
        return [settings, system] if bw.TARGET in bw.boot_of(self.settings) else [system, settings]

    def _is_scheduled(self, path: str, answer: Answer | None) -> bool:
        """Whether a job was made at a settings resource that shows no values (iDRAC: apply time OnReset)."""
        if path == self.client.system_path or answer is None or not answer.ok:
            return False
        job = answer.status == 202 or "job" in answer.headers.get("location", "").lower()
        return job and not bw.boot_of(self.settings).get(bw.TARGET)

    def _read_back(self, want: dict[str, str], accepted: bool) -> list[str]:
        """What is still not as wanted, after a while if the BMC said that it would be."""
        wrong: list[str] = []
        for pause in READ_BACK_PAUSES if accepted else READ_BACK_PAUSES[:1]:
            self.client.deadline.pause(pause)
            self.system = self.client.read_system().body
            wrong = self.missing(want)
            if wrong and self.settings_path:
                self.settings = self._read_settings()
                wrong = self.missing(want)
            if not wrong:
                break
        return wrong

    def _flipped(self, want: dict[str, str], before: dict[str, t.Any]) -> list[str]:
        """The mode, when nobody asked for a change and the BMC changed it (Supermicro, stories 2008252, 2008712)."""
        if bw.MODE in want or before.get(bw.MODE) not in bw.MODES.values():
            return []
        return [bw.MODE] if bw.boot_of(self.system).get(bw.MODE, before[bw.MODE]) != before[bw.MODE] else []

    # -- reporting ----------------------------------------------------------------------------------------

    def _warnings(self, want: dict[str, str], answer: Answer | None) -> list[str]:
        found = []
        if answer is not None and not answer.ok:
            found.append(f"The BMC answered HTTP {answer.status} to the boot override although it took effect.")
        boot = bw.boot_of(self.system)
        if want[bw.ENABLED] == "Once" and boot.get(bw.ENABLED) == "Continuous":
            found.append("This BMC knows no one-time override: the target stays until it is changed.")
        if boot.get(bw.TARGET) not in (want[bw.TARGET], None) and want[bw.ENABLED] != "Disabled":
            found.append(f"This BMC reports the target {want[bw.TARGET]} as {boot.get(bw.TARGET)}.")
        return found

    def _facts(self, before: dict[str, t.Any]) -> dict[str, t.Any]:
        old, new = bw.decode(before), self.words()
        return {"boot": {"before": old, "after": new}, "changed": old != new}

    def _not_applied(self, want: dict[str, str], wrong: list[str], before: dict[str, t.Any]) -> BmcError:
        now = self.boot
        said = ", ".join(f"{name} is {now.get(name)!r}, not {want.get(name)!r}" for name in dict.fromkeys(wrong))
        return BmcError(
            "not_applied",
            f"The BMC accepted the boot override but did not keep it: {said}. Try mode=uefi or another persistence, "
            "or update its firmware.",
            **self._facts(before),
        )
