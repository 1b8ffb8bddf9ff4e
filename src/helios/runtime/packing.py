"""Packing: a submission becomes a frame, by the contract's value bindings.

Each graph's bindings are resolved once, at start-up, into writers. Writing a step touches only
what the step changes: live rows, packed tokens, and the page-table entries that are new.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from helios.contract.kinds import IndexKind, ValueSource
from helios.contract.prepared import (
    PageTableView,
    PreparedContract,
    PreparedGraph,
    ValueBinding,
)
from helios.contract.submission import Lane, LaneMasks, Sampling, Submission
from helios.errors import ContractError, DeviceError
from helios.program.extents import ROWS, SAMPLED, TOKENS
from helios.records import dataclass
from helios.runtime.storage import Array, Storage

Frame = Mapping[str, Array]
_NO_SAMPLING = Sampling()
_ALL = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class PageUpdates:
    """Entries to write into a retained page table before the step runs, one per element."""

    destination: str
    slots: NDArray[np.int32]
    columns: NDArray[np.int32]
    pages: NDArray[np.int32]

    def apply(self, table: Array) -> None:
        """Write the entries."""
        table[self.slots, self.columns] = self.pages


@dataclass(frozen=True, slots=True)
class PackedStep:
    """A submission ready to run: lengths of the dynamic extents and retained updates."""

    program: str
    frame: int
    lengths: Mapping[str, int]
    updates: tuple[PageUpdates, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """A submission while it is packed, with the facts that several writers need."""

    lanes: tuple[Lane, ...]
    lengths: Mapping[str, int]
    sampled: Sequence[int]


Writer = Callable[[_Step, Array], None]
Supplier = Callable[[Array, LaneMasks], None]


class GraphPacker:
    """Packs submissions of one graph."""

    def __init__(self, graph: PreparedGraph, contract: PreparedContract) -> None:
        self._program = graph.program
        self._rows, self._tokens = graph.rows, graph.tokens
        self._writers: list[tuple[str, Writer]] = []
        self._late: list[tuple[str, Supplier]] = []
        # Every table is kept up to date by every graph: entries are announced only once.
        self._tables = contract.cache.page_tables
        for binding in graph.bindings:
            if binding.source is not ValueSource.PAGE_TABLE:
                self._writers.append((binding.destination, _writer(binding)))
            if binding.source in _SUPPLIERS:
                self._late.append((binding.destination, _SUPPLIERS[binding.source]))

    def pack(self, submission: Submission, storage: Storage) -> PackedStep:
        """Write a submission into its frame. Raises `DeviceError` past the graph's capacity."""
        lanes = submission.lanes
        tokens = sum(lane.query_length for lane in lanes)
        if len(lanes) > self._rows or tokens > self._tokens:
            raise DeviceError(
                "a submission exceeds its program's capacity",
                field=self._program,
                value=f"{len(lanes)} rows, {tokens} tokens",
                remedy=f"at most {self._rows} rows and {self._tokens} tokens",
            )
        sampled = [row for row, lane in enumerate(lanes) if lane.sample]
        lengths = {ROWS: len(lanes), TOKENS: tokens, SAMPLED: len(sampled)}
        step = _Step(lanes, lengths, sampled)
        for destination, write in self._writers:
            write(step, storage.array(destination, submission.frame))
        updates = tuple(u for t in self._tables if (u := _page_updates(t, lanes)) is not None)
        return PackedStep(self._program, submission.frame, lengths, updates)

    def supply(self, frame: int, masks: Sequence[LaneMasks], storage: Storage) -> None:
        """Write late input into a frame that was packed: grammar masks, in lane order."""
        for destination, supply in self._late:
            array = storage.array(destination, frame)
            for row, of_lane in enumerate(masks):
                if of_lane:
                    supply(array[row], of_lane)


