"""Every command that the README shows prints what it says."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spine.test_spine_serving import serving

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def shown_commands() -> list[tuple[str, str]]:
    """(command, output) of every console block; `$` starts a command."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    found = []
    for part in parts:
        lines = part.splitlines()
        # A command goes on while a quote is open.
        length = next(
            n for n in range(1, len(lines) + 1) if "\n".join(lines[:n]).count("'") % 2 == 0
        )
        found.append(("\n".join(lines[:length]), "\n".join(lines[length:])))
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether what is printed is what is shown; `…` stands for anything."""
    pattern = ".*".join(re.escape(piece) for piece in shown.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `helios` command that runs this checkout."""
    folder = tmp_path_factory.mktemp("readme")
    command = folder / "helios"
    command.write_text(
        f"#!{sys.executable}\nfrom helios.cli.main import main\nmain()\n", encoding="utf-8"
    )
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(scope="module")
def address(place: Path) -> Iterator[str]:
    with serving(place) as (found, _, _):
        yield found


@pytest.mark.parametrize(("command", "shown"), shown_commands())
def test_command_prints_what_is_shown(place: Path, address: str, command: str, shown: str) -> None:
    environment = os.environ | {
        "PATH": f"{place}:{os.environ['PATH']}",
        "HELIOS_HOME": str(place / "home"),
        "COLUMNS": "200",
    }
    done = subprocess.run(
        ["bash", "-c", command.replace("http://127.0.0.1:8000", address)],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert matches(shown, done.stdout), done.stdout


def test_python_example_runs(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(example.replace("http://127.0.0.1:8000", address), {})
    assert capsys.readouterr().out.startswith("Gravity is a fundamental concept in physics")
