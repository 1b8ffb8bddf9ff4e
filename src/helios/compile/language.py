"""The inputs and outputs of a language program, found by the roles they declare.

A name means nothing to the compiler: a recipe may call its tokens whatever it likes.
"""

from helios.contract.operation import Operation
from helios.errors import CompileError
from helios.program.ir import Buffer, Program, Role, Value

# Operations that run the network: they consume tokens and end in logits that are sampled from.
GENERATIVE = frozenset(
    {
        Operation.PREFILL,
        Operation.SCORED_PREFILL,
        Operation.DECODE,
        Operation.MIXED,
        Operation.SPECULATIVE,
    }
)
REQUIRED = (Role.TOKENS, Role.LOGITS, Role.SAMPLED_TOKEN)
_COMPUTED = frozenset({Role.LOGITS, Role.SAMPLED_TOKEN})


def language_roles(program: Program) -> dict[Role, Value | Buffer]:
    """What plays each declared role.

    Raises `CompileError` where two things claim one role, an output is not computed, or an
    operation that runs the network lacks its tokens, logits or sampled token.
    """
    found: dict[Role, Value | Buffer] = {}
    items: list[Value | Buffer] = [*program.buffers(), *program.values()]
    for item in items:
        if item.role is Role.NONE:
            continue
        if item.role in found:
            raise CompileError(
                f"two things claim the role {item.role.name}",
                field=f"{program.name}.{item.name}",
                value=found[item.role].name,
                remedy="declare the role once",
            )
        if item.role in _COMPUTED and not isinstance(item, Value):
            raise CompileError(
                f"the role {item.role.name} is for a computed value",
                field=f"{program.name}.{item.name}",
                value=item.kind.name,
                remedy="declare it on the operation's result",
            )
        found[item.role] = item
    if program.operation in GENERATIVE:
        _require_roles(program, found)
    return found


def _require_roles(program: Program, found: dict[Role, Value | Buffer]) -> None:
    for role in REQUIRED:
        if role not in found:
            raise CompileError(
                f"nothing declares the role {role.name}",
                field=f"{program.name}.roles",
                value=", ".join(r.name for r in found) or "none",
                remedy="prepare the model with a recipe that declares it",
            )
