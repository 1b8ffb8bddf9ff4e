"""Commands of the command line, made from functions.

A command's options are what its function declares: `Annotated[int, Option(help="...")]`. An option
is called what its parameter is, takes what the annotation says, and is a flag if that is `bool`.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import click

from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """A word that stands for itself."""

    help: str


@dataclass(frozen=True, slots=True)
class Option:
    """A word after `--name`.

    `names` replaces the parameter's own, `min` bounds a number, `env` names a variable that is
    read where the option is left out, and `instead`, if the flag is set, is called in place of the
    command.
    """

    help: str
    names: tuple[str, ...] = ()
    min: float | None = None
    env: str | None = None
    instead: Callable[[], None] | None = None


def command(name: str, function: Callable[..., None]) -> click.Command:
    """The command that calls a function with what was given, or with its parameters' defaults."""
    parameters = [_parameter(p) for p in inspect.signature(function).parameters.values()]
    return click.Command(name, callback=function, params=parameters, help=function.__doc__)


def _parameter(parameter: inspect.Parameter) -> click.Parameter:
    annotation, declared = get_args(parameter.annotation)
    kind = _only(annotation)
    settings: dict[str, Any] = {"help": declared.help, "required": True}
    if parameter.default is not inspect.Parameter.empty:
        settings |= {"required": False, "default": parameter.default}
    if isinstance(declared, Argument):
        return click.Argument([parameter.name], type=_converter(kind), **settings)
    if declared.instead is not None:
        settings |= {"is_eager": True, "expose_value": False, "callback": _ending(declared.instead)}
    if kind is bool:
        names = declared.names or (_switch(parameter.name),)
        return click.Option([parameter.name, *names], is_flag=True, **settings)
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
        settings |= {"multiple": True, "callback": _list}
    return click.Option(
        [parameter.name, *(declared.names or (_option(parameter.name),))],
        type=_converter(kind, declared.min),
        envvar=declared.env,
        show_default=settings.get("default") not in (None, ""),
        **settings,
    )


def _only(annotation: Any) -> Any:
    """What an annotation says besides None."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    (kind,) = (a for a in get_args(annotation) if a is not type(None))
    return kind


def _converter(kind: type, least: float | None = None) -> click.ParamType[Any]:
    if kind is Path:
        return click.Path(path_type=Path)
    if least is None:
        return click.types.convert_type(kind)
    return click.IntRange(min=int(least)) if kind is int else click.FloatRange(min=least)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _switch(name: str) -> str:
    return f"{_option(name)}/--no-{name.replace('_', '-')}"


def _list(_: click.Context, __: click.Parameter, values: tuple[Any, ...]) -> list[Any] | None:
    return list(values) or None


def _ending(function: Callable[[], None]) -> Callable[[click.Context, click.Parameter, bool], None]:
    def called(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
        if asked:
            function()
            ctx.exit()

    return called
