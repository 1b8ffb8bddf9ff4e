"""The `helios` command. A subcommand's module is imported only when it is asked for."""

import gc
import importlib
import sys
from collections.abc import Sequence

import click

import helios
from helios.cli.command import command
from helios.errors import HeliosError

_COMMANDS = (
    *("prepare", "plan", "serve", "chat", "inspect", "verify", "keys", "run", "diff-runs"),
    "doctor",
)


def build(words: Sequence[str]) -> click.Group:
    """The command line for these arguments: every subcommand, or the one that they name."""
    app = click.Group(help="Helios prepares language models into signed cores, and serves them.")
    click.version_option(helios.__version__, message="helios %(version)s")(app)
    named = next((word for word in words if not word.startswith("-")), "")
    for name in [named] if named in _COMMANDS else _COMMANDS:
        app.add_command(_subcommand(name))
    return app


def _subcommand(name: str) -> click.Command:
    word = name.replace("-", "_")
    module = importlib.import_module(f"helios.cli.{word}")
    if not hasattr(module, "COMMANDS"):
        return command(name, getattr(module, word))
    group = click.Group(name, help=module.HELP)
    for each, function in module.COMMANDS.items():
        group.add_command(command(each, function))
    return group


def main() -> None:
    """Run the command line; errors end with status 1 and name the remedy."""
    try:
        # Importing makes objects to keep: looking for garbage among them is in vain.
        gc.disable()
        app = build(sys.argv[1:])
        gc.enable()
        app(prog_name="helios")
    except HeliosError as error:
        from helios.cli.console import print_error

        print_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
