import pytest
from toy_models import ToyModel

from helios.compile.language import language_roles
from helios.contract.operation import Operation
from helios.errors import CompileError
from helios.program.builder import ProgramBuilder
from helios.program.ir import DType, ExtentKind, Program, Role


def program(
    operation: Operation = Operation.DECODE,
    *,
    name: str = "anything",
    logits: Role = Role.LOGITS,
    sampled: Role = Role.SAMPLED_TOKEN,
    tokens: Role = Role.TOKENS,
) -> Program:
    """Embeds tokens, projects them back and picks one, with chosen roles."""
    builder = ProgramBuilder("p", operation)
    builder.extent("T", ExtentKind.DYNAMIC, 4)
    ids = builder.transport(f"{name}.in", DType.I32, ("T",), role=tokens)
    table = builder.weight("w", (4, 8))
    hidden = builder.value("embedding", ids, table, name=f"{name}.hidden")
    made = builder.value("linear", hidden, table, name=f"{name}.out", role=logits)
    builder.value("log_probability", made, ids, name=f"{name}.picked", role=sampled)
    return builder.build()


def test_inputs_and_outputs_are_found_by_role_whatever_their_names() -> None:
    for name in ("anything", "x", "logits"):
        roles = language_roles(program(name=name))
        assert {role: item.name for role, item in roles.items()} == {
            Role.TOKENS: f"{name}.in",
            Role.LOGITS: f"{name}.out",
            Role.SAMPLED_TOKEN: f"{name}.picked",
        }


def test_prepared_programs_declare_their_roles(toy: ToyModel) -> None:
    for operation in (Operation.PREFILL, Operation.DECODE, Operation.MIXED):
        roles = language_roles(toy.program(operation))
        assert set(roles) >= {Role.TOKENS, Role.LOGITS, Role.SAMPLED_TOKEN}
    assert language_roles(toy.program(Operation.INITIALIZE)) == {}


@pytest.mark.parametrize("missing", ["tokens", "logits", "sampled"])
def test_a_program_that_generates_needs_all_three(missing: str) -> None:
    broken = program(**{missing: Role.NONE})  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="nothing declares the role") as caught:
        language_roles(broken)
    assert caught.value.field == "p.roles"
    restoring = program(Operation.RESTORE, **{missing: Role.NONE})  # type: ignore[arg-type]
    assert len(language_roles(restoring)) == 2


def test_a_role_is_played_once() -> None:
    with pytest.raises(CompileError, match="two things claim the role LOGITS"):
        language_roles(program(sampled=Role.LOGITS))


def test_logits_are_computed() -> None:
    with pytest.raises(CompileError, match="for a computed value"):
        language_roles(program(tokens=Role.LOGITS, logits=Role.NONE))
