"""Rules of completion records: which fields a graph reports, and into what."""

from collections.abc import Mapping

from helios.contract.kinds import CompletionField
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedContract, PreparedGraph
from helios.contract.reading import refusal
from helios.contract.sources import CONSUMERS
from helios.contract.tensor import BufferKind, DType

DTYPES: Mapping[CompletionField, DType] = {
    CompletionField.SLOT: DType.I32,
    CompletionField.GENERATION: DType.I32,
    CompletionField.ACCEPTED: DType.I32,
    CompletionField.ENDPOINT: DType.I32,
    CompletionField.TOKENS: DType.I32,
    CompletionField.LOGPROB: DType.F32,
    CompletionField.TOP_TOKENS: DType.I32,
    CompletionField.TOP_LOGPROBS: DType.F32,
    CompletionField.SCORES: DType.F32,
    CompletionField.OFFERED: DType.I32,
    CompletionField.CURSOR: DType.I32,
    CompletionField.MODEL: DType.I32,
    CompletionField.CONFIDENCE: DType.F32,
    CompletionField.SCORE_TOP_TOKENS: DType.I32,
    CompletionField.SCORE_TOP_LOGPROBS: DType.F32,
}

_EVERY = frozenset({CompletionField.SLOT, CompletionField.GENERATION, CompletionField.ENDPOINT})
_SAMPLING = _EVERY | {CompletionField.ACCEPTED, CompletionField.TOKENS}
_SCORES = frozenset(
    {
        CompletionField.SCORES,
        CompletionField.SCORE_TOP_TOKENS,
        CompletionField.SCORE_TOP_LOGPROBS,
    }
)
_DRAFTS = frozenset({CompletionField.OFFERED, CompletionField.CONFIDENCE})
_ALTERNATIVES = frozenset(
    {CompletionField.LOGPROB, CompletionField.TOP_TOKENS, CompletionField.TOP_LOGPROBS}
)
_PAIRS = (
    (CompletionField.TOP_TOKENS, CompletionField.TOP_LOGPROBS),
    (CompletionField.SCORE_TOP_TOKENS, CompletionField.SCORE_TOP_LOGPROBS),
)


def required_fields(operation: Operation) -> frozenset[CompletionField]:
    """What every graph of an operation reports."""
    if operation is Operation.SCORED_PREFILL:
        return _SAMPLING | {CompletionField.SCORES}
    if operation is Operation.SPECULATIVE:
        return _SAMPLING | {CompletionField.OFFERED}
    return _SAMPLING if operation in CONSUMERS else _EVERY


def allowed_fields(operation: Operation) -> frozenset[CompletionField]:
    """What a graph of an operation may report."""
    allowed = required_fields(operation) | {CompletionField.MODEL}
    if operation in CONSUMERS:
        allowed |= _ALTERNATIVES | {CompletionField.CURSOR}
    if operation is Operation.SCORED_PREFILL:
        allowed |= _SCORES
    if operation is Operation.SPECULATIVE:
        allowed |= _DRAFTS
    return allowed


def fields_suit_operations(contract: PreparedContract) -> None:
    """A graph reports all that its operation must, and nothing that it can't."""
    for graph in contract.graphs:
        reported = frozenset(graph.completion)
        missing = required_fields(graph.operation) - reported
        if missing:
            raise _refuse(graph, f"{graph.operation.name} must report", min(missing), "complete it")
        extra = reported - allowed_fields(graph.operation)
        if extra:
            raise _refuse(graph, f"{graph.operation.name} has no", min(extra), "remove it")


def alternatives_are_paired(contract: PreparedContract) -> None:
    """Alternative tokens come with their log-probabilities."""
    for graph in contract.graphs:
        for one, other in _PAIRS:
            if (one in graph.completion) != (other in graph.completion):
                found = one if one in graph.completion else other
                raise _refuse(graph, "has only one of a pair", found, "report both or neither")


def cursor_is_reported(contract: PreparedContract) -> None:
    """A graph reports a cursor exactly if it keeps one."""
    for graph in contract.graphs:
        reported = CompletionField.CURSOR in graph.completion
        if reported != (graph.draft_cursor is not None):
            raise _refuse(
                graph,
                "disagrees with the graph's draft cursor about",
                CompletionField.CURSOR,
                "declare and report the cursor, or neither",
            )


def outputs_are_completion_buffers(contract: PreparedContract) -> None:
    """A field's buffer exists, is no input, is of kind COMPLETION and holds the field's type."""
    for graph in contract.graphs:
        for field, name in graph.completion.items():
            where = f"graphs.{graph.program}.completion.{field.name}"
            if name in contract.transport:
                raise refusal(where, "overlaps a request input", name, "write another buffer")
            buffer = contract.buffers.get(name)
            if buffer is None:
                raise refusal(where, "there is no such buffer", name, "declare it in the manifest")
            if buffer.kind is not BufferKind.COMPLETION:
                raise refusal(
                    where,
                    f"overlaps {buffer.kind.name.lower()} storage",
                    name,
                    "write a COMPLETION buffer",
                )
            if buffer.type.dtype is not DTYPES[field]:
                raise refusal(
                    where, "has the wrong type", buffer.type.dtype.text, DTYPES[field].text
                )


def _refuse(graph: PreparedGraph, message: str, field: CompletionField, remedy: str) -> Exception:
    return refusal(f"graphs.{graph.program}.completion", message, field.name, remedy)


RULES = (
    fields_suit_operations,
    alternatives_are_paired,
    cursor_is_reported,
    outputs_are_completion_buffers,
)
