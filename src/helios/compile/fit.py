"""Fitting a model to a budget: compile, search, compile again, check, and only then report."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from helios.compile.budget import Budget, size_text
from helios.compile.composition import CompiledModel, RuntimeComposition
from helios.compile.demand import Workload
from helios.compile.options import CompileOptions
from helios.compile.plan import Limits
from helios.compile.policy import Auto, largest
from helios.compile.report import MemoryReport
from helios.compile.request import OPTION_OF, Range, Request, bounds_of
from helios.contract.prepared import PreparedContract
from helios.errors import FitError
from helios.program.ir import Program
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Fitted:
    """A compiled model within its budget, and the search that found its limits."""

    compiled: CompiledModel
    auto: Auto


def fit_model(
    composition: RuntimeComposition,
    contract: PreparedContract,
    programs: Sequence[Program],
    request: Request,
    budget: Budget,
    options: CompileOptions | None = None,
) -> Fitted:
    """Compile a model for the limits that a request leaves within a budget.

    Raises `ConfigurationError` for limits that the model excludes and `FitError` for limits that
    the budget excludes; the latter names the binding term and what would fit.
    """
    bounds = bounds_of(contract, request)
    targets = composition.compile(contract, programs, bounds.targets(), options)
    auto = Auto(targets.memory, bounds, budget.nbytes)
    limits = auto.choose()
    if limits is None:
        raise misfit(auto, request, budget)
    compiled = targets.at(limits)
    prefill = Workload.prefill(limits.context, limits.batch_tokens)
    decode = Workload.decode(limits.context, limits.sequences)
    # Predicted from the memory model alone: that the plan agrees is what attaching checks.
    compiled.attach(
        MemoryReport(
            budget_nbytes=budget.nbytes,
            budget_origin=budget.origin,
            explicit=request.explicit(),
            selected=limits,
            prefill_peak_nbytes=auto.memory.peak_nbytes(prefill),
            decode_peak_nbytes=auto.memory.peak_nbytes(decode),
            total_nbytes=auto.memory.total_nbytes(limits),
        )
    )
    return Fitted(compiled, auto)


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """How many sequences fit at a context: sharing the pages, or each filling its context.

    Zero means that not even one does.
    """

    context: int
    shared: int
    full: int


def frontier(auto: Auto) -> tuple[FrontierPoint, ...]:
    """What would fit: the context from its largest down, halved each time."""
    points = []
    context = auto.bounds.context.most
    while context >= auto.bounds.context.least:
        points.append(
            FrontierPoint(
                context, _most_sequences(auto, context, 0), _most_sequences(auto, context, context)
            )
        )
        context //= 2
    return tuple(points)


def _most_sequences(auto: Auto, context: int, filled: int) -> int:
    """The most sequences at that context, each with pages for `filled` tokens."""
    bounds = auto.bounds

    def fits(sequences: int) -> bool:
        if not sequences:
            return True
        limits = auto.limits(context, sequences, max(bounds.batch_tokens.least, sequences))
        pages = max(limits.pages, sequences * bounds.pages_for(filled))
        return auto.fits(replace(limits, pages=pages))

    return largest(Range(0, bounds.sequences.most), fits)


def misfit(auto: Auto, request: Request, budget: Budget) -> FitError:
    """The error for a request whose smallest plan exceeds the budget."""
    smallest = auto.minimum()
    needed = auto.memory.total_nbytes(smallest)
    biggest = max(auto.memory.sections(smallest), key=lambda section: section.nbytes)
    relief = _relief(auto, request)
    binding = relief[0][0] if relief else "memory"
    fitting = " or ".join(f"{OPTION_OF[name]} {value}" for name, value in relief)
    remedy = f"give --memory {needed} ({size_text(needed)})"
    return FitError(
        f"{_wanted(request, smallest)} needs {needed} bytes ({size_text(needed)}), "
        f"{needed - budget.nbytes} more than {size_text(budget.nbytes)} ({budget.origin}); "
        f"{biggest.name} take {size_text(biggest.nbytes)}",
        field=OPTION_OF.get(binding, "--memory"),
        value=request.explicit().get(binding, budget.nbytes),
        remedy=remedy + (f", or {fitting}, which would fit" if fitting else ""),
    )


def _wanted(request: Request, smallest: Limits) -> str:
    given = ", ".join(f"{OPTION_OF[name]} {value}" for name, value in request.explicit().items())
    rest = "the smallest plan" if not given else f"the smallest plan with {given}"
    return f"{rest} ({smallest.context} tokens of context, {smallest.sequences} at once)"


def _relief(auto: Auto, request: Request) -> list[tuple[str, int]]:
    """Explicit limits that would make everything fit if they alone were smaller, with the
    largest value that does; the one that has to give up the most memory comes first."""
    smallest = auto.minimum()
    needed = auto.memory.total_nbytes(smallest)
    found = []
    for name, value in request.explicit().items():
        least = min(value, _least(auto, smallest, name))
        most = largest(Range(least, value), _fits_with(auto, smallest, name))
        reduced = _changed(auto, smallest, name, most)
        if auto.fits(reduced):
            freed = needed - auto.memory.total_nbytes(reduced)
            found.append((freed, name, most))
    return [(name, value) for _, name, value in sorted(found, key=lambda f: (-f[0], f[1]))]


def _fits_with(auto: Auto, limits: Limits, name: str) -> Callable[[int], bool]:
    return lambda value: auto.fits(_changed(auto, limits, name, value))


def _least(auto: Auto, limits: Limits, name: str) -> int:
    """The least that one limit can be beside the others."""
    return {
        "batch_tokens": limits.sequences,
        "pages": max(limits.sequences, auto.bounds.pages_for(limits.context)),
        "snapshots": 0,
    }.get(name, 1)


def _changed(auto: Auto, limits: Limits, name: str, value: int) -> Limits:
    """The limits with one of them changed, and pages to match unless they are explicit."""
    changed = replace(limits, **{name: value})
    needed = max(changed.sequences, auto.bounds.pages_for(changed.context))
    return changed if auto.bounds.pages else replace(changed, pages=needed)
