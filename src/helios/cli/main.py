"""The `helios` command. A subcommand's module is imported only when it is asked for."""

import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import helios
from helios.errors import HeliosError

_COMMANDS = ("prepare", "plan", "serve", "chat", "inspect", "verify", "keys", "run", "diff-runs")


def build(words: Sequence[str]) -> typer.Typer:
    """The command line for these arguments: every subcommand, or the one that they name."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    named = next((word for word in words if not word.startswith("-")), "")
    for name in [named] if named in _COMMANDS else _COMMANDS:
        module = importlib.import_module(f"helios.cli.{name.replace('-', '_')}")
        group: typer.Typer | None = getattr(module, "app", None)
        if group is not None:
            app.add_typer(group, name=name)
        else:
            app.command(name)(getattr(module, name.replace("-", "_")))
    return app


def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Helios prepares language models into signed cores, and serves them."""
    if version:
        typer.echo(f"helios {helios.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; errors end with status 1 and name the remedy."""
    try:
        # Importing makes objects to keep: looking for garbage among them is in vain.
        gc.disable()
        command = build(sys.argv[1:])
        gc.enable()
        command(prog_name="helios")
    except HeliosError as error:
        from helios.cli.console import print_error

        print_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
