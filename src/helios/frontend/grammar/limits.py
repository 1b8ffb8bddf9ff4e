"""How much work a grammar may cause."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llguidance import LLParserLimits


@cache
def parser_limits() -> "LLParserLimits":
    """Bounds of compiling and of each step: some tens of milliseconds, some tens of megabytes."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        initial_lexer_fuel=2_000_000,
        step_lexer_fuel=400_000,
        max_items_in_row=10_000,
        step_max_items=100_000,
        max_lexer_states=50_000,
        max_grammar_size=500_000,
        verbose_errors=False,
    )
