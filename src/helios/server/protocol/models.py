"""Bodies of /v1/models."""

from typing import Literal

import msgspec


class Model(msgspec.Struct, kw_only=True):
    """A name under which the model is served; `numerics` is the profile of its numbers, if its
    device has several."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "helios"
    max_model_len: int
    numerics: str | None = None


class ModelList(msgspec.Struct):
    """All names."""

    data: list[Model]
    object: Literal["list"] = "list"
