"""The committed bindings are those of the sources, and numbers once given stay what they were.

`numbers.txt` holds every number that a release may have written. After adding to the schema,
record the new ones with `python tests/schema/test_schema.py`.
"""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

from helios.schema import contract_pb2, core_pb2, frontend_pb2, manifest_pb2, program_pb2

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "src" / "helios" / "schema"
NUMBERS = Path(__file__).with_name("numbers.txt")
FILES: list[FileDescriptor] = [
    m.DESCRIPTOR for m in (contract_pb2, core_pb2, frontend_pb2, manifest_pb2, program_pb2)
]


def messages() -> Iterator[Descriptor]:
    for file in FILES:
        yield from file.message_types_by_name.values()


def enums() -> Iterator[EnumDescriptor]:
    for file in FILES:
        yield from file.enum_types_by_name.values()


def current_numbers() -> dict[str, int]:
    fields = {f"{m.full_name}.{f.name}": f.number for m in messages() for f in m.fields}
    values = {f"{e.full_name}.{v.name}": v.number for e in enums() for v in e.values}
    return fields | values


def recorded_numbers() -> dict[str, int]:
    lines = (line.split() for line in NUMBERS.read_text().splitlines())
    return {name: int(number) for name, number in lines}


def reserved() -> set[tuple[str, object]]:
    """(owner, number) and (owner, name) of everything reserved; ranges are small by policy."""
    found: set[tuple[str, object]] = set()
    for message in messages():
        proto = DescriptorProto()
        message.CopyToProto(proto)
        for span in proto.reserved_range:
            found.update((message.full_name, n) for n in range(span.start, span.end))
        found.update((message.full_name, name) for name in proto.reserved_name)
    for enum in enums():
        enum_proto = EnumDescriptorProto()
        enum.CopyToProto(enum_proto)
        for bounds in enum_proto.reserved_range:
            found.update((enum.full_name, n) for n in range(bounds.start, bounds.end + 1))
        found.update((enum.full_name, name) for name in enum_proto.reserved_name)
    return found


def test_the_committed_bindings_are_those_of_the_sources(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "generate_schema", ROOT / "tools" / "generate_schema.py"
    )
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.generate(tmp_path)
    fresh = {p.name: p.read_text() for p in tmp_path.iterdir()}
    committed = {p.name: p.read_text() for p in SCHEMA.glob("*_pb2.py*")}
    assert sorted(fresh) == sorted(committed)
    for name, text in fresh.items():
        assert committed[name] == text, f"{name}: run python tools/generate_schema.py"


@pytest.mark.parametrize("enum", list(enums()), ids=lambda enum: enum.name)
def test_every_enum_has_an_unspecified_zero(enum: EnumDescriptor) -> None:
    zero = enum.values_by_number[0].name
    assert zero.endswith("_UNSPECIFIED")
    prefix = zero.removesuffix("UNSPECIFIED")
    assert all(v.name.startswith(prefix) for v in enum.values)
    assert len(enum.values_by_number) == len(enum.values), "no two names of one number"


def test_numbers_are_stable_and_what_is_removed_is_reserved() -> None:
    current, kept = current_numbers(), reserved()
    for name, number in recorded_numbers().items():
        owner, _, item = name.rpartition(".")
        if name in current:
            assert current[name] == number, f"{name} was {number}"
        else:
            assert (owner, number) in kept, f"reserve {number} in {owner}, once {item}"
            assert (owner, item) in kept, f"reserve the name {item} in {owner}"


def test_every_number_is_recorded() -> None:
    missing = set(current_numbers()) - set(recorded_numbers())
    assert not missing, "run python tests/schema/test_schema.py"


def test_history_drafting_is_reserved() -> None:
    assert ("helios.v1.ServingContract", 12) in reserved()
    assert ("helios.v1.ServingContract", "history_drafting") in reserved()


if __name__ == "__main__":
    numbers = recorded_numbers() if NUMBERS.exists() else {}
    numbers |= current_numbers()
    NUMBERS.write_text("".join(f"{name} {numbers[name]}\n" for name in sorted(numbers)))
    sys.stdout.write(f"{len(numbers)} numbers recorded\n")
