"""Facts as canonical JSON: equal facts give equal text, whatever order they were made in."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar

_V = TypeVar("_V")


def plain(value: Any) -> Any:
    """Dataclasses and mappings as dictionaries, sequences as lists, enums by value."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    names = _field_names(kind)
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, Enum):
        return value.value
    return value


_PLAIN = frozenset({str, int, bool, float, type(None)})


_FIELDS: dict[type, tuple[str, ...] | None] = {}


def _field_names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other class."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None
    return _FIELDS[kind]


def to_json(value: Any) -> str:
    """The canonical text of a value."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def frozen(mapping: Mapping[str, _V]) -> Mapping[str, _V]:
    """A read-only copy of a mapping, in key order."""
    return MappingProxyType(dict(sorted(mapping.items())))
