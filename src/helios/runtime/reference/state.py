"""Packed layout, state rows and page payloads in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Array = NDArray[Any]


def token_rows(query_length: Ints, endpoints: Ints, *, tokens: str) -> tuple[Ints, Ints]:
    """query_length [B], endpoints [B] -> rows [T], positions [T]."""
    rows = np.repeat(np.arange(len(query_length), dtype=np.int32), query_length)
    steps = [
        np.arange(e, e + n, dtype=np.int32) for e, n in zip(endpoints, query_length, strict=True)
    ]
    return rows, np.concatenate(steps) if steps else np.empty(0, dtype=np.int32)


def resolve_tokens(tokens: Ints, rows: Ints, pending: Ints) -> Ints:
    """tokens [T] with the pending token of its row in place of each negative one."""
    return np.where(tokens < 0, pending[rows], tokens)


def last_tokens(query_length: Ints, sampled_rows: Ints) -> Ints:
    """The packed index of the last token of each sampled row."""
    return (np.cumsum(query_length)[sampled_rows] - 1).astype(np.int32)


def gather(source: Array, index: Ints) -> Array:
    """source[index]."""
    return source[index]


def add_integers(left: Ints, right: Ints) -> Ints:
    """left + right."""
    return left + right


def ones(like: Ints) -> Ints:
    """Ones in the shape of `like`."""
    return np.ones_like(like)


def state_read(state: Array, rows: Ints) -> Array:
    """state[rows]."""
    return state[rows]


def state_write(state: Array, rows: Ints, value: Array) -> None:
    """state[rows] = value."""
    state[rows] = value


def state_clear(state: Array, rows: Ints) -> None:
    """state[rows] = 0."""
    state[rows] = 0


def state_add(state: Ints, rows: Ints, value: Ints) -> None:
    """state[rows] += value."""
    state[rows] += value


def histogram_add(histogram: Ints, rows: Ints, tokens: Ints) -> None:
    """histogram[rows, tokens] += 1."""
    histogram[rows, tokens] += 1


def current_page(
    slots: Ints, endpoints: Ints, selector: Ints, page_table: Ints, *, page_tokens: int
) -> Ints:
    """The page that holds each endpoint, or -1 where nothing partial is to be kept."""
    columns = endpoints // page_tokens
    partial = (endpoints % page_tokens != 0) & (selector >= 0)
    columns = np.where(partial, columns, 0)
    return np.where(partial, page_table[slots, columns], -1).astype(np.int32)


def page_save(plane: Array, page: Ints, continuation: Array, row: Ints) -> None:
    """continuation[row] = plane[page], where both are given."""
    live = (page >= 0) & (row >= 0)
    continuation[row[live]] = plane[page[live]]


def page_load(continuation: Array, row: Ints, plane: Array, page: Ints) -> None:
    """plane[page] = continuation[row], where both are given."""
    live = (page >= 0) & (row >= 0)
    plane[page[live]] = continuation[row[live]]


def store(value: Array, record: Array) -> None:
    """Into a completion buffer."""
    record[...] = value
