"""Tuning is tested on the toys that other areas test compiling and kernels with."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / area) for area in ("compile", "native")]
