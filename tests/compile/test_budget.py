from pathlib import Path

import pytest

from helios.compile.budget import available_nbytes, budget, parse_memory, size_text
from helios.errors import ConfigurationError

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("8GiB", 8 * GIB),
        ("8g", 8 * GIB),
        (" 8 GiB ", 8 * GIB),
        ("1.5MiB", 3 << 19),
        ("500MB", 500_000_000),
        ("4096", 4096),
        ("4096b", 4096),
        ("2k", 2048),
        ("0.5", 0.5),
        ("50%", 0.5),
        ("1", 1.0),
        ("100%", 1.0),
    ],
)
def test_memory_is_bytes_or_a_fraction(text: str, amount: float) -> None:
    parsed = parse_memory(text)
    assert parsed == amount
    assert type(parsed) is type(amount)


@pytest.mark.parametrize(
    "text", ["", "x", "8XB", "-1GiB", "0", "nan", "inf", "150%", "1e999GiB", "GiB", "5 5"]
)
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_memory(text)
    assert caught.value.field == "--memory"


def test_bytes_are_taken_as_they_are_and_fractions_of_what_is_available() -> None:
    assert budget(123, available=1000).nbytes == 123
    assert budget(0.25, available=1000).nbytes == 250
    assert budget(None, available=1000).nbytes == 800
    assert "25%" in budget(0.25, available=1000).origin


def test_sizes_read_well() -> None:
    assert [size_text(n) for n in (5, 2048, 3 << 20, 5 * GIB)] == [
        "5 bytes",
        "2.00 KiB",
        "3.00 MiB",
        "5.00 GiB",
    ]


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, Path]:
    """A /proc with 10 GiB available and an empty tree of control groups."""
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    groups.mkdir()
    available = f"MemTotal: 99999999 kB\nMemAvailable: {10 * GIB // 1024} kB\n"
    (proc / "meminfo").write_text(available)
    return proc, groups


def _group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def test_without_groups_the_system_decides(machine: tuple[Path, Path]) -> None:
    assert available_nbytes(*machine) == 10 * GIB


def test_version_2_limits_bind_on_every_level(machine: tuple[Path, Path]) -> None:
    proc, groups = machine
    (proc / "self" / "cgroup").write_text("0::/outer/inner\n")
    _group(
        groups / "outer" / "inner", memory__max="max", memory__current=str(GIB), memory__stat="a 1"
    )
    assert available_nbytes(proc, groups) == 10 * GIB
    _group(
        groups / "outer",
        memory__max=str(4 * GIB),
        memory__current=str(3 * GIB),
        memory__stat=f"anon 5\ninactive_file {GIB // 2}",
    )
    assert available_nbytes(proc, groups) == GIB + GIB // 2


def test_version_1_limits_bind(machine: tuple[Path, Path]) -> None:
    proc, groups = machine
    (proc / "self" / "cgroup").write_text("9:cpu:/x\n4:memory:/docker/abc\n0::/\n")
    _group(
        groups / "memory" / "docker" / "abc",
        memory__limit_in_bytes=str(2 * GIB),
        memory__usage_in_bytes=str(GIB),
        memory__stat="total_inactive_file 0",
    )
    assert available_nbytes(proc, groups) == GIB


def test_inside_a_container_the_mounted_root_is_the_group(machine: tuple[Path, Path]) -> None:
    """The path in /proc may not exist below the root that the container sees."""
    proc, groups = machine
    (proc / "self" / "cgroup").write_text("0::/../../elsewhere\n")
    _group(groups, memory__max=str(3 * GIB), memory__current=str(GIB))
    assert available_nbytes(proc, groups) == 2 * GIB


def test_a_group_beyond_its_limit_leaves_nothing(machine: tuple[Path, Path]) -> None:
    proc, groups = machine
    (proc / "self" / "cgroup").write_text("0::/\n")
    _group(groups, memory__max=str(GIB), memory__current=str(2 * GIB))
    assert available_nbytes(proc, groups) == 0


def test_a_system_that_says_nothing_needs_bytes(machine: tuple[Path, Path]) -> None:
    proc, groups = machine
    (proc / "meminfo").write_text("MemTotal: 5 kB\n")
    with pytest.raises(ConfigurationError, match="--memory"):
        available_nbytes(proc, groups)


def test_this_machine_has_some_memory() -> None:
    assert available_nbytes() > 0
