"""Do the programs do what the contract says of them?

A contract is validated on its own, a program is verified on its own; here each graph is held
against its program, so that packing, scheduling and loading may rely on either.
"""

from collections.abc import Mapping, Sequence

from helios.contract.kinds import Access, IndexKind, ValueSource
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedContract, PreparedGraph, TuningProgram, ValueBinding
from helios.errors import ContractError
from helios.program.extents import CONTINUATIONS, PAGES, ROWS, SAMPLED, SLOTS, TOKENS
from helios.program.ir import Buffer, BufferKind, Dim, ExtentKind, Program
from helios.program.ops import OPS, READ, WRITE
from helios.program.records import check_completion
from helios.program.verify import verify


def check_programs(contract: PreparedContract, programs: Mapping[str, Program]) -> None:
    """Hold every program of both catalogs against the contract.

    Raises `ProgramError` for a program that is not well formed, and `ContractError` naming graph,
    value and remedy where contract and program differ.
    """
    known = {g.program for g in contract.graphs} | set(contract.tuning)
    for name in sorted(known ^ set(programs)):
        message = "there is no such program" if name in known else "no catalog names this program"
        raise _error(f"programs.{name}", message, name, "prepare programs and contract together")
    for graph in contract.graphs:
        check_graph(contract, graph, programs[graph.program])
    for tuning in contract.tuning.values():
        check_tuning(contract, tuning, programs[tuning.program])


def check_graph(contract: PreparedContract, graph: PreparedGraph, program: Program) -> None:
    """Hold one program against its graph."""
    verify(program)
    _check_identity(graph.program, graph.operation, program)
    _check_extents(contract, graph, program)
    buffers = program.buffers()
    _check_storage(contract, program, buffers)
    _check_bindings(contract, graph, buffers)
    _check_state(graph, program)
    check_completion(graph, program)
    _check_tuned(program, buffers, {b.buffer for b in graph.tuned})
    _check_weights(contract, program)
    _check_vocabulary(contract, program)
    _check_pages(contract, program)


def check_tuning(contract: PreparedContract, tuning: TuningProgram, program: Program) -> None:
    """Hold one tuning program against its catalog entry: it fills its outputs, touches no other
    buffer and depends on nothing that a submission or the memory plan chooses."""
    verify(program)
    _check_identity(tuning.program, Operation.TUNING, program)
    for extent in program.extents:
        field = f"programs.{program.name}.extents.{extent.name}"
        raise _error(field, "nothing gives it a length at start-up", extent.name, "fix the shapes")
    buffers = program.buffers()
    for buffer in buffers:
        if buffer.kind is not BufferKind.TUNED:
            field = f"programs.{program.name}.{buffer.name}"
            raise _error(field, "is no tuned buffer", buffer.kind.name, "touch only its outputs")
    _check_tuned(program, buffers, set(tuning.outputs))
    _check_storage(contract, program, buffers)
    _check_weights(contract, program)


def _error(field: str, message: str, value: object, remedy: str) -> ContractError:
    return ContractError(message, field=field, value=value, remedy=remedy)


def _check_identity(name: str, operation: Operation, program: Program) -> None:
    if program.name != name:
        raise _error(f"programs.{name}", "calls itself otherwise", program.name, "rename it")
    if program.operation is not operation:
        raise _error(
            f"programs.{name}.operation",
            f"the contract says {operation.name}",
            program.operation.name,
            "prepare both from one program",
        )


def _check_extents(contract: PreparedContract, graph: PreparedGraph, program: Program) -> None:
    """Extents are those that loading and packing know, at the graph's capacities."""
    capacities = {
        ROWS: (ExtentKind.DYNAMIC, {graph.rows}),
        SLOTS: (ExtentKind.LOAD, {0, contract.request_slots}),
        PAGES: (ExtentKind.LOAD, {0}),
        CONTINUATIONS: (ExtentKind.LOAD, {0}),
    }
    if graph.tokens:
        capacities[TOKENS] = (ExtentKind.DYNAMIC, {graph.tokens})
        capacities[SAMPLED] = (ExtentKind.DYNAMIC, {graph.rows})
    for extent in program.extents:
        field = f"programs.{program.name}.extents.{extent.name}"
        if extent.name not in capacities:
            raise _error(
                field, "nothing gives it a length", extent.name, f"use {', '.join(capacities)}"
            )
        kind, allowed = capacities[extent.name]
        if extent.kind is not kind:
            raise _error(field, "is of the other kind", extent.kind.name, f"declare it {kind.name}")
        if extent.capacity not in allowed:
            raise _error(
                field,
                "has another capacity in the contract",
                extent.capacity,
                f"capture it at {max(allowed)}",
            )


def _check_storage(contract: PreparedContract, program: Program, buffers: Sequence[Buffer]) -> None:
    """Every buffer of the program is the manifest's buffer of that name."""
    for buffer in buffers:
        field = f"programs.{program.name}.{buffer.name}"
        if buffer.kind is BufferKind.TRANSPORT:
            destination = contract.transport.get(buffer.name)
            declared = destination.type if destination else None
        else:
            descriptor = contract.buffers.get(buffer.name)
            declared = descriptor.type if descriptor and descriptor.kind is buffer.kind else None
        if declared is None:
            raise _error(
                field,
                f"the manifest has no such {buffer.kind.name.lower()} buffer",
                buffer.name,
                "declare it",
            )
        if declared != buffer.type:
            raise _error(
                field, f"the manifest says {declared}", str(buffer.type), "declare one type"
            )


