"""Resident memory of a process of its own that serves every slot to its full context."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helios.compile.report import PROCESS_NBYTES

PROBE = Path(__file__).with_name("memory_probe.py")


def probe(core: Path, home: Path, memory: int, context: int, concurrency: int) -> dict[str, Any]:
    words = [sys.executable, PROBE, core, home, memory, context, concurrency]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("limits", "copied"),
    [((400 << 20, 640, 4), True), ((0, 0, 0), False)],
    ids=["loaded and copied", "minimum"],
)
def test_resident_memory_stays_within_plan_and_constant(
    smollm2_path: Path,
    smollm2_home: Path,
    tmp_path: Path,
    limits: tuple[int, int, int],
    copied: bool,
) -> None:
    """At the smallest budget too, which serves one request of full context."""
    core = smollm2_path
    if copied:  # others may write to it, so it is not mapped
        core = tmp_path / "open.core"
        shutil.copy(smollm2_path, core)
        core.chmod(0o666)
    found = probe(core, smollm2_home, *limits)
    context, sequences, _ = found["limits"]
    assert found["reasons"] == [f"length: {context - 40} + 40"] * sequences
    assert found["planned"] <= found["budget"]
    assert found["peak"] <= found["planned"] + PROCESS_NBYTES
    if not limits[0]:
        assert (found["planned"], sequences) == (found["budget"], 1)
