"""Completion records: the shapes in which a program reports each field."""

from collections.abc import Mapping

from helios.contract.kinds import CompletionField
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedGraph
from helios.errors import ContractError
from helios.program.extents import ROWS, SAMPLED, TOKENS
from helios.program.ir import BufferKind, Program, Shape


def check_completion(graph: PreparedGraph, program: Program) -> None:
    """The program stores exactly the fields that the contract reads, in their shapes."""
    stored = {b.name: b for b in program.buffers() if b.kind is BufferKind.COMPLETION}
    reported = {name: field for field, name in graph.completion.items()}
    for name in sorted(set(stored) ^ set(reported)):
        message = "no field reads it" if name in stored else "the program stores no such record"
        raise ContractError(
            message,
            field=f"graphs.{graph.program}.completion.{name}",
            value=name,
            remedy="bind exactly its records",
        )
    for name, field in reported.items():
        shape = stored[name].type.shape
        if not _suits(shape, field, graph):
            raise ContractError(
                f"must be {_WANTED[field]}",
                field=f"graphs.{graph.program}.completion.{field.name}",
                value=str(stored[name].type),
                remedy="reshape the record",
            )


_LANE = f"[{ROWS}]"
_SAMPLE = f"[{SAMPLED}], or [{ROWS}, W] in SPECULATIVE"
_WANTED: Mapping[CompletionField, str] = {
    CompletionField.SLOT: _LANE,
    CompletionField.GENERATION: _LANE,
    CompletionField.ENDPOINT: _LANE,
    CompletionField.OFFERED: _LANE,
    CompletionField.CURSOR: _LANE,
    CompletionField.MODEL: _LANE,
    CompletionField.ACCEPTED: f"[{SAMPLED}], or {_LANE} in SPECULATIVE",
    CompletionField.TOKENS: f"{_SAMPLE}, or [{SAMPLED}, 1]",
    CompletionField.LOGPROB: _SAMPLE,
    CompletionField.TOP_TOKENS: f"[{SAMPLED}, k], or [{ROWS}, W, k] in SPECULATIVE",
    CompletionField.TOP_LOGPROBS: f"[{SAMPLED}, k], or [{ROWS}, W, k] in SPECULATIVE",
    CompletionField.CONFIDENCE: "[2, request slots, draft capacity]",
    CompletionField.SCORES: f"[{TOKENS}]",
    CompletionField.SCORE_TOP_TOKENS: f"[{TOKENS}, k]",
    CompletionField.SCORE_TOP_LOGPROBS: f"[{TOKENS}, k]",
}
_ALTERNATIVES = (CompletionField.TOP_TOKENS, CompletionField.TOP_LOGPROBS)
_SCORE_ALTERNATIVES = (CompletionField.SCORE_TOP_TOKENS, CompletionField.SCORE_TOP_LOGPROBS)
_SAMPLED_FIELDS = (CompletionField.TOKENS, CompletionField.LOGPROB)


def _suits(shape: Shape, field: CompletionField, graph: PreparedGraph) -> bool:
    speculative = graph.operation is Operation.SPECULATIVE
    sampled: Shape = (ROWS, graph.width) if speculative else (SAMPLED,)
    if field is CompletionField.CONFIDENCE:
        return True  # the contract's own rules fix it to a constant shape
    if field is CompletionField.ACCEPTED:
        return shape == ((ROWS,) if speculative else (SAMPLED,))
    if field is CompletionField.TOKENS and shape == (SAMPLED, 1):
        return not speculative
    if field in _SAMPLED_FIELDS:
        return shape == sampled
    if field in _ALTERNATIVES:
        return shape[:-1] == sampled
    if field is CompletionField.SCORES:
        return shape == (TOKENS,)
    if field in _SCORE_ALTERNATIVES:
        return len(shape) == 2 and shape[0] == TOKENS
    return shape == (ROWS,)
