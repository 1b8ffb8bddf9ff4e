"""Rules of the serving metadata: identity, capacities, defaults."""

from collections.abc import Callable

from helios.contract.kinds import HistoryKind
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedContract
from helios.contract.reading import IDENTIFIER, check_distinct, check_name, refusal

MAX_CONTEXT = 1 << 27
MAX_VOCABULARY = 1 << 24


def identity_is_named(contract: PreparedContract) -> None:
    """The served identifier and the cache identity are plain names."""
    check_name(contract.served_id, "served_id", IDENTIFIER)
    check_name(contract.cache_identity, "cache_identity", IDENTIFIER)


def aliases_are_distinct(contract: PreparedContract) -> None:
    """Aliases are plain names, distinct among themselves and from the served identifier."""
    for alias in contract.aliases:
        check_name(alias, "aliases", IDENTIFIER)
    check_distinct((contract.served_id, *contract.aliases), "aliases", "identifier")


def vocabulary_is_sized(contract: PreparedContract) -> None:
    """Sampled ids are a nonempty part of the input ids."""
    if not 1 <= contract.vocabulary <= MAX_VOCABULARY:
        raise refusal(
            "model.vocabulary", "out of range", contract.vocabulary, f"1 to {MAX_VOCABULARY}"
        )
    if not contract.vocabulary <= contract.input_vocabulary <= MAX_VOCABULARY:
        raise refusal(
            "model.input_vocabulary",
            "must count every sampled id",
            contract.input_vocabulary,
            f"give {contract.vocabulary} to {MAX_VOCABULARY}",
        )


def context_is_sized(contract: PreparedContract) -> None:
    """A request has room for a token, and a submission prefills no more than a context."""
    if not 1 <= contract.context_tokens <= MAX_CONTEXT:
        raise refusal(
            "context_tokens", "out of range", contract.context_tokens, f"1 to {MAX_CONTEXT}"
        )
    if not 1 <= contract.prefill_tokens <= contract.context_tokens:
        raise refusal(
            "prefill_tokens",
            "must be positive and within the context",
            contract.prefill_tokens,
            f"give 1 to {contract.context_tokens}",
        )


def prefill_fits_a_graph(contract: PreparedContract) -> None:
    """Some PREFILL graph takes as many tokens as one submission prefills."""
    widest = max((g.tokens for g in contract.graphs_of(Operation.PREFILL)), default=0)
    if contract.prefill_tokens > widest:
        raise refusal(
            "prefill_tokens",
            f"the widest PREFILL graph takes {widest} tokens",
            contract.prefill_tokens,
            "capture a wider one",
        )


def concurrency_fits_slots(contract: PreparedContract) -> None:
    """There is a request slot for every concurrent request."""
    if not 1 <= contract.concurrency <= contract.request_slots:
        raise refusal(
            "concurrency",
            f"the manifest has {contract.request_slots} request slots",
            contract.concurrency,
            "give at least 1 and no more than the slots",
        )


def pages_hold_a_context(contract: PreparedContract) -> None:
    """The prepared pages hold one request of full context, where histories are paged."""
    needed = -(-contract.context_tokens // contract.cache.page_tokens)
    paged = any(h.kind in PAGED for h in contract.cache.histories)
    if paged and contract.prepared_pages < needed:
        raise refusal(
            "prepared_pages",
            f"a context of {contract.context_tokens} tokens takes {needed} pages",
            contract.prepared_pages,
            f"prepare at least {needed}",
        )


PAGED = frozenset(
    {HistoryKind.PAGED_KEY_VALUE, HistoryKind.PAGED_LATENT, HistoryKind.SLIDING_WINDOW}
)


def defaults_are_in_range(contract: PreparedContract) -> None:
    """Every default is a value that a request might give."""
    defaults = contract.defaults
    _check_range("temperature", defaults.temperature, "at least 0", lambda v: v >= 0)
    _check_range(
        "top_k",
        defaults.top_k,
        f"0 to {contract.vocabulary}",
        lambda v: v <= contract.vocabulary,
    )
    _check_range("top_p", defaults.top_p, "above 0 and at most 1", lambda v: 0 < v <= 1)
    _check_range("min_p", defaults.min_p, "0 to 1", lambda v: 0 <= v <= 1)
    _check_range("repetition_penalty", defaults.repetition_penalty, "above 0", lambda v: v > 0)
    for name in ("presence_penalty", "frequency_penalty"):
        _check_range(name, getattr(defaults, name), "-2 to 2", lambda v: -2 <= v <= 2)
    _check_range(
        "max_output_tokens",
        defaults.max_output_tokens,
        f"1 to {contract.context_tokens}",
        lambda v: 1 <= v <= contract.context_tokens,
    )


def _check_range(
    name: str, value: float | None, wanted: str, holds: Callable[[float], bool]
) -> None:
    if value is not None and not holds(value):
        raise refusal(f"defaults.{name}", "out of range", value, f"give {wanted}")


def required_operations_exist(contract: PreparedContract) -> None:
    """A model can begin a request, read its prompt and continue it."""
    for operation in (Operation.INITIALIZE, Operation.PREFILL, Operation.DECODE):
        if not contract.graphs_of(operation):
            raise refusal(
                "model.graphs", "an operation is missing", operation.name, "capture a graph of it"
            )


RULES = (
    identity_is_named,
    aliases_are_distinct,
    vocabulary_is_sized,
    context_is_sized,
    concurrency_fits_slots,
    required_operations_exist,
    prefill_fits_a_graph,
    pages_hold_a_context,
    defaults_are_in_range,
)
