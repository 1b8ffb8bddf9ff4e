"""Rules of a graph's physical extents B, D, W, P and its confidence, and of speculation."""

from helios.contract.kinds import CompletionField
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedContract, PreparedGraph
from helios.contract.reading import check_distinct, refusal
from helios.contract.rules.state import FROM_PENDING
from helios.contract.sources import CONSUMERS
from helios.contract.tensor import DType


def rows_fit_slots(contract: PreparedContract) -> None:
    """A graph has rows, and no more than there are request slots."""
    for graph in contract.graphs:
        if not 1 <= graph.rows <= contract.request_slots:
            raise refusal(
                f"graphs.{graph.program}.batch_capacity",
                f"the manifest has {contract.request_slots} request slots",
                graph.rows,
                "give at least 1 and no more than the slots",
            )


def widths_suit_operations(contract: PreparedContract) -> None:
    """A row of a token-consuming graph takes tokens; others take none; DECODE takes one."""
    for graph in contract.graphs:
        field = f"graphs.{graph.program}.token_capacity"
        if graph.operation not in CONSUMERS:
            if graph.width or graph.tokens:
                raise refusal(
                    field, f"{graph.operation.name} consumes no tokens", graph.width, "leave it 0"
                )
        elif graph.operation is Operation.DECODE and graph.width != 1:
            raise refusal(field, "DECODE is one token", graph.width, "give 1, or use SPECULATIVE")
        elif not 1 <= graph.width <= contract.context_tokens:
            raise refusal(
                field, "out of range", graph.width, f"give 1 to {contract.context_tokens}"
            )


def packed_tokens_fit_rows(contract: PreparedContract) -> None:
    """P is at most B · W, and has a token for each row that must carry its pending one."""
    for graph in contract.graphs:
        if graph.operation not in CONSUMERS:
            continue
        least = graph.rows if graph.operation in FROM_PENDING else 1
        if not least <= graph.tokens <= graph.rows * graph.width:
            raise refusal(
                f"graphs.{graph.program}.packed_token_capacity",
                f"does not suit {graph.rows} rows of {graph.width} tokens",
                graph.tokens,
                f"give {least} to {graph.rows * graph.width}",
            )


def drafts_suit_widths(contract: PreparedContract) -> None:
    """SPECULATIVE wider than one draws proposals, within the manifest's room; others draw none."""
    for graph in contract.graphs:
        field = f"graphs.{graph.program}.draft_tokens"
        drafts = graph.operation is Operation.SPECULATIVE and graph.width > 1
        if drafts != (graph.draft_tokens > 0):
            raise refusal(
                field,
                f"does not suit {graph.operation.name} of width {graph.width}",
                graph.draft_tokens,
                "state the proposals it draws" if drafts else "leave it 0",
            )
        if graph.draft_tokens > contract.draft_capacity:
            raise refusal(
                field,
                f"the manifest has room for {contract.draft_capacity}",
                graph.draft_tokens,
                "raise draft_capacity",
            )


def confidence_is_of_drafts(contract: PreparedContract) -> None:
    """A graph gives confidence for every draft or for none, and completes with it if it does."""
    for graph in contract.graphs:
        field = f"graphs.{graph.program}.confidence_width"
        if graph.confidence_width not in (0, graph.draft_tokens):
            raise refusal(
                field,
                "must equal the drafts drawn",
                graph.confidence_width,
                f"give {graph.draft_tokens}, or 0 for no confidence",
            )
        reported = CompletionField.CONFIDENCE in graph.completion
        if reported != (graph.confidence_width > 0):
            raise refusal(
                field,
                "the completion record disagrees",
                graph.confidence_width,
                "complete with CONFIDENCE exactly where the width is positive",
            )
        if reported:
            _check_confidence_storage(contract, graph)


def _check_confidence_storage(contract: PreparedContract, graph: PreparedGraph) -> None:
    buffer = contract.buffers.get(graph.completion[CompletionField.CONFIDENCE])
    shape = (2, contract.request_slots, contract.draft_capacity)
    if buffer is not None and (buffer.type.dtype is not DType.F32 or buffer.type.shape != shape):
        raise refusal(
            f"manifest.buffers.{buffer.name}",
            "confidence has a place per frame, request slot and draft",
            str(buffer.type),
            f"shape it f32{list(shape)}",
        )


def device_allocation_has_confidence(contract: PreparedContract) -> None:
    """A graph that allocates prefixes itself does so by confidence."""
    for graph in contract.graphs:
        if graph.device_allocates and graph.draft_tokens and not graph.confidence_width:
            raise refusal(
                f"graphs.{graph.program}.confidence_width",
                "SPECULATIVE_PREFIX_LIMIT lets the program allocate by confidence",
                graph.confidence_width,
                f"give {graph.draft_tokens}, or bind QUERY_LENGTH",
            )


def speculative_widths_are_captured(contract: PreparedContract) -> None:
    """The widths offered ascend and are those of the SPECULATIVE graphs."""
    widths = check_distinct(contract.speculative_widths, "speculative_widths", "width")
    captured = sorted({g.width for g in contract.graphs_of(Operation.SPECULATIVE)})
    if list(widths) != captured:
        raise refusal(
            "speculative_widths",
            "must be the widths of the SPECULATIVE graphs, ascending",
            list(widths),
            f"give {captured}",
        )


RULES = (
    rows_fit_slots,
    widths_suit_operations,
    packed_tokens_fit_rows,
    drafts_suit_widths,
    confidence_is_of_drafts,
    device_allocation_has_confidence,
    speculative_widths_are_captured,
)
