"""Known tool syntaxes between other tags, as a rendered call shows them."""

import re
from collections.abc import Iterator

from helios.ignition.preparation import syntaxes as s

_TAGGED = re.compile(r"\s*(<[^<>\s]+>)(.*)(<[^<>\s]+>)\s*", re.DOTALL)
_BLOCKS = (s.FUNCTION_TAGS, s.INVOKE_TAGS, s.JSON_LIST_TAGS, s.PYTHONIC)
_CALLS = (s.ARGUMENT_TAGS, s.COMPACT_ARGUMENT_TAGS, s.JSON_TAGS)


def variants(body: str) -> Iterator[s.Tools]:
    """The syntaxes whose outermost tags vary among families, with those of a rendered call."""
    found = _TAGGED.fullmatch(body)
    if found is None:
        return
    for tools in (*_BLOCKS, *_CALLS):
        varied = s.Tools(tools.parser, type(tools.syntax)())
        varied.syntax.CopyFrom(tools.syntax)
        pair = varied.syntax.block if tools in _BLOCKS else varied.syntax.call
        old = pair.close
        pair.open, pair.close = found[1], found[3]
        ends = [found[3] if end == old else end for end in varied.syntax.implicit_ends]
        varied.syntax.implicit_ends[:] = ends
        yield varied
