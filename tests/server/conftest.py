"""A service over the scripted engine, and clients for it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "frontend"))

from serving import Serving


@pytest.fixture
def serving() -> Iterator[Serving]:
    """An application whose model says `HELLO`."""
    with Serving() as serving:
        yield serving


@pytest.fixture
def make_serving() -> Iterator[Any]:
    """The same, made to order."""
    made: list[Serving] = []

    def make(**options: Any) -> Serving:
        made.append(Serving(**options).__enter__())
        return made[-1]

    yield make
    for serving in made:
        serving.__exit__(None, None, None)
