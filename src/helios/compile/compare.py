"""What differs between two plans, in the terms that a person decides by.

Plans are compared as plain data, so that one of them may come from another engine version.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from helios.errors import StalePlanError
from helios.records import dataclass

_PARTS = ("device", "limits", "plan", "memory", "weights", "providers")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two plans have differently; None where one does not have it."""

    part: str
    name: str
    left: Any
    right: Any


def compare(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[Difference]:
    """Differences in device, model, limits, memory, layouts and providers, in that order.

    Raises `StalePlanError` for data that is no plan.
    """
    before, after = list(_facts(left)), list(_facts(right))
    keys = dict.fromkeys(key for key, _ in (*before, *after))
    names = sorted(keys, key=lambda key: _PARTS.index(key[0]))
    old, new = dict(before), dict(after)
    return [
        Difference(part, name, old.get((part, name)), new.get((part, name)))
        for part, name in names
        if old.get((part, name)) != new.get((part, name))
    ]


def _facts(plan: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    try:
        for part in ("device", "limits"):
            for name, value in plan[part].items():
                yield (part, name), value
        for name in ("contract", "catalog", "frames", "retained", "approximate", "copied"):
            yield ("plan", name), plan[name]
        for section in plan["sections"]:
            yield ("memory", section["name"]), section["nbytes"]
        yield ("memory", "total"), sum(section["nbytes"] for section in plan["sections"])
        yield from _layouts(plan)
        yield from _providers(plan)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise StalePlanError(
            f"is no plan: {error!r}", field="--diff", remedy="write one with `helios plan --json`"
        ) from None


def _layouts(plan: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    """Bytes of weights by what they are stored as and become."""
    sizes: Counter[str] = Counter()
    for weight in plan["weights"]:
        sizes[f"{weight['storage']} as {weight['layout']}"] += weight["nbytes"]
    for name, nbytes in sorted(sizes.items()):
        yield ("weights", name), nbytes


def _providers(plan: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    """Per operation, how often each provider runs it."""
    used: dict[str, Counter[str]] = {}
    for program in plan["programs"]:
        for place in program["ops"]:
            decision = plan["decisions"][place]
            used.setdefault(decision["kind"], Counter())[decision["provider"]] += 1
    for kind, providers in sorted(used.items()):
        yield ("providers", kind), dict(sorted(providers.items()))
