"""JSON Schemas of requests, made ready for llguidance."""

import json
from collections.abc import Callable, Iterator, Mapping

from helios.errors import RequestError
from helios.frontend.grammar.numbers import inexact_field, within_doubles
from helios.records import dataclass

_FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uri",
        "uuid",
    }
)
"""The formats that can be enforced. Any other is an annotation, as JSON Schema says."""
_DEEPEST = 64
_MOST_PROPERTIES = 1000
"""Of one object: the work to follow it grows with their square."""
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("prefixItems", "anyOf", "oneOf", "allOf")
_SINGLE = (
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_OBJECT_RULES = ("properties", "patternProperties", "required", "additionalProperties")
_COMBINING = ("$ref", "anyOf", "oneOf", "allOf")

Steps = tuple[str, ...]
Change = Callable[[dict[str, object], Steps], object]


@dataclass(frozen=True, slots=True)
class Whitespace:
    """Where an answer may have whitespace. `pattern` is what may stand once wherever JSON allows
    it; without one, there is at most a space behind colons and commas."""

    pattern: str = ""
    none: bool = False

    @property
    def options(self) -> dict[str, object]:
        """As llguidance takes it."""
        if self.pattern:
            return {"whitespace_pattern": self.pattern}
        space = "" if self.none else " ?"
        return {
            "whitespace_flexible": False,
            "item_separator": f",{space}",
            "key_separator": f":{space}",
        }


FREE = Whitespace(pattern=r"( |\n(  ){0,12}|\n\t{1,6})")
"""A space, or a new line with its indentation, as printers of JSON make them. What is not bounded
here a model that has lost its way fills its whole answer with."""
COMPACT = Whitespace()


def document(schema: Mapping[str, object] | bool, whitespace: Whitespace) -> dict[str, object]:
    """A schema with the whitespace that its answers may have."""
    body: dict[str, object] = dict(schema) if isinstance(schema, Mapping) else _constant(schema)
    return {"x-guidance": whitespace.options, **body}


def compact(schema: Mapping[str, object]) -> str:
    """A schema as a grammar of its own, to try it."""
    return json.dumps({"grammars": [{"json_schema": document(schema, COMPACT)}]})


def read_schema(source: object, where: str, *, closed: bool = False) -> dict[str, object]:
    """A request's schema, checked as far as its form goes; raises `RequestError`.

    Formats that nobody enforces are left out. `closed` shuts objects that declare properties and
    say nothing of others, unless schemas are combined, which would contradict each other then.
    """
    if isinstance(source, str):
        source = _parse(source, where)
    if isinstance(source, bool):
        return _constant(source)
    if not isinstance(source, dict):
        raise _bad(where, "must be a JSON Schema object", source)
    schema = _cleaned(source, where, 0)
    schema.pop("x-guidance", None)
    return _closed(schema) if closed and not _combines(schema) else schema


def children(schema: Mapping[str, object]) -> Iterator[tuple[Steps, object]]:
    """The schemas right inside of a schema, and the steps to each."""
    for key in _NAMED:
        named = schema.get(key)
        if isinstance(named, dict):
            for name, child in named.items():
                yield (key, name), child
    for key in (*_LISTED, "items"):
        listed = schema.get(key)
        if isinstance(listed, list):
            for number, child in enumerate(listed):
                yield (key, str(number)), child
    for key in _SINGLE:
        if isinstance(schema.get(key), dict | bool):
            yield (key,), schema[key]


def rooted_at(root: Mapping[str, object], steps: Steps) -> dict[str, object]:
    """A document for what stands at `steps` of a schema, references into the root included."""
    pointer = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)
    return {"$ref": f"#/$defs/root{pointer}", "$defs": {"root": _moved(root)}}


def rooted(root: Mapping[str, object], schema: Mapping[str, object]) -> dict[str, object]:
    """A document for a schema whose references lead into `root`."""
    if not _refers(schema):
        return dict(schema)
    moved = {key: value for key, value in _moved(schema).items() if key != "$defs"}
    return {**moved, "$defs": {"root": _moved(root)}}


