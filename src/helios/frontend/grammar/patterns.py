"""Patterns of JSON Schema, which match anywhere in a text, as expressions of whole texts."""

from helios.errors import RequestError

_ANY = "(?s:.*)"


def searched(regex: str, where: str) -> str:
    """The regular expression of whole texts in which `regex` occurs.

    Anchors can stand only at the ends; raises `RequestError` for others.
    """
    inner, starts, ends = regex, False, False
    anchors, alternatives = _scan(regex)
    if anchors and alternatives:
        raise _unsupported(regex, where)
    if 0 in anchors:
        inner, starts = inner[1:], True
    if len(regex) - 1 in anchors and regex.endswith("$"):
        inner, ends = inner[:-1], True
    if len(anchors) > starts + ends:
        raise _unsupported(regex, where)
    slashes = inner.replace("\\/", "/").replace("/", "\\/").replace("\n", "\\n")
    return f"{'' if starts else _ANY}({slashes}){'' if ends else _ANY}"


def _scan(regex: str) -> tuple[list[int], bool]:
    """Where unescaped anchors stand, and whether alternatives stand outside of all groups."""
    anchors: list[int] = []
    depth, alternatives, position, in_class = 0, False, 0, False
    while position < len(regex):
        character = regex[position]
        if character == "\\":
            position += 2
            continue
        if in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
            position += regex[position + 1 : position + 2] == "^"
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character in "^$":
            anchors.append(position)
        elif character == "|" and depth == 0:
            alternatives = True
        position += 1
    return anchors, alternatives


def _unsupported(regex: str, where: str) -> RequestError:
    return RequestError(
        "can't be followed: anchors may stand at the ends only",
        field=where,
        value=regex,
        remedy="write one pattern from ^ to $",
    )
