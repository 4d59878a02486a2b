# Copyright (c) 2026 The h200.rack maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What launchers, engines, shells, editors and people wrap a good log in: the verdict must not change."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re

import pytest
from ansible_collections.h200.rack.plugins.module_utils._gpu.nccl_probe import probe

_spec = importlib.util.spec_from_file_location("nccl_writer", pathlib.Path(__file__).with_name("nccl_writer.py"))
nccl_writer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(nccl_writer)
Run = nccl_writer.Run

LINES = Run(nodes=2, peak=478).lines()
TEXT = Run(nodes=2, peak=478).text()
PAIR = {"profile": {"name": "h200_sxm"}, "expect_hosts": 2, "expect_ranks": 16}


def judged(text, **options):
    return probe({"log_content": text, **PAIR, **options})


def codes(result):
    return [reason["code"] for reason in result["reasons"]]


PREFIXES = {
    "Open MPI --timestamp-output": "Mon Nov 30 18:40:49 2026<stdout>:",
    "Open MPI, time and tag": "Mon Nov 30 18:40:49 2026[1,0]<stdout>:",
    "PRRTE tag": "[prterun-r09-n01-71234@1,0]<stdout>:",
    "PRRTE detailed tag": "[prterun-r09-n01-71234@1,0][r09-n01:7000]<stdout>: ",
    "srun -l": "00: ",
    "Hydra": "[0] ",
    "kubectl logs --timestamps": "2026-11-30T12:00:00.123456789Z ",
    "kubectl logs with an offset": "2026-11-30T12:00:00.123456789+01:00 ",
    "docker compose": "nccl-1  | ",
    "journald": "Nov 30 12:00:00 r09-n01 nccl[4711]: ",
    "stern": "nccl-x7 launcher ",
    "a quote of a quote": ">> ",
    "indentation by a tab": "\t",
    "pdsh": "r09-n01: ",
    "clush around srun -l": "r09-n01: 0: ",
    "seconds since 1970": "1764500000.123 ",
    "date in brackets": "[2026-11-30 12:00:00] ",
    "time": "12:00:00 ",
    "Python's logging": "2026-11-30 12:00:00,123 INFO ",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_a_prefix_of_every_line_changes_nothing(prefix):
    result = judged("".join(f"{prefix}{line}\n" for line in LINES))
    assert (result["verdict"], codes(result), len(result["rows"])) == ("pass", [], 32)


WRAPPED = {
    "CRLF": TEXT.replace("\n", "\r\n"),
    "CR alone": TEXT.replace("\n", "\r"),
    "colours": TEXT.replace("478.", "\x1b[32m478.").replace(" 0\n", "\x1b[0m 0\n"),
    "a terminal's title": TEXT.replace("# nThread", "\x1b]0;title\x07# nThread"),
    "byte order mark": "\ufeff" + TEXT,
    "blanks of a web page": TEXT.replace("  ", "\u00a0 "),
    "invisible marks": TEXT.replace("# ", "# \u200b"),
    "tabs for blanks": re.sub(" {2,}", "\t", TEXT),
    "every line twice": "".join(f"{line}\n{line}\n" for line in LINES),
    "the whole log twice": TEXT + TEXT,
    "empty lines between": "\n\n".join(LINES),
    "line numbers": "".join(f"{k:6d}\t{line}\n" for k, line in enumerate(LINES, 1)),
    "a list of strings": "".join(f'        "{line}",\n' for line in LINES),
    "a fence": f"```\n{TEXT}```\n",
    "a web page": f"<pre>{TEXT}</pre>",
    "Docker's log file": "".join(
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-11-30T12:00:00Z"}) + "\n" for line in LINES
    ),
    "JSON behind a byte order mark": "\ufeff" + Run(nodes=2, peak=478).json(),
    "JSON made pretty": json.dumps(Run(nodes=2, peak=478).document(), indent=4),
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED)
def test_what_a_log_was_wrapped_in_changes_nothing(text):
    result = judged(text)
    assert (result["verdict"], codes(result), result["ranks"]) == ("pass", [], 16)


def test_a_file_of_a_windows_shell_is_read(tmp_path):
    path = tmp_path / "nccl.log"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode("utf-16"))
    assert probe({"log": str(path), **PAIR})["verdict"] == "pass"


