"""Any byte flipped, any range cut or added: the same contents or a `HeliosError`.

Key ids are hints and may change; nothing else may, so nearly every change is refused.
"""

import random
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making_cores import NAMESPACE, read_everything, write_small

from helios.core.keys import SigningKey
from helios.core.layout import HEAD_NBYTES
from helios.core.reader import authenticate, authorize, inspect
from helios.core.trust import TrustStore
from helios.errors import HeliosError


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> "Damaged":
    return Damaged(tmp_path_factory.mktemp("damage"))


class Damaged:
    """A small core, what it holds, and the outcome of reading it after some damage."""

    def __init__(self, folder: Path) -> None:
        key = SigningKey.generate()
        self.path = folder / "small.core"
        self.trust = TrustStore(folder / "home")
        self.trust.add(NAMESPACE, key.public)
        write_small(self.path, key)
        self.data = self.path.read_bytes()
        self.contents = read_everything(self.path, self.trust)
        hint = self.data.index(key.id.encode(), HEAD_NBYTES)
        self.hint = range(hint, hint + len(key.id))

    def survives(self, data: bytes) -> bool:
        """Whether `data` still reads; if it does, as the undamaged contents."""
        self.path.write_bytes(data)
        try:
            found = read_everything(self.path, self.trust)
        except HeliosError:
            return False
        assert found == self.contents
        return True

    def inspect_survives(self, data: bytes) -> None:
        self.path.write_bytes(data)
        with suppress(HeliosError):
            inspect(self.path)

    def is_padding(self, place: int) -> bool:
        return not any(self.data[max(0, place - 32) : place + 32])


def test_the_undamaged_core_survives(damaged: Damaged) -> None:
    assert damaged.survives(damaged.data)


def test_every_flipped_byte_is_refused(damaged: Damaged) -> None:
    masks = random.Random(1)
    survived = []
    for place in range(len(damaged.data)):
        if damaged.is_padding(place) and place % 97:
            continue
        data = bytearray(damaged.data)
        data[place] ^= 1 << masks.randrange(8)
        if damaged.survives(bytes(data)):
            survived.append(place)
    assert set(survived) <= set(damaged.hint)


def test_every_bit_of_the_head(damaged: Damaged) -> None:
    for place in range(HEAD_NBYTES):
        for bit in range(8):
            data = bytearray(damaged.data)
            data[place] ^= 1 << bit
            assert not damaged.survives(bytes(data))


def test_every_length_but_the_right_one_is_refused(damaged: Damaged) -> None:
    for end in range(len(damaged.data)):
        if damaged.is_padding(end) and end % 97:
            continue
        assert not damaged.survives(damaged.data[:end])
    for extra in (b"\0", b"x", bytes(4096), damaged.data):
        assert not damaged.survives(damaged.data + extra)


EDIT = st.tuples(st.integers(0, 1 << 30), st.integers(0, 64), st.binary(max_size=64), st.booleans())


@settings(
    derandomize=True,
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(EDIT, min_size=1, max_size=3))
def test_ranges_cut_replaced_and_added(
    damaged: Damaged, edits: list[tuple[int, int, bytes, bool]]
) -> None:
    data = damaged.data
    for where, length, new, early in edits:
        at = where % (1200 if early else len(data))  # half of them in the head
        data = data[:at] + new + data[at + length :]
    if damaged.survives(data):
        start, stop = damaged.hint.start, damaged.hint.stop
        assert data == damaged.data or data[stop:] == damaged.data[stop:]
        assert data[:start] == damaged.data[:start]
    damaged.inspect_survives(data)


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit


def test_damage_never_costs_memory(damaged: Damaged) -> None:
    choices = random.Random(2)
    limit = 1 << 20  # a core of 28 KB; Python's own bookkeeping is in there too
    for _ in range(150):
        data = bytearray(damaged.data)
        for _ in range(choices.randrange(1, 4)):
            data[choices.randrange(1200)] = choices.choice((0, 1, 0x7F, 0x80, 0xFF))
        with memory_below(limit):
            damaged.survives(bytes(data))
            damaged.inspect_survives(bytes(data))


def test_what_is_held_never_exceeds_the_file(damaged: Damaged) -> None:
    damaged.path.write_bytes(damaged.data)
    for mode in (0o644, 0o666):
        damaged.path.chmod(mode)
        with authorize(authenticate(damaged.path, damaged.trust), NAMESPACE) as core:
            assert core.mapped_nbytes + core.copied_nbytes <= len(damaged.data)
    damaged.path.chmod(0o644)