def _page_updates(table: PageTableView, lanes: Sequence[Lane]) -> PageUpdates | None:
    entries = [
        (lane.slot, column - table.page_offset, page)
        for lane in lanes
        for column, page in lane.new_pages
        if column >= table.page_offset
    ]
    if not entries:
        return None
    slots, columns, pages = np.array(entries, dtype=np.int32).T
    return PageUpdates(table.destination, slots, columns, pages)


# ---- one writer per source ---------------------------------------------------------------


def _sampling(lane: Lane) -> Sampling:
    return lane.admission.sampling if lane.admission else _NO_SAMPLING


_LANE_NUMBERS: Mapping[ValueSource, Callable[[Lane], float]] = {
    ValueSource.SLOT: lambda lane: lane.slot,
    ValueSource.STATE_ROW: lambda lane: lane.slot,
    ValueSource.GENERATION: lambda lane: lane.generation,
    ValueSource.QUERY_LENGTH: lambda lane: lane.query_length,
    ValueSource.SAMPLING_DECISION: lambda lane: int(lane.sample),
    ValueSource.CONSUMED_TOKENS: lambda lane: lane.endpoint,
    ValueSource.RESTORE_SOURCE: lambda lane: lane.restore_source,
    ValueSource.SNAPSHOT_DESTINATION: lambda lane: lane.snapshot_destination,
    ValueSource.GRAMMAR_ACTIVE: lambda lane: int(lane.masked),
    ValueSource.PROPOSAL_COUNT: lambda lane: len(lane.proposals),
    ValueSource.PROPOSAL_GENERATION: lambda lane: lane.generation,
    ValueSource.PROPOSAL_ENDPOINT: lambda lane: lane.endpoint,
    ValueSource.PENDING_TOKEN: lambda lane: lane.admission.pending_token if lane.admission else -1,
    ValueSource.OUTPUT_LIMIT: lambda lane: lane.admission.output_limit if lane.admission else 0,
    ValueSource.OUTPUT_COUNT: lambda lane: len(lane.admission.output) if lane.admission else 0,
    ValueSource.SEED: lambda lane: _sampling(lane).seed,
    ValueSource.TEMPERATURE: lambda lane: _sampling(lane).temperature,
    ValueSource.TOP_K: lambda lane: _sampling(lane).top_k,
    ValueSource.TOP_P: lambda lane: _sampling(lane).top_p,
    ValueSource.MIN_P: lambda lane: _sampling(lane).min_p,
    ValueSource.REPETITION_PENALTY: lambda lane: _sampling(lane).repetition_penalty,
    ValueSource.PRESENCE_PENALTY: lambda lane: _sampling(lane).presence_penalty,
    ValueSource.FREQUENCY_PENALTY: lambda lane: _sampling(lane).frequency_penalty,
    ValueSource.TOP_LOGPROBS: lambda lane: _sampling(lane).top_logprobs,
    ValueSource.MIN_OUTPUT: lambda lane: _sampling(lane).min_output,
}

_LANE_VECTORS: Mapping[ValueSource, Callable[[Lane], Sequence[float]]] = {
    ValueSource.PROPOSAL_TOKENS: lambda lane: lane.proposals,
    ValueSource.EOS_TOKENS: lambda lane: lane.admission.eos_tokens if lane.admission else (),
    ValueSource.LOGIT_BIAS_TOKENS: lambda lane: [t for t, _ in _sampling(lane).logit_bias],
    ValueSource.LOGIT_BIAS_VALUES: lambda lane: [v for _, v in _sampling(lane).logit_bias],
}

_LANE_HISTOGRAMS: Mapping[ValueSource, Callable[[Lane], Sequence[int]]] = {
    ValueSource.PROMPT_HISTOGRAM: lambda lane: lane.admission.prompt if lane.admission else (),
    ValueSource.OUTPUT_HISTOGRAM: lambda lane: lane.admission.output if lane.admission else (),
}