FORMS = {
    "no version and no name of the test": re.sub(r"# (?:Collective test|nccl-tests).*\n", "", TEXT),
    "a bus without its domain": re.sub(r"\[0000:(..):00\]", r"[0x\1]", TEXT),
    "no group and no process": re.sub(r"Group +0 Pid +\d+ ", "", TEXT),
    "a field that is not known yet": TEXT.replace("Group  0 ", "Group  0 Node  0 "),
    "a bus with its function": TEXT.replace(":00]", ":00.0]"),
    "no host names": re.sub(r"r09-n\d+", "       ", TEXT),
    "full host names": TEXT.replace("r09-n01", "r09-n01.example.com"),
    "every rank sees one GPU only": re.sub(r"device +\d", "device  0", TEXT),
    "times of the processor": TEXT.replace("time   algbw", "cputime algbw"),
    "unalign": TEXT.replace("graph: 0", "graph: 0 unalign: 0"),
    "memory in the foot": TEXT.replace(
        "# Avg", "# GPU memory usage     : Initialization 1.2 GB | Total  1.2 GB\n# Avg"
    ),
    "blocking": TEXT.replace(
        "# Using devices",
        "# Blocking Enabled: wait for completion and barrier after each collective \n"
        "# Parallel Init Enabled: threads call into NcclInitRank concurrently \n#\n# Using devices",
    ),
    "its own check of the average": re.sub(r"(bandwidth    : \S+) ", r"\1 OK", TEXT),
    "the size of the communicator": "r09-n01:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 16 - Init COMPLETE\n" + TEXT,
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_forms_of_other_versions_are_read(text):
    result = judged(text)
    assert (result["verdict"], codes(result), result["collective"]) == ("pass", [], "all_reduce")


NOISE = {
    "openib": "WARNING: There was an error initializing an OpenFabrics device.\n\n  Local host:   r09-n01\n",
    "PMIx lock": "[r09-n01:7000] PMIX ERROR: ERROR in file gds_ds12_lock_pthread.c at line 169\n",
    "PMIx compression": "PMIx was unable to find a usable compression library\non the system.\n",
    "plugin": "[r09-n01:7000] mca_base_component_repository_open: unable to open mca_btl_uct: libuct.so.0: cannot open "
    "shared object file: No such file or directory (ignored)\n",
    "help": "[r09-n01:7000] 15 more processes have sent help message help-mpi-btl-openib.txt / error in device init\n",
    "UCX": "[1764500000.1] [r09-n01:7000 :0]  parser.c:2036 UCX  WARN  unused environment variables: UCX_HOME\n",
    "srun": "srun: warning: can't honor --ntasks-per-node set to 8 which doesn't match the requested tasks 16\n",
    "queue": "srun: job 77 queued and waiting for resources\nsrun: job 77 has been allocated resources\n",
    "NCCL's tuner": "r09-n01:7000:7100 [0] misc/cudawrap.cc:90 NCCL WARN Could not find libnccl-tuner.so\n",
    "NCCL's ports": "r09-n01:7000:7100 [0] NCCL INFO NET/IB : No device found.\n",
    "NVLS is there": "r09-n01:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)\n",
    "environment": "NCCL_IB_TIMEOUT=22\nSLURM_KILL_BAD_EXIT=1\nTEST_TIMEOUT=600 killed=0\n",
    "X11": "srun: error: spank: x11: Connection 1 refused\n",
    "ssh": "Warning: Permanently added 'r09-n02' (ED25519) to the list of known hosts.\n",
    "names of all programs": "Tests: all_reduce_perf all_gather_perf alltoall_perf\n",
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_complaints_that_good_runs_make_too_do_not_fail_them(noise):
    result = judged(noise + TEXT + noise)
    assert (result["verdict"], codes(result)) == ("pass", [])


@pytest.mark.parametrize("line", [" " * 1999 + "x", "1 " * 999, "#" * 1999, "[" * 1999, "<" * 1999, "CUDA " * 399])
def test_long_lines_of_one_mark_do_not_cost_the_square_of_their_length(line):
    assert judged(f"{line}\n" * 300 + TEXT)["verdict"] == "pass"
