"""Which values a user wants to keep: patterns over names, resolved per program.

A value answers to its own name and to that of each weight its operation reads, so that
`layers.*.attention.output` finds what that projection computes although no recipe named it.
Patterns are those of a shell, and `*` crosses dots.
"""

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase

from helios.errors import CompileError
from helios.program.ir import Program, Weight

EVERYTHING = ("*",)


def retained_values(programs: Sequence[Program], patterns: Sequence[str]) -> list[frozenset[str]]:
    """Per program, the names of all values that a pattern finds.

    Raises `CompileError` for a pattern that finds nothing anywhere.
    """
    found: list[set[str]] = [set() for _ in programs]
    for pattern in patterns:
        matches = [_matches(program, pattern) for program in programs]
        if not any(matches):
            raise CompileError(
                "no value has such a name",
                field="retained",
                value=pattern,
                remedy="see `helios inspect --program NAME` for the names; * stands for anything",
            )
        for names, more in zip(found, matches, strict=True):
            names |= more
    return [frozenset(names) for names in found]


def value_names(program: Program) -> dict[str, tuple[str, ...]]:
    """Every value of a program with the names it answers to, its own first."""
    return {
        result.name: (result.name, *(o.name for o in op.operands if isinstance(o, Weight)))
        for op in program.ops
        for result in op.results
    }


def shown_names(program: Program) -> dict[str, str]:
    """For every value the name that says most: its own, unless that is a mere number of its kind
    and it alone answers to a weight's name."""
    names = value_names(program)
    uses = Counter(alias for aliases in names.values() for alias in aliases[1:])
    kinds = {result.name: op.kind for op in program.ops for result in op.results}
    return {
        value: next((a for a in aliases[1:] if uses[a] == 1), value)
        if value.startswith(f"{kinds[value]}.")
        else value
        for value, aliases in names.items()
    }


def _matches(program: Program, pattern: str) -> set[str]:
    return {
        value
        for value, names in value_names(program).items()
        if any(fnmatchcase(name, pattern) for name in names)
    }
