"""What a simulated device computes instead of logits, and how it lies when told to."""

from collections.abc import Sequence

from msgspec.structs import replace

from helios.contract.submission import Completion, Geometry, Sampling
from helios.errors import DeviceError

WORD = (1 << 64) - 1
SCALE = 1 << 20


def mix(*values: int) -> int:
    """A 64-bit digest of numbers, the same on every machine."""
    digest = 0x9E3779B97F4A7C15
    for value in values:
        digest = ((digest ^ (value & WORD)) * 0xD6E8FEB86659FD93) & WORD
        digest ^= digest >> 32
    return digest


def histogram_digest(tokens: Sequence[int]) -> int:
    """What the device knows of a histogram: equal for equal counts, whatever the order."""
    return sum(mix(token) for token in tokens) & WORD


def draw(sampling: Sampling, position: int, history: int, prompt: int, output: int) -> int:
    """The number that decides a token, given digests of its history and of both histograms."""
    return mix(sampling.seed, int(sampling.temperature * SCALE), position, history, prompt, output)


def choose(number: int, vocabulary: int, mask: bytes | None, ends: Sequence[int]) -> int:
    """The token that a number picks: one time in eight an end token, never a masked one."""
    token = number % vocabulary
    if ends and (number >> 40) % 8 == 0:
        token = ends[0]
    if mask is None:
        return token
    for step in range(vocabulary):
        candidate = (token + step) % vocabulary
        if mask[candidate >> 3] >> (candidate & 7) & 1:
            return candidate
    raise DeviceError("a grammar mask allows no token", field="grammar_mask")


def lie(completion: Completion, choice: int, geometry: Geometry) -> Completion:
    """The record with one thing in it that can't be true."""
    if not completion.lanes:
        return replace(completion, sequence=completion.sequence + 1)
    index = choice % len(completion.lanes)
    record = completion.lanes[index]
    lies = (
        replace(record, generation=record.generation + 1),
        replace(record, slot=record.slot + 1),
        replace(record, endpoint=record.endpoint + 1),
        replace(record, accepted=record.accepted + 1),
        replace(record, accepted=1, tokens=(geometry.vocabulary,)),
        replace(record, cursor=record.cursor + 1),
        replace(record, model=0),
    )
    lanes = list(completion.lanes)
    lanes[index] = lies[(choice >> 8) % len(lies)]
    return replace(completion, lanes=tuple(lanes))
