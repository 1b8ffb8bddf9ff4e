"""Compiling programs for a device: providers, layouts and the place of every byte."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from helios.compile.capabilities import CapabilityCatalog, ProviderSpec
from helios.compile.demand import Demand
from helios.compile.liveness import plan_arena
from helios.compile.plan import BufferPlan, Limits, Plan, ProgramPlan, WeightPlan
from helios.compile.selection import Selection, select
from helios.contract.prepared import PreparedContract
from helios.program.extents import CONTINUATIONS, PAGES, ROWS, SAMPLED, SLOTS, TOKENS
from helios.program.ir import Buffer, BufferKind, Program
from helios.program.text import to_text


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What a user may ask of the compiler beyond the limits.

    `approximate` names the transcoding materializers that are allowed; `retained` the values
    kept to the end of the step, which changes the plan's id.
    """

    approximate: frozenset[str] = frozenset()
    retained: frozenset[str] = frozenset()
    frames: int = 2


def compile_plan(
    contract: PreparedContract,
    programs: Sequence[Program],
    catalog: CapabilityCatalog,
    limits: Limits,
    options: CompileOptions | None = None,
) -> Plan:
    """The plan of a model on a device. Reads metadata only and allocates nothing."""
    options = options or CompileOptions()
    selection = select(programs, contract.weights, catalog, options.approximate)
    buffers = _plan_buffers(contract, programs, limits, options.frames)
    return Plan(
        device=catalog.device,
        catalog=catalog.fingerprint,
        contract=_digest(programs),
        limits=limits,
        programs=tuple(_plan_program(p, selection, limits, options.retained) for p in programs),
        weights=_plan_weights(contract, selection, catalog),
        buffers=buffers,
        retained=tuple(sorted(options.retained)),
        page_tokens=contract.cache.page_tokens,
        page_nbytes=row_nbytes(programs, PAGES),
        sequence_nbytes=row_nbytes(programs, SLOTS),
        snapshot_nbytes=row_nbytes(programs, CONTINUATIONS),
    )


def extent_lengths(program: Program, limits: Limits) -> dict[str, int]:
    """The most that each extent can be under the limits."""
    chosen = {
        ROWS: limits.sequences,
        SAMPLED: limits.sequences,
        TOKENS: limits.batch_tokens,
        SLOTS: limits.sequences,
        PAGES: limits.pages,
        CONTINUATIONS: limits.snapshots,
    }
    return {
        e.name: min(e.capacity, chosen[e.name]) if e.capacity else chosen[e.name]
        for e in program.extents
    }


def row_nbytes(programs: Sequence[Program], extent: str) -> int:
    """Bytes of one row of every persistent buffer whose outermost dimension is that extent."""
    return sum(
        buffer.type.nbytes({extent: 1}) if _rows_of(buffer) == extent else 0
        for buffer in persistent_buffers(programs)
    )


def persistent_buffers(programs: Sequence[Program]) -> tuple[Buffer, ...]:
    """State, cache and tuned buffers of all programs, each once."""
    found = {b.name: b for p in programs for b in p.buffers()}
    kinds = (BufferKind.STATE, BufferKind.CACHE, BufferKind.TUNED)
    return tuple(b for b in found.values() if b.kind in kinds)


def _rows_of(buffer: Buffer) -> str | int:
    return buffer.type.shape[0] if buffer.type.shape else 0


def _plan_program(
    program: Program, selection: Selection, limits: Limits, retained: frozenset[str]
) -> ProgramPlan:
    lengths = extent_lengths(program, limits)
    placements, arena = plan_arena(program, lengths, retained)
    ops = selection.ops[program.name]
    return ProgramPlan(
        name=program.name,
        operation=program.operation.name.lower(),
        lengths=lengths,
        ops=ops,
        placements=placements,
        arena_nbytes=arena,
        scratch=_largest_scratch([selection.providers[op.provider] for op in ops]),
    )


def _largest_scratch(providers: Sequence[ProviderSpec]) -> Demand:
    """Operations run one after another, so they share scratch: the largest of each term."""
    tables = [dict(p.scratch.table) for p in providers if p.scratch.table]
    tokens = sorted({t for table in tables for t in table})
    covering = [
        (t, max(min((b for s, b in table.items() if s >= t), default=0) for table in tables))
        for t in tokens
    ]
    return Demand(
        fixed=max((p.scratch.fixed for p in providers), default=0),
        per_sequence=max((p.scratch.per_sequence for p in providers), default=0),
        per_token=max((p.scratch.per_token for p in providers), default=0),
        per_page=max((p.scratch.per_page for p in providers), default=0),
        table=tuple(covering),
    )


def _plan_weights(
    contract: PreparedContract, selection: Selection, catalog: CapabilityCatalog
) -> tuple[WeightPlan, ...]:
    plans = []
    for name, spec in sorted(selection.materializers.items()):
        weight = contract.weights[name]
        mapped = spec.kind == "identity"
        nbytes = weight.nbytes if mapped else catalog.layout(spec.layout).nbytes(weight.shape)
        plans.append(
            WeightPlan(
                name=name,
                storage=spec.storage,
                layout=spec.layout,
                materializer=spec.name,
                exact=spec.exact,
                stored_nbytes=weight.nbytes,
                nbytes=nbytes,
                mapped=mapped,
            )
        )
    return tuple(plans)


def _plan_buffers(
    contract: PreparedContract, programs: Sequence[Program], limits: Limits, frames: int
) -> tuple[BufferPlan, ...]:
    retained = {t.name for t in contract.transport if t.retained}
    shapes: dict[str, tuple[Buffer, tuple[int, ...]]] = {}
    for program in programs:
        lengths = extent_lengths(program, limits)
        for buffer in program.buffers():
            shape = buffer.type.resolve(lengths)
            _, known = shapes.get(buffer.name, (buffer, shape))
            shapes[buffer.name] = (buffer, tuple(map(max, shape, known)))
    return tuple(
        _plan_buffer(buffer, shape, 1 if name in retained else frames)
        for name, (buffer, shape) in sorted(shapes.items())
    )


def _plan_buffer(buffer: Buffer, shape: tuple[int, ...], frames: int) -> BufferPlan:
    per_frame = buffer.kind in (BufferKind.TRANSPORT, BufferKind.COMPLETION)
    copies = frames if per_frame else 1
    nbytes = buffer.type.dtype.nbytes
    for length in shape:
        nbytes *= length
    return BufferPlan(
        buffer.name, buffer.kind.name.lower(), buffer.type.dtype.text, shape, copies, copies * nbytes
    )


def _digest(programs: Sequence[Program]) -> str:
    digest = hashlib.sha256()
    for program in programs:
        digest.update(to_text(program).encode())
    return digest.hexdigest()


