"""What a user asks of the memory plan, and what the model allows."""

from collections.abc import Mapping

from helios.compile.plan import Limits
from helios.contract.prepared import PreparedContract
from helios.errors import ConfigurationError
from helios.records import dataclass

# The smallest plan that Auto considers, in pages of history.
MINIMUM_CONTEXT_PAGES = 16
MINIMUM_BATCH_PAGES = 1


@dataclass(frozen=True, slots=True)
class Request:
    """Explicit limits. None leaves a choice to Auto; what is given is checked, never reduced."""

    context: int | None = None
    sequences: int | None = None
    batch_tokens: int | None = None
    pages: int | None = None
    snapshots: int | None = None

    def explicit(self) -> Mapping[str, int]:
        """The limits that were given, by name."""
        given = {name: getattr(self, name) for name in OPTION_OF}
        return {name: value for name, value in given.items() if value is not None}


OPTION_OF = {
    "context": "--context",
    "sequences": "--concurrency",
    "batch_tokens": "--batch-tokens",
    "pages": "--pages",
    "snapshots": "--snapshots",
}


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the most that a limit may become."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ranges that a request leaves, and the preparation's working set.

    `pages` and `snapshots` are explicit or None. `working_pages` and `working_snapshots` are the
    counts that the model was prepared for.
    """

    context: Range
    sequences: Range
    batch_tokens: Range
    pages: int | None
    snapshots: int | None
    page_tokens: int
    working_pages: int
    working_snapshots: int

    def pages_for(self, tokens: int) -> int:
        """Pages that hold so many tokens of one sequence."""
        return -(-tokens // self.page_tokens)

    def targets(self) -> Limits:
        """The largest limits, which the model is first compiled at."""
        context, sequences = self.context.most, self.sequences.most
        return Limits(
            context=context,
            sequences=sequences,
            batch_tokens=self.batch_tokens.most,
            pages=self.pages or sequences * self.pages_for(context),
            snapshots=self.working_snapshots if self.snapshots is None else self.snapshots,
        )


def bounds_of(contract: PreparedContract, request: Request) -> Bounds:
    """What may be chosen; `ConfigurationError` for an explicit limit that the model excludes."""
    most_tokens = max(graph.tokens for graph in contract.graphs)
    page = contract.cache.page_tokens
    _check("context", request.context, contract.context_tokens, "tokens of context")
    _check("sequences", request.sequences, contract.concurrency, "sequences")
    _check("batch_tokens", request.batch_tokens, most_tokens, "tokens in a step")
    _check("pages", request.pages, None, "")
    context = _range(request.context, MINIMUM_CONTEXT_PAGES * page, contract.context_tokens)
    tokens = _range(request.batch_tokens, MINIMUM_BATCH_PAGES * page, most_tokens)
    sequences = _range(request.sequences, 1, min(contract.concurrency, tokens.most))
    if request.snapshots is not None and request.snapshots < 0:
        _refuse("snapshots", request.snapshots, "can't be negative", "give 0 or more")
    if sequences.least > tokens.most:
        _refuse(
            "batch_tokens",
            tokens.most,
            f"a step has a token for each of {sequences.least} sequences",
            f"give at least {sequences.least}, or fewer sequences",
        )
    if request.pages is not None:
        held = request.pages * page
        if request.context is not None and request.context > held:
            _refuse(
                "pages",
                request.pages,
                f"{request.pages} pages hold {held} tokens, less than one context",
                f"give at least {-(-request.context // page)}",
            )
        if sequences.least > request.pages:
            _refuse(
                "pages",
                request.pages,
                f"each of {sequences.least} sequences needs a page",
                f"give at least {sequences.least}",
            )
        context = Range(min(context.least, held), min(context.most, held))
        sequences = Range(sequences.least, min(sequences.most, request.pages))
    return Bounds(
        context=context,
        sequences=sequences,
        batch_tokens=Range(max(tokens.least, sequences.least), tokens.most),
        pages=request.pages,
        snapshots=request.snapshots,
        page_tokens=page,
        working_pages=contract.prepared_pages,
        working_snapshots=contract.prepared_snapshots,
    )


def _range(explicit: int | None, least: int, most: int) -> Range:
    return Range(min(least, most), most) if explicit is None else Range(explicit, explicit)


def _check(name: str, value: int | None, most: int | None, what: str) -> None:
    if value is None:
        return
    if value < 1:
        _refuse(name, value, "must be positive", "give at least 1")
    if most is not None and value > most:
        _refuse(
            name,
            value,
            f"the model was prepared for {most} {what}",
            f"give at most {most}, or prepare the model for more",
        )


def _refuse(name: str, value: int, message: str, remedy: str) -> None:
    raise ConfigurationError(message, field=OPTION_OF[name], value=value, remedy=remedy)
