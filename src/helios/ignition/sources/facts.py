"""Typed access to a checkpoint's configuration."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from helios.errors import SourceError

_LARGEST = 1 << 53  # JSON integers have no bound of their own


class Facts:
    """Plain configuration values by key. Getters check types and name the key they refuse.

    `prefix` is what the keys of this view carry in the file (`llama.` in GGUF), so that an error
    names the key as the user finds it.
    """

    def __init__(self, values: Mapping[str, object], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def keys(self) -> frozenset[str]:
        """Every key that has a value."""
        return frozenset(k for k, v in self._values.items() if v is not None)

    def integer(self, key: str, default: int | None = None) -> int:
        """A positive integer."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
            raise self._refused(key, "a positive integer", value)
        return value

    def whole(self, key: str, default: int | None = None) -> int:
        """An integer from zero upwards."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise self._refused(key, "a non-negative integer", value)
        return value

    def real(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refused(key, "a number", value)
        if abs(value) > _LARGEST or not math.isfinite(value):
            raise self._refused(key, "a finite number", value)
        return float(value)

    def positive(self, key: str, default: float | None = None) -> float:
        """A finite number above zero."""
        value = self.real(key, default)
        if value <= 0:
            raise self._refused(key, "above zero", value)
        return value

    def flag(self, key: str, default: bool | None = None) -> bool:
        """A truth value."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self._refused(key, "true or false", value)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self._refused(key, "a string", value)
        return value

    def sequence(self, key: str) -> list[object]:
        """A list of values."""
        value = self._get(key, None)
        if not isinstance(value, list):
            raise self._refused(key, "a list", value)
        return value

    def array(self, key: str) -> npt.NDArray[np.number]:
        """A flat array of numbers."""
        value = self._get(key, None)
        if not isinstance(value, np.ndarray) or not np.issubdtype(value.dtype, np.number):
            raise self._refused(key, "an array of numbers", value)
        return value

    def group(self, key: str) -> "Facts":
        """A nested group of values; empty where there is none."""
        value = self._values.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self._refused(key, "a group of values", value)
        return Facts(value, f"{self._prefix}{key}.")

    def over(self, defaults: Mapping[str, object]) -> "Facts":
        """The same values, with others in place of those that are not given at all."""
        return Facts({**defaults, **self._values}, self._prefix)

    def under(self, others: Mapping[str, object]) -> "Facts":
        """The same values, except where others are given."""
        return Facts({**self._values, **others}, self._prefix)

    def name(self, key: str) -> str:
        """The key as the file spells it."""
        return self._prefix + key

    def _get(self, key: str, default: object) -> object:
        value = self._values.get(key)
        if value is None:
            value = default
        if value is None:
            raise SourceError(
                "the configuration lacks this key",
                field=self.name(key),
                remedy="use a complete checkpoint",
            )
        return value

    def _refused(self, key: str, wanted: str, value: object) -> SourceError:
        return SourceError(
            f"must be {wanted}",
            field=self.name(key),
            value=value,
            remedy="use a checkpoint whose configuration is intact",
        )
