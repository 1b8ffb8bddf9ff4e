"""Ordinary English text: short news reports, as a package ships them for its tests.

299 reports of the Australian Broadcasting Corporation, 2001 (the background corpus of Lee, Pincombe
and Welsh, 2005), one a line. They are taken from the `gensim` wheel without installing it.
"""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.places import GENSIM, PEERS

_MEMBER = "gensim/test/test_data/lee_background.cor"
_SHA256 = "5d78d6dafd953bbf65797bef09a9ffb9ec430583381be705f8fd460000f370fb"


def corpus_text() -> str:
    """The reports, a blank line between them."""
    path = PEERS / "text" / "reports.txt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_from_wheel(path.parent))
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise SystemExit(f"{path} is not the expected text; remove it and start again")
    reports = (line.strip() for line in content.decode().splitlines())
    return "\n\n".join(report for report in reports if report)


def windows(tokens: Sequence[int], count: int, length: int) -> list[Sequence[int]]:
    """Whole windows that hold at least `count` tokens together."""
    number = -(-count // length)
    if number * length > len(tokens):
        raise SystemExit(f"the text has {len(tokens)} tokens; {number * length} were asked for")
    return [tokens[i * length : (i + 1) * length] for i in range(number)]


def _from_wheel(folder: Path) -> bytes:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), f"gensim=={GENSIM}"]
    subprocess.run(command, check=True)
    wheel = next(folder.glob("gensim-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read(_MEMBER)
    wheel.unlink()
    return content


@dataclass
class Prompts:
    """Stretches of a long token list, none handed out twice until all were.

    After a turn the cursor is put a little further, so that no stretch begins as an earlier one
    did and no cache can know it.
    """

    tokens: Sequence[int]
    cursor: int = 0
    turns: int = 0

    def take(self, count: int, length: int) -> list[list[int]]:
        """`count` stretches of `length` tokens."""
        if length > len(self.tokens) // 2:
            raise ValueError(f"{length} tokens are too many for a text of {len(self.tokens)}")
        return [self._next(length) for _ in range(count)]

    def _next(self, length: int) -> list[int]:
        if self.cursor + length > len(self.tokens):
            self.turns += 1
            self.cursor = 7 * self.turns
        found = list(self.tokens[self.cursor : self.cursor + length])
        self.cursor += length
        return found
