"""Arguments whose strings stand raw on the wire: which part of a schema is text, which is JSON.

Where the schema tells how a value is read, a text that reads as something else would change its
type. So the text part of a union excludes what its other types would be read from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from helios.errors import RequestError
from helios.frontend.grammar.lark import Writer, containing, escaped, pattern
from helios.frontend.grammar.patterns import searched
from helios.frontend.grammar.schemas import resolve
from helios.frontend.tools.schemas import STRING, TYPES, allowed_types
from helios.records import dataclass

_TEXT_RULES = ("pattern", "minLength", "maxLength", "enum", "const")
_SPELLED = {
    "null": "null",
    "boolean": "true|false",
    "integer": "-?[0-9](?s:.*)",
    "number": "-?[0-9](?s:.*)",
    "array": r"\[(?s:.*)",
    "object": r"\{(?s:.*)",
}
"""What a text must not look like where the schema also allows another type."""
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class RawText:
    """Strings without quotes. `texts` are the only ones where the schema lists them."""

    texts: tuple[str, ...] | None = None
    patterns: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    unlike: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Parts:
    """A schema's alternatives: raw texts, and the schema of its other values."""

    raw: tuple[RawText, ...] = ()
    other: Mapping[str, object] | None = None


def split(schema: object, root: Mapping[str, object], where: str, depth: int = 0) -> Parts:
    """A parameter's schema in parts. Raises `RequestError` for what neither part can hold."""
    types = allowed_types(schema, root)
    if "string" not in types and depth == 0:
        return Parts(other=schema if isinstance(schema, dict) else {})
    resolved = resolve(schema, root)
    if "$ref" in resolved or depth > _DEEPEST:
        raise _unsupported(f"{where}.$ref", resolved.get("$ref"))
    parts = _split(resolved, root, where, depth)
    if depth == 0 and types != STRING:
        others = types - STRING
        parts = replace(parts, raw=tuple(replace(raw, unlike=others) for raw in parts.raw))
    return parts


def _split(
    schema: Mapping[str, object], root: Mapping[str, object], where: str, depth: int
) -> Parts:
    for key in ("const", "enum"):
        if key in schema:
            return _listed(schema, [schema[key]] if key == "const" else schema[key], where)
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            if set(schema) & {*_TEXT_RULES, "properties", "items"} or (
                key == "allOf" and len(options) > 1
            ):
                raise _unsupported(f"{where}.{key}", options)
            inner = [
                split(option, root, f"{where}.{key}[{number}]", depth + 1)
                for number, option in enumerate(options)
            ]
            return _joined(inner)
    types = allowed_types(schema, root)
    raw = (_raw(schema, where),) if "string" in types else ()
    other = {**schema, "type": sorted(types - STRING)} if types - STRING else None
    return Parts(raw, other)


def _listed(schema: Mapping[str, object], values: object, where: str) -> Parts:
    if not isinstance(values, list):
        raise _unsupported(f"{where}.enum", values)
    texts = tuple(value for value in values if isinstance(value, str))
    others = [value for value in values if not isinstance(value, str)]
    return Parts((RawText(texts),) if texts else (), {"enum": others} if others else None)


def _joined(parts: Sequence[Parts]) -> Parts:
    others = [part.other for part in parts if part.other is not None]
    return Parts(
        tuple(raw for part in parts for raw in part.raw),
        (others[0] if len(others) == 1 else {"anyOf": others}) if others else None,
    )


def _raw(schema: Mapping[str, object], where: str) -> RawText:
    patterns: tuple[str, ...] = ()
    if isinstance(schema.get("pattern"), str):
        patterns = (searched(str(schema["pattern"]), f"{where}.pattern"),)
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if not isinstance(least, int) or not isinstance(most, int | None):
        raise _unsupported(f"{where}.minLength", least)
    return RawText(None, patterns, least, most)


def text_terminal(writer: Writer, raw: RawText, forbidden: Sequence[str] = ()) -> str:
    """The terminal of raw texts in which none of the `forbidden` ones occurs."""
    length = "*" if (raw.least, raw.most) == (0, None) else f"{{{raw.least},{raw.most or ''}}}"
    if raw.most == 0:
        length = "{0}"
    conditions = [pattern(f"(?s:.{length})")] if raw.texts is None else [_one_of(raw.texts)]
    conditions += [pattern(regex) for regex in raw.patterns]
    if forbidden:
        conditions.append(f"~{writer.terminal(containing(forbidden))}")
    if raw.unlike & TYPES:
        looks = "|".join(_SPELLED[kind] for kind in sorted(raw.unlike) if kind in _SPELLED)
        others = pattern(rf"[ \t\r\n]*({looks})[ \t\r\n]*")
        conditions.append(f"~{writer.terminal(others)}")
    return writer.terminal(" & ".join(conditions))


def _one_of(texts: Sequence[str]) -> str:
    return pattern(f"({'|'.join(map(escaped, texts))})")


def _unsupported(where: str, value: object) -> RequestError:
    return RequestError(
        "can't be followed in this model's tool syntax",
        field=where,
        value=value,
        remedy="describe the parameter by a type, an enum or alternatives of those",
    )
