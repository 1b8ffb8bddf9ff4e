"""A function's declarations become options that take, refuse and default as they say."""

from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner, Result

from helios.cli.command import Argument, Option, command

given: dict[str, Any] = {}


def _work(
    source: Annotated[Path, Argument(help="What to read.")],
    count: Annotated[int, Option(min=1, help="How often.")] = 2,
    most_words: Annotated[int | None, Option(help="No more than these.")] = None,
    alias: Annotated[list[str] | None, Option(help="May be repeated.")] = None,
    cache: Annotated[bool, Option(help="Keep it.")] = True,
    quick: Annotated[bool, Option(names=("--quick", "-q"), help="Hurry.")] = False,
    key: Annotated[str, Option(env="WORK_KEY", help="A secret.")] = "",
    names: Annotated[
        bool, Option(names=("--names",), instead=lambda: print("a b"), help="Print names and end.")
    ] = False,
) -> None:
    """Work on a file."""
    given.clear()
    given.update(locals())


def _run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(command("work", _work), words, env=environment)


def test_what_is_left_out_is_the_default() -> None:
    assert _run("x").exit_code == 0
    assert given["source"] == Path("x")
    assert (given["count"], given["most_words"], given["alias"]) == (2, None, None)
    assert (given["cache"], given["quick"], given["key"]) == (True, False, "")


def test_options_are_read_as_their_annotations_say() -> None:
    words = ("--count", "3", "--most-words", "9", "--alias", "a", "--alias", "b", "--no-cache")
    assert _run("x", *words, "-q", WORK_KEY="k").exit_code == 0
    assert (given["count"], given["most_words"], given["alias"]) == (3, 9, ["a", "b"])
    assert (given["cache"], given["quick"], given["key"]) == (False, True, "k")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "SOURCE"),
        (("x", "--count", "0"), "--count"),
        (("x", "--most-words", "few"), "--most-words"),
        (("x", "--swift"), "--swift"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(words: tuple[str, ...], named: str) -> None:
    refused = _run(*words)
    assert refused.exit_code == 2
    assert named in refused.output


def test_an_option_may_take_the_place_of_the_command() -> None:
    given.clear()
    printed = _run("--names")
    assert printed.exit_code == 0
    assert printed.output == "a b\n"
    assert not given


def test_help_tells_arguments_and_options() -> None:
    told = _run("--help").output
    for words in ("Work on a file.", "What to read.", "How often.", "[default: 2", "--no-cache"):
        assert words in told