def _writer(binding: ValueBinding) -> Writer:
    source, offset = binding.source, binding.offset
    if source in _LANE_NUMBERS:
        return _row_numbers(_LANE_NUMBERS[source], binding)
    if source in _LANE_VECTORS:
        return _row_vectors(_LANE_VECTORS[source], binding)
    if source in _LANE_HISTOGRAMS:
        return _row_histograms(_LANE_HISTOGRAMS[source])
    if source is ValueSource.SAMPLED_ROW:
        return _sampled_rows
    if source is ValueSource.LIVE_ROWS:
        return lambda step, array: array.fill(len(step.lanes) + offset)
    if source is ValueSource.PROMPT_TOKENS:
        return _packed(lambda lane: lane.tokens or (-1,) * lane.query_length)
    if source is ValueSource.SCORED_TARGET_TOKENS:
        return _packed(lambda lane: lane.targets or (-1,) * lane.query_length)
    if source is ValueSource.PROMPT_POSITIONS:
        return _packed(
            lambda lane: range(lane.endpoint + offset, lane.endpoint + offset + lane.query_length)
        )
    if source in _SUPPLIERS:
        return _open_masks
    if source is ValueSource.CONSTANT:
        constants = np.array(binding.constants)
        return lambda step, array: array.__setitem__(slice(0, len(constants)), constants)
    raise ContractError(
        "this engine does not supply the value source yet",
        field=f"graphs.bindings.{binding.destination}.source",
        value=source.name,
        remedy="serve the core with an engine that does",
    )


def _row_numbers(number: Callable[[Lane], float], binding: ValueBinding) -> Writer:
    offset, padding = binding.offset, binding.padding
    pads = binding.index is IndexKind.SUBMISSION_ROW

    def write(step: _Step, array: Array) -> None:
        count = len(step.lanes)
        array[:count] = [number(lane) + offset if offset else number(lane) for lane in step.lanes]
        if pads:
            array[count:] = padding

    return write


def _row_vectors(vector: Callable[[Lane], Sequence[float]], binding: ValueBinding) -> Writer:
    padding = binding.padding

    def write(step: _Step, array: Array) -> None:
        array[: len(step.lanes)] = padding
        for row, lane in enumerate(step.lanes):
            items = vector(lane)
            if len(items) > array.shape[1]:
                raise DeviceError(
                    "more entries than the program has room for",
                    field=binding.destination,
                    value=len(items),
                    remedy=f"at most {array.shape[1]}",
                )
            array[row, : len(items)] = items

    return write


def _row_histograms(tokens: Callable[[Lane], Sequence[int]]) -> Writer:
    def write(step: _Step, array: Array) -> None:
        for row, lane in enumerate(step.lanes):
            ids = np.asarray(tokens(lane), dtype=np.int64)
            array[row] = np.bincount(ids, minlength=array.shape[1])[: array.shape[1]]

    return write


def _packed(values: Callable[[Lane], Sequence[int]]) -> Writer:
    def write(step: _Step, array: Array) -> None:
        start = 0
        for lane in step.lanes:
            array[start : start + lane.query_length] = values(lane)
            start += lane.query_length

    return write


def _sampled_rows(step: _Step, array: Array) -> None:
    array[: len(step.sampled)] = step.sampled


def _open_masks(step: _Step, array: Array) -> None:
    """Masks come late. Until they do, and if they never do, they allow everything."""
    for row, lane in enumerate(step.lanes):
        if lane.masked:
            array[row] = _ALL


def _write_mask(words: Array, mask: bytes | None) -> None:
    if mask is None:
        words[...] = _ALL
        return
    octets = words.view(np.uint8)
    octets[: len(mask)] = np.frombuffer(mask, dtype=np.uint8)
    octets[len(mask) :] = 0


def _write_proposal_masks(positions: Array, masks: LaneMasks) -> None:
    for words, mask in zip(positions, masks[1:], strict=False):
        _write_mask(words, mask)


_SUPPLIERS: Mapping[ValueSource, Supplier] = {
    ValueSource.GRAMMAR_MASK: lambda words, masks: _write_mask(words, masks[0]),
    ValueSource.PROPOSAL_GRAMMAR_MASK: _write_proposal_masks,
}
"""What is written late, into the row of one lane: [words], or [drafts, words]."""
