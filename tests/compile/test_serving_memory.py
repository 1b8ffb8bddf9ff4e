"""Resident memory of a process of its own that serves every slot to its full context."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helios.compile.report import PROCESS_NBYTES

PROBE = Path(__file__).with_name("memory_probe.py")


def probe(core: Path, home: Path, memory: int, context: int, concurrency: int) -> dict[str, Any]:
    words = [sys.executable, PROBE, core, home, memory, context, concurrency]
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("limits", [(300 << 20, 640, 4), (0, 0, 0)], ids=["loaded", "minimum"])
def test_resident_memory_stays_within_plan_and_constant(
    smollm2_path: Path, smollm2_home: Path, limits: tuple[int, int, int]
) -> None:
    """At the smallest budget too, which serves one request of full context."""
    found = probe(smollm2_path, smollm2_home, *limits)
    context, sequences, _ = found["limits"]
    assert found["reasons"] == [f"length: {context - 40} + 40"] * sequences
    assert found["planned"] <= found["budget"]
    assert found["peak"] <= found["planned"] + PROCESS_NBYTES
    if not limits[0]:
        assert (found["planned"], sequences) == (found["budget"], 1)