def _check_bindings(
    contract: PreparedContract, graph: PreparedGraph, buffers: Sequence[Buffer]
) -> None:
    """Bindings and the program's transport buffers are the same, and run over the same extent."""
    transport = {b.name: b for b in buffers if b.kind is BufferKind.TRANSPORT}
    bound = {b.destination: b for b in graph.bindings}
    for name in sorted(set(transport) ^ set(bound)):
        message = "nothing fills this input" if name in transport else "the program reads no such"
        raise _error(
            f"graphs.{graph.program}.bindings.{name}", message, name, "bind exactly its inputs"
        )
    for name, binding in bound.items():
        shape, allowed = transport[name].type.shape, _leading(contract, graph, binding)
        if allowed and shape[0] not in allowed:
            raise _error(
                f"graphs.{graph.program}.bindings.{name}",
                f"{binding.index.name} runs over {' or '.join(map(str, allowed))}",
                str(transport[name].type),
                "reshape the destination",
            )


def _leading(
    contract: PreparedContract, graph: PreparedGraph, binding: ValueBinding
) -> tuple[Dim, ...]:
    """First dimensions that a destination may have; empty where there is none."""
    rows = SAMPLED if binding.source is ValueSource.SAMPLED_ROW else ROWS
    if binding.index is IndexKind.SUBMISSION_ROW:
        return rows, graph.rows
    if binding.index is IndexKind.ACTIVE_ROW:
        return (rows,)
    if binding.index is IndexKind.PHYSICAL_ROW:
        return SLOTS, contract.request_slots
    return (TOKENS,) if binding.index is IndexKind.PACKED_TOKEN else ()


def _check_state(graph: PreparedGraph, program: Program) -> None:
    """The declared accesses are what the operations do, buffer by buffer."""
    done = state_accesses(program)
    declared: dict[str, Access] = {}
    for access in graph.state:
        buffer = access.view.buffer
        declared[buffer] = declared.get(buffer, Access(0)) | access.access
    for name in sorted(set(done) | set(declared)):
        if done.get(name) != declared.get(name):
            raise _error(
                f"graphs.{graph.program}.state",
                f"the program's access of {name} is {_name(done.get(name))}",
                _name(declared.get(name)),
                "declare what it does",
            )


def _name(access: Access | None) -> str:
    return str(access.name) if access is not None else "none"


def state_accesses(program: Program) -> Mapping[str, Access]:
    """What the operations of a program do to each state buffer, in order of first use."""
    found: dict[str, Access] = {}
    for op in program.ops:
        for spec, operand in zip(OPS[op.kind].operands, op.operands, strict=False):
            if isinstance(operand, Buffer) and operand.kind is BufferKind.STATE:
                access = _ACCESS.get(spec.access, Access.READ_WRITE)
                found[operand.name] = found.get(operand.name, Access(0)) | access
    return found


_ACCESS = {READ: Access.READ, WRITE: Access.WRITE}


def _check_tuned(program: Program, buffers: Sequence[Buffer], declared: set[str]) -> None:
    """The program's tuned buffers are those that the contract binds."""
    used = {b.name for b in buffers if b.kind is BufferKind.TUNED}
    for name in sorted(used ^ declared):
        message = "is not declared" if name in used else "is not in the program"
        raise _error(
            f"programs.{program.name}.tuned.{name}", message, name, "bind exactly its tuned buffers"
        )


def _check_weights(contract: PreparedContract, program: Program) -> None:
    """Every weight is in the catalog, in the shape that the program takes it for."""
    for weight in program.weights():
        field = f"programs.{program.name}.weights.{weight.name}"
        stored = contract.weights.get(weight.name)
        if stored is None:
            raise _error(field, "is not in the weight catalog", weight.name, "store it")
        if stored.shape != weight.type.shape:
            raise _error(
                field,
                f"is stored in the shape {list(stored.shape)}",
                str(weight.type),
                "prepare both from one tensor",
            )


def _check_vocabulary(contract: PreparedContract, program: Program) -> None:
    """Logits are as wide as the vocabulary; embeddings have a row for every input id."""
    for index, op in enumerate(program.ops):
        field = f"programs.{program.name}.ops[{index}] {op.kind}"
        for spec, operand in zip(OPS[op.kind].operands, op.operands, strict=False):
            if operand is None:
                continue
            if spec.name in _BY_TOKEN and operand.type.shape[-1] != contract.vocabulary:
                raise _error(
                    f"{field}.{spec.name}",
                    f"the vocabulary has {contract.vocabulary} tokens",
                    str(operand.type),
                    "give one entry per token",
                )
            rows = operand.type.shape[0] if operand.type.shape else None
            if spec.name == "table" and isinstance(rows, int) and rows < contract.input_vocabulary:
                raise _error(
                    f"{field}.table",
                    f"the input vocabulary has {contract.input_vocabulary} tokens",
                    str(operand.type),
                    "give it a row per input id",
                )


_BY_TOKEN = frozenset({"logits", "prompt_histogram", "output_histogram", "histogram"})


def _check_pages(contract: PreparedContract, program: Program) -> None:
    """Where a program divides positions into pages, they are the contract's pages."""
    for index, op in enumerate(program.ops):
        page_tokens = op.attributes.get("page_tokens", contract.cache.page_tokens)
        if page_tokens != contract.cache.page_tokens:
            raise _error(
                f"programs.{program.name}.ops[{index}] {op.kind}.page_tokens",
                f"the contract's pages have {contract.cache.page_tokens} tokens",
                page_tokens,
                "prepare both at one page size",
            )
