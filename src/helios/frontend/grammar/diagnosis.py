"""Which part of a request a grammar could not be made of, and why."""

import re
from collections.abc import Sequence

from helios.errors import RequestError
from helios.frontend.grammar.lark import ForeignPart
from helios.frontend.grammar.limits import parser_limits
from helios.frontend.grammar.schemas import children, compact, dotted, rooted_at

_MOST_TRIALS = 400
_UNIMPLEMENTED = re.compile(r'Unimplemented keys: \["([^"]+)"')
_PREFIX = re.compile(r"^(at )?\d+\(\d+\): |failed to compile JSON schema: |^top-level grammar: ")


def blame(parts: Sequence[ForeignPart], error: str) -> RequestError:
    """The refusal of a grammar that did not compile, with the part that is at fault."""
    for part in parts:
        found = _try(part.grammar)
        if found:
            return _refusal(part, found)
    where = parts[0].where if parts else "structured_outputs"
    return RequestError(
        f"is too large or too ambiguous to be followed: {_plain(error)}",
        field=where,
        remedy="simplify it",
    )


def _refusal(part: ForeignPart, error: str) -> RequestError:
    where = part.where
    if isinstance(part.source, dict):
        where, error = _Search(part.source).deepest(where, error)
    return RequestError(
        f"can't be followed: {_plain(error)}",
        field=where,
        remedy="use only what the answer can be held to",
    )


class _Search:
    """Finds the innermost part of a schema that does not compile by itself."""

    def __init__(self, root: dict[str, object]) -> None:
        self._root = root
        self._trials = _MOST_TRIALS

    def deepest(self, where: str, error: str, pointer: tuple[str, ...] = ()) -> tuple[str, str]:
        """Field and error of the innermost part at fault."""
        schema = self._at(pointer)
        for steps, child in children(schema):
            if not isinstance(child, dict) or self._trials == 0:
                continue
            self._trials -= 1
            inner = (*pointer, *steps)
            found = _try(compact(rooted_at(self._root, inner)))
            if found and _kind(found) == _kind(error):
                return self.deepest(f"{where}{dotted(steps)}", found, inner)
        return where + _keyword(schema, error), error

    def _at(self, pointer: tuple[str, ...]) -> dict[str, object]:
        found: object = self._root
        for step in pointer:
            found = found[int(step)] if isinstance(found, list) else found[step]  # type: ignore[index]
        assert isinstance(found, dict)
        return found


def _kind(error: str) -> str:
    """An unsatisfiable branch is no fault where the whole fails for something else."""
    return "unsatisfiable" if "Unsatisfiable" in error else "invalid"


def _keyword(schema: dict[str, object], error: str) -> str:
    found = _UNIMPLEMENTED.search(error)
    if found:
        return f".{found.group(1)}"
    if "regex" in error and "pattern" in schema:
        return ".pattern"
    return ".type" if "Invalid type" in error and "type" in schema else ""


def _try(grammar: str) -> str:
    from llguidance import LLMatcher

    return str(LLMatcher.validate_grammar(grammar, limits=parser_limits()))


def _plain(error: str) -> str:
    """The sentence in a report that also shows sources and carets."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("error: ")]
    return _PREFIX.sub("", _PREFIX.sub("", (told or lines or ["unknown error"])[0]))
