"""Fields with separators between them, of which some may be left out."""

from collections.abc import Sequence

from helios.frontend.grammar.lark import NOTHING, Writer, either, optional, sequence


def listed(writer: Writer, fields: Sequence[tuple[str, bool]], separator: str) -> str:
    """Fields in order, each with whether it must be there."""
    first = following = NOTHING  # from this field on: with none before it, and behind another
    for expression, required in reversed(fields):
        here = sequence(expression, following)
        first = writer.rule(here if required else either(here, first))
        again = sequence(separator, expression)
        following = sequence(again if required else optional(again), following)
        following = writer.rule(following)
    return first
