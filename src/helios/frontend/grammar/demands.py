"""What an envelope is to hold, whatever its syntax."""

from collections.abc import Sequence
from enum import Enum

from helios.frontend.grammar.tools import Tool
from helios.records import dataclass


class Mode(Enum):
    """Which of answer and calls a response consists of."""

    ANSWER = "answer"  # a constrained answer
    CALLS = "calls"  # calls and nothing else
    EITHER = "either"  # calls, or a constrained answer
    STRICT = "strict"  # free text, in which every call keeps to its tool's schema
    SILENT = "silent"  # free text without calls


@dataclass(frozen=True, slots=True)
class Demand:
    """`answer` is the expression of a constrained answer, '' where there is none; `most` bounds
    the number of calls to `tools`."""

    mode: Mode
    answer: str = ""
    tools: Sequence[Tool] = ()
    most: int = 1
