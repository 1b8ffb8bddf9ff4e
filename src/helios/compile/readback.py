"""Reading a written plan: what to compile again, and the first place where it differs.

A plan's text decides nothing but which limits and options to compile for. Everything else in it
is compared with what compiling gives.
"""

import json
from itertools import zip_longest
from typing import Any

from helios.compile.canonical import plain
from helios.compile.capabilities import CapabilityCatalog
from helios.compile.options import CompileOptions
from helios.compile.plan import Limits
from helios.errors import ForeignPlanError, HeliosError, StalePlanError
from helios.records import dataclass

MISSING = "(missing)"

_REMEDY = "plan again with this engine, device and core"


@dataclass(frozen=True, slots=True)
class Written:
    """The data of a plan's JSON, not yet believed."""

    data: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> "Written":
        """The data; `StalePlanError` if the text is no plan."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise StalePlanError(f"is no JSON: {error}", field="plan", remedy=_REMEDY) from None
        if not isinstance(data, dict):
            raise StalePlanError("is no plan", field="plan", value=data, remedy=_REMEDY)
        return cls(data)

    def require_device(self, catalog: CapabilityCatalog) -> None:
        """Raise `ForeignPlanError` if the plan is for another device or catalog."""
        for name, expected in (
            ("device", plain(catalog.device)),
            ("catalog", catalog.fingerprint),
        ):
            if self.data.get(name) != expected:
                raise ForeignPlanError(
                    "the plan was made for another device",
                    field=f"plan.{name}",
                    value=self.data.get(name),
                    remedy=f"plan for {catalog.device}, or use the device it was made for",
                )

    def limits(self) -> Limits:
        """The limits to compile for."""
        limits: Any = self.data.get("limits")
        try:
            return Limits(**{name: _whole(value) for name, value in limits.items()})
        except (AttributeError, TypeError, ValueError, HeliosError) as error:
            raise StalePlanError(
                f"are no limits: {error}", field="plan.limits", value=limits, remedy=_REMEDY
            ) from None

    def options(self) -> CompileOptions:
        """The options to compile with."""
        data = self.data
        try:
            return CompileOptions(
                approximate={str(k): float(v) for k, v in data["approximate"].items()},
                retained=tuple(str(name) for name in data["retained"]),
                frames=_whole(data["frames"]),
                copied=bool(data["copied"]),
            )
        except (KeyError, AttributeError, TypeError, ValueError, HeliosError) as error:
            raise StalePlanError(
                f"options can't be read: {error}", field="plan", remedy=_REMEDY
            ) from None


def require_equal(written: Any, rebuilt: Any) -> None:
    """Raise `StalePlanError` at the first difference between a plan and the rebuilt one."""
    for path, old, new in differences(written, plain(rebuilt), "plan"):
        raise StalePlanError(
            f"the plan differs from what compiling gives: {_short(new)}",
            field=path,
            value=old,
            remedy=_REMEDY,
        )


def differences(left: Any, right: Any, path: str) -> list[tuple[str, Any, Any]]:
    """Every place where two pieces of plain data differ, with MISSING for what is not there."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = sorted(left.keys() | right.keys())
        pairs = [(f"{path}.{key}", left.get(key, MISSING), right.get(key, MISSING)) for key in keys]
    elif isinstance(left, list) and isinstance(right, list):
        pairs = [
            (f"{path}[{i}]", a, b)
            for i, (a, b) in enumerate(zip_longest(left, right, fillvalue=MISSING))
        ]
    elif type(left) is type(right) and left == right:
        return []
    else:
        return [(path, left, right)]
    return [found for name, a, b in pairs for found in differences(a, b, name)]


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:79] + "…"
