"""Compiling programs for a device: providers, layouts and the place of every byte."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from helios.compile.canonical import digest, to_json
from helios.compile.capabilities import CapabilityCatalog, MaterializerKind
from helios.compile.demand import NO_DEMAND, Demand
from helios.compile.estimate import Estimator, Workspace
from helios.compile.language import language_roles
from helios.compile.liveness import aligned, plan_arena
from helios.compile.memory import MemoryModel, SymbolicBuffer, program_memory
from helios.compile.options import CompileOptions
from helios.compile.plan import SEAL, Limits, OpPlan, Plan, ProgramPlan, WeightPlan
from helios.compile.retention import retained_values
from helios.compile.selection import Selection, select
from helios.contract.prepared import PreparedContract
from helios.contract.tensor import BufferKind
from helios.errors import CompileError
from helios.program.ir import Buffer, Program
from helios.program.text import to_texts
from helios.records import dataclass

_PER_FRAME = (BufferKind.TRANSPORT, BufferKind.COMPLETION)


@dataclass(frozen=True, slots=True)
class Compilation:
    """Everything about a model on a device that does not depend on its limits."""

    catalog: CapabilityCatalog
    options: CompileOptions
    contract: str  # SHA-256
    programs: tuple[Program, ...]
    ops: tuple[tuple[OpPlan, ...], ...]
    roles: tuple[Mapping[str, str], ...]
    retained: tuple[frozenset[str], ...]
    memory: MemoryModel


def analyse(
    contract: PreparedContract,
    programs: Sequence[Program],
    catalog: CapabilityCatalog,
    options: CompileOptions | None = None,
) -> Compilation:
    """Choose providers, layouts and sharing. Reads metadata only and allocates nothing."""
    options = options or CompileOptions()
    selection = select(programs, contract.weights, catalog, options.approximate)
    retained = retained_values(programs, options.retained)
    weights = _plan_weights(contract, selection, catalog)
    spaces = _workspaces(programs, selection, catalog)
    memory = MemoryModel(
        weights=weights,
        buffers=_symbolic_buffers(contract, programs, options.frames),
        programs=tuple(
            program_memory(program, plan_arena(program, kept), scratch, held)
            for program, kept, scratch, held in zip(
                programs, retained, spaces.scratch, spaces.held, strict=True
            )
        ),
        provider_data=spaces.provider_data,
        staging_nbytes=_staging_nbytes(weights, catalog, options.copied),
        copied_nbytes=sum(w.stored_nbytes for w in weights if not w.mapped) * options.copied,
        page_tokens=contract.cache.page_tokens,
    )
    return Compilation(
        catalog=catalog,
        options=options,
        contract=contract_digest(contract, programs),
        programs=tuple(programs),
        ops=selection.ops,
        roles=tuple(_role_names(program) for program in programs),
        retained=tuple(retained),
        memory=memory,
    )


def plan_at(compilation: Compilation, limits: Limits) -> Plan:
    """The frozen plan of a compilation at chosen limits."""
    memory, options = compilation.memory, compilation.options
    return Plan(
        seal=SEAL,
        device=compilation.catalog.device,
        catalog=compilation.catalog.fingerprint,
        contract=compilation.contract,
        limits=limits,
        frames=options.frames,
        approximate=options.approximate,
        retained=options.retained,
        copied=options.copied,
        programs=tuple(
            _plan_program(compilation, place, limits) for place in range(len(compilation.programs))
        ),
        weights=memory.weights,
        buffers=memory.buffer_plans(limits),
        sections=memory.sections(limits),
        page_tokens=memory.page_tokens,
        arena_nbytes=memory.arena_nbytes(limits),
        scratch_nbytes=memory.scratch_nbytes(limits),
        provider_nbytes=memory.provider_nbytes(limits),
        staging_nbytes=memory.staging_nbytes,
    )


def contract_digest(contract: PreparedContract, programs: Sequence[Program]) -> str:
    """SHA-256 over what a plan is made from besides the catalog.

    Names of the model and places of its weights are no part of it: the plan of a source is the
    plan of the core that is prepared from it.
    """
    facts = {
        "page_tokens": contract.cache.page_tokens,
        "transport": contract.transport,
        "weights": {
            name: (weight.storage.name, weight.shape, weight.nbytes)
            for name, weight in contract.weights.items()
        },
    }
    return digest("\n".join((to_json(facts), *to_texts(programs))))


def _plan_program(compilation: Compilation, place: int, limits: Limits) -> ProgramPlan:
    program, needs = compilation.programs[place], compilation.memory.programs[place]
    lengths = needs.lengths(limits)
    return ProgramPlan(
        name=program.name,
        operation=program.operation.name.lower(),
        lengths=lengths,
        roles=compilation.roles[place],
        ops=compilation.ops[place],
        placements=needs.arena.placements(lengths),
        retained=tuple(sorted(compilation.retained[place])),
        arena_nbytes=needs.arena.nbytes(lengths),
        scratch_nbytes=needs.scratch_nbytes(limits),
    )


def _role_names(program: Program) -> dict[str, str]:
    return {role.name.lower(): item.name for role, item in language_roles(program).items()}


def _plan_weights(
    contract: PreparedContract, selection: Selection, catalog: CapabilityCatalog
) -> tuple[WeightPlan, ...]:
    plans = []
    for name, spec in selection.materializers.items():
        weight = contract.weights[name]
        mapped = spec.kind is MaterializerKind.IDENTITY
        nbytes = aligned(catalog.layout(spec.layout).nbytes(weight.shape))
        plans.append(
            WeightPlan(
                name=name,
                storage=spec.storage,
                layout=spec.layout,
                materializer=spec.name,
                exact=spec.exact,
                stored_nbytes=weight.nbytes,
                nbytes=weight.nbytes if mapped else nbytes,
                mapped=mapped,
                bound=selection.bounds.get(name),
            )
        )
    return tuple(plans)


def _staging_nbytes(weights: Sequence[WeightPlan], catalog: CapabilityCatalog, copied: bool) -> int:
    """While weights are materialised: the materializer's own buffers, and the stored bytes of one
    weight, unless all of them are counted as a copy anyway."""
    made = [w for w in weights if not w.mapped]
    own = {spec.name: spec.staging for spec in catalog.materializers}
    stored = 0 if copied else max((w.stored_nbytes for w in made), default=0)
    return stored + max((own[w.materializer] for w in made), default=0)


@dataclass(frozen=True, slots=True)
class _Workspaces:
    """Per program its scratch and what each provider holds; then what stays with the model."""

    scratch: list[tuple[Demand, ...]]
    held: list[tuple[tuple[Demand, ...], ...]]
    provider_data: tuple[Demand, ...]


def _workspaces(
    programs: Sequence[Program], selection: Selection, catalog: CapabilityCatalog
) -> _Workspaces:
    """All demands beside operands and results; equal ones of a program are listed once."""
    estimate = Estimator({p.name: p for p in catalog.providers})
    found = _Workspaces([], [], ())
    bindings: Counter[Demand] = Counter()
    persistent: dict[tuple[str, Demand], None] = {}
    for program, decisions in zip(programs, selection.ops, strict=True):
        scratch: dict[Demand, None] = {}
        held: dict[str, dict[Demand, None]] = {}
        for provider, needs, count in _counted(estimate, program, decisions):
            scratch[needs.scratch] = None
            held.setdefault(provider, {})[needs.held] = None
            bindings[needs.binding] += count
            persistent[provider, needs.persistent] = None
        found.scratch.append(_real(scratch))
        found.held.append(tuple(group for demands in held.values() if (group := _real(demands))))
    kept = (*bindings.elements(), *(demand for _, demand in persistent))
    return _Workspaces(found.scratch, found.held, _real(kept))


def _counted(
    estimate: Estimator, program: Program, decisions: Sequence[OpPlan]
) -> list[tuple[str, Workspace, int]]:
    """Providers, what they need, and for how many operations: layers repeat the same few."""
    found: dict[tuple[str, int], tuple[str, Workspace, int]] = {}
    for op, decision in zip(program.ops, decisions, strict=True):
        needs = estimate(decision.provider, op)
        key = decision.provider, id(needs)
        _, _, count = found.get(key, (None, None, 0))
        found[key] = decision.provider, needs, count + 1
    return list(found.values())


def _real(demands: Iterable[Demand]) -> tuple[Demand, ...]:
    return tuple(demand for demand in demands if demand != NO_DEMAND)


def _symbolic_buffers(
    contract: PreparedContract, programs: Sequence[Program], frames: int
) -> tuple[SymbolicBuffer, ...]:
    retained = {t.name for t in contract.transport.values() if t.retained}
    known: dict[str, Buffer] = {}
    users: dict[str, list[int]] = {}
    for place, program in enumerate(programs):
        for buffer in program.buffers():
            first = known.setdefault(buffer.name, buffer)
            if (first.kind, first.type) != (buffer.kind, buffer.type):
                raise CompileError(
                    "programs disagree about a buffer",
                    field=f"{program.name}.{buffer.name}",
                    value=f"{buffer.kind.name} {buffer.type}, elsewhere {first.kind.name} "
                    f"{first.type}",
                    remedy="declare it alike in every program",
                )
            users.setdefault(buffer.name, []).append(place)
    return tuple(
        SymbolicBuffer(
            name=name,
            kind=buffer.kind,
            type=buffer.type,
            copies=frames if buffer.kind in _PER_FRAME and name not in retained else 1,
            programs=tuple(users[name]),
        )
        for name, buffer in sorted(known.items())
    )
