"""The `helios` command. A subcommand's module is imported only when it is asked for."""

import gc
import importlib
import sys

import click

import helios
from helios.cli.command import command
from helios.errors import HeliosError

_COMMANDS = (
    *("prepare", "plan", "serve", "chat", "inspect", "verify", "keys", "run", "diff-runs"),
    "doctor",
)


class _Commands(click.Group):
    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        return _subcommand(name) if name in _COMMANDS else None


def _subcommand(name: str) -> click.Command:
    # Importing makes objects to keep: looking for garbage among them is in vain.
    gc.disable()
    word = name.replace("-", "_")
    module = importlib.import_module(f"helios.cli.{word}")
    gc.enable()
    if not hasattr(module, "COMMANDS"):
        return command(name, getattr(module, word))
    group = click.Group(name, help=module.HELP)
    for each, function in module.COMMANDS.items():
        group.add_command(command(each, function))
    return group


def main() -> None:
    """Run the command line; errors end with status 1 and name the remedy."""
    app = _Commands(help="Helios prepares language models into signed cores, and serves them.")
    click.version_option(helios.__version__, message="helios %(version)s")(app)
    try:
        app(prog_name="helios")
    except HeliosError as error:
        from helios.cli.console import print_error

        print_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