def dotted(steps: Steps) -> str:
    """Steps as they stand behind a field's name."""
    return "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in steps)


def resolve(schema: object, root: Mapping[str, object]) -> Mapping[str, object]:
    """What a schema that is nothing but a reference refers to; any other schema as it is.
    Circles and references that lead nowhere end at a schema that still has one."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            break
        target = _target(str(schema["$ref"]), root)
        if target is None:
            break
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
        notes = beside.keys() - {"title", "description", "default", "examples", "deprecated"}
        if notes:
            break
        schema = target
    return schema if isinstance(schema, dict) else _constant(schema is not False)


def _target(reference: str, root: Mapping[str, object]) -> object:
    if not reference.startswith("#"):
        return None
    found: object = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict):
            found = found.get(name)
        else:
            return None
    return found


def _constant(allows: bool) -> dict[str, object]:
    return {} if allows else {"anyOf": []}


def _parse(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _bad(where, "is no JSON", text) from None


def _cleaned(schema: dict[str, object], where: str, depth: int) -> dict[str, object]:
    """A copy without what can't be enforced and need not be; refuses what can't and must."""
    if depth > _DEEPEST:
        raise _bad(where, f"is nested more than {_DEEPEST} levels deep", None)
    properties = schema.get("properties")
    if isinstance(properties, dict) and len(properties) > _MOST_PROPERTIES:
        message = f"has more than {_MOST_PROPERTIES} properties"
        raise _bad(f"{where}.properties", message, len(properties))
    copy = _replaced(
        schema, lambda child, steps: _cleaned(child, f"{where}{dotted(steps)}", depth + 1)
    )
    if copy.get("format") not in _FORMATS:
        copy.pop("format", None)
    if field := inexact_field(copy):
        raise _bad(f"{where}.{field}", "holds a number that can't be written exactly", copy[field])
    return within_doubles(copy)


def _closed(schema: dict[str, object]) -> dict[str, object]:
    copy = _replaced(schema, lambda child, _: _closed(child))
    others = ("additionalProperties", "patternProperties", "unevaluatedProperties")
    if isinstance(copy.get("properties"), dict) and not any(key in copy for key in others):
        copy["additionalProperties"] = False
    return copy


def _combines(schema: Mapping[str, object]) -> bool:
    """Whether several schemas may describe one object."""
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) > 1:
        return True
    if any(key in schema for key in _COMBINING) and any(key in schema for key in _OBJECT_RULES):
        return True
    return any(isinstance(child, dict) and _combines(child) for _, child in children(schema))


def _refers(schema: Mapping[str, object]) -> bool:
    if "$ref" in schema:
        return True
    return any(isinstance(child, dict) and _refers(child) for _, child in children(schema))


def _moved(schema: Mapping[str, object]) -> dict[str, object]:
    """A schema whose references from the root lead to where the root is moved."""
    copy = _replaced(schema, lambda child, _: _moved(child))
    reference = copy.get("$ref")
    if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
        copy["$ref"] = f"#/$defs/root{reference[1:]}"
    return copy


def _replaced(schema: Mapping[str, object], change: Change) -> dict[str, object]:
    """A copy whose inner schemas are changed; all else stays, in order."""

    def changed(child: object, *steps: str) -> object:
        return change(child, steps) if isinstance(child, dict) else child

    copy = dict(schema)
    for key in _NAMED:
        named = copy.get(key)
        if isinstance(named, dict):
            copy[key] = {name: changed(child, key, name) for name, child in named.items()}
    for key in (*_LISTED, "items"):
        listed = copy.get(key)
        if isinstance(listed, list):
            copy[key] = [changed(child, key, str(n)) for n, child in enumerate(listed)]
    for key in _SINGLE:
        if key in copy:
            copy[key] = changed(copy[key], key)
    return copy


def _bad(where: str, message: str, value: object) -> RequestError:
    return RequestError(message, field=where, value=value, remedy="correct the schema")
