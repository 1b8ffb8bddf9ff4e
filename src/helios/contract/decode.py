"""Decoding a serving contract with its manifest into one `PreparedContract`, not yet checked.

Decoding resolves: selections become enums, implied extents become numbers, names of views become
the views, and each graph is joined with its catalog entry. What does not resolve is refused here;
what resolves and is still wrong, `rules` refuses.
"""

from collections.abc import Mapping

from helios.contract.decode_frontend import decode_frontend
from helios.contract.decode_manifest import CatalogEntry, Manifest, decode_manifest
from helios.contract.kinds import Access, HistoryKind, IndexKind, ValueSource
from helios.contract.operation import Operation
from helios.contract.prepared import (
    SEAL,
    CacheGeometry,
    CachePlane,
    DraftCursor,
    HistoryRegion,
    PageTableView,
    PreparedContract,
    PreparedGraph,
    ServingDefaults,
    StateAccess,
    StateView,
    TunedBinding,
    ValueBinding,
    VisionGeometry,
)
from helios.contract.reading import check_distinct, check_name, refusal, select, table
from helios.contract.versions import check_version, extents_of
from helios.schema import contract_pb2 as pb
from helios.schema import manifest_pb2


def decode(
    contract: pb.ServingContract, manifest: manifest_pb2.ExecutionManifest
) -> PreparedContract:
    """Everything resolved. Raises `ContractError` for what does not resolve."""
    model = contract.model
    check_version(model)
    facts = decode_manifest(manifest)
    views = table(map(_view, model.state_views), lambda v: v.name, "state_views")
    return PreparedContract(
        SEAL,
        served_id=contract.served_id,
        aliases=tuple(contract.aliases),
        cache_identity=contract.cache_identity,
        context_tokens=contract.context_tokens,
        prefill_tokens=contract.prefill_tokens,
        prepared_pages=contract.prepared_pages,
        prepared_snapshots=contract.prepared_snapshots,
        concurrency=contract.concurrency,
        speculative_widths=tuple(contract.speculative_widths),
        defaults=_defaults(contract.defaults),
        version=model.version,
        vocabulary=model.vocabulary,
        input_vocabulary=model.input_vocabulary,
        vision=_vision(model),
        cache=_cache(model.cache),
        graphs=_graphs(model, facts, views),
        frontend=decode_frontend(model.frontend),
        abi=facts.abi,
        request_slots=facts.request_slots,
        draft_capacity=facts.draft_capacity,
        state_views=views,
        buffers=facts.buffers,
        transport=facts.transport,
        tuning=facts.tuning,
        weights=facts.weights,
    )


def _view(message: pb.StateView) -> StateView:
    return StateView(
        message.name, message.buffer, message.byte_offset, message.row_stride, message.row_bytes
    )


def _defaults(message: pb.ServingDefaults) -> ServingDefaults:
    return ServingDefaults(
        **{
            field.name: getattr(message, field.name)
            for field in message.DESCRIPTOR.fields
            if message.HasField(field.name)
        }
    )


def _vision(model: pb.ModelContract) -> VisionGeometry | None:
    if not model.HasField("vision"):
        return None
    vision = model.vision
    return VisionGeometry(
        vision.feature_slots,
        vision.window_feature_capacity,
        vision.patches_per_feature,
        tuple(vision.patch_capacities),
    )


def _cache(message: pb.CacheContract) -> CacheGeometry:
    regions = table(map(_region, message.histories), lambda r: r.name, "cache.histories")
    return CacheGeometry(
        message.page_tokens,
        tuple(regions.values()),
        tuple(PageTableView(t.destination, t.page_offset) for t in message.page_tables),
    )


def _region(message: pb.HistoryRegion) -> HistoryRegion:
    return HistoryRegion(
        message.name,
        select(HistoryKind, message.kind, f"cache.histories.{message.name}.kind"),
        tuple(CachePlane(p.buffer, p.record_bytes) for p in message.planes),
        message.tokens_per_record,
        message.window_tokens,
    )


def _graphs(
    model: pb.ModelContract, facts: Manifest, views: Mapping[str, StateView]
) -> tuple[PreparedGraph, ...]:
    graphs = table(
        (_graph(g, model.version, facts, views) for g in model.graphs),
        lambda g: g.program,
        "graphs",
    )
    for program in facts.programs:
        if program not in graphs:
            raise refusal(
                f"manifest.programs.{program}", "no graph describes it", program, "add its graph"
            )
    return tuple(graphs.values())


def _graph(
    message: pb.GraphContract, version: int, facts: Manifest, views: Mapping[str, StateView]
) -> PreparedGraph:
    field = f"graphs.{message.program}"
    entry = facts.programs.get(message.program)
    if entry is None:
        raise refusal(
            f"{field}.program", "is not in the execution catalog", message.program, "add it there"
        )
    operation = select(Operation, message.operation, f"{field}.operation")
    tuned = tuple(TunedBinding(t.buffer, t.producer) for t in message.tuned_bindings)
    check_operation_agrees(field, operation, entry)
    check_tuned_agrees(field, tuned, entry)
    extents = extents_of(message, version)
    return PreparedGraph(
        SEAL,
        program=message.program,
        operation=operation,
        resource=entry.resource,
        resources=check_distinct(message.resources, f"{field}.resources", "resource"),
        bindings=tuple(_binding(b, field) for b in message.bindings),
        state=_accesses(message, field, views),
        pending_view=(
            _resolve(message.pending_view, f"{field}.pending_view", views)
            if message.WhichOneof("pending_token") == "pending_view"
            else None
        ),
        pending_destination=(
            message.pending_destination
            if message.WhichOneof("pending_token") == "pending_destination"
            else None
        ),
        tuned=tuned,
        rows=extents.rows,
        draft_tokens=extents.draft_tokens,
        width=extents.width,
        tokens=extents.tokens,
        confidence_width=extents.confidence_width,
        state_rows_per_request=message.state_rows_per_request,
        draft_cursor=_cursor(message, field, views),
        completion=entry.completion,
    )


def check_operation_agrees(field: str, operation: Operation, entry: CatalogEntry) -> None:
    """Contract and execution catalog name the same operation."""
    if operation is not entry.operation:
        raise refusal(
            f"{field}.operation",
            f"the execution catalog says {entry.operation.name}",
            operation.name,
            "prepare both from one program",
        )


def check_tuned_agrees(field: str, tuned: tuple[TunedBinding, ...], entry: CatalogEntry) -> None:
    """Contract and execution catalog name the same tuned bindings."""
    distinct = check_distinct(tuned, f"{field}.tuned_bindings", "binding")
    if set(distinct) != set(entry.tuned):
        raise refusal(
            f"{field}.tuned_bindings",
            "the execution catalog names other tuned inputs",
            [t.buffer for t in tuned],
            f"name {[t.buffer for t in entry.tuned]} with their producers",
        )


def _binding(message: pb.ValueBinding, graph: str) -> ValueBinding:
    field = f"{graph}.bindings.{message.destination}"
    return ValueBinding(
        check_name(message.destination, f"{field}.destination"),
        select(ValueSource, message.source, f"{field}.source"),
        select(IndexKind, message.index, f"{field}.index"),
        message.offset,
        message.padding,
        tuple(message.constants),
        message.image_tensor,
    )


def _accesses(
    message: pb.GraphContract, graph: str, views: Mapping[str, StateView]
) -> tuple[StateAccess, ...]:
    found: list[StateAccess] = []
    for item in message.state:
        field = f"{graph}.state.{item.view}"
        if not item.access:
            raise refusal(f"{field}.access", "no access is selected", 0, "select READ or WRITE")
        found.append(StateAccess(_resolve(item.view, field, views), Access(item.access)))
    check_distinct((a.view.name for a in found), f"{graph}.state", "view")
    return tuple(found)


def _cursor(
    message: pb.GraphContract, graph: str, views: Mapping[str, StateView]
) -> DraftCursor | None:
    if not message.HasField("draft_cursor"):
        return None
    view = _resolve(message.draft_cursor.view, f"{graph}.draft_cursor.view", views)
    return DraftCursor(view, message.draft_cursor.lag_tokens)


def _resolve(name: str, field: str, views: Mapping[str, StateView]) -> StateView:
    if name not in views:
        raise refusal(field, "there is no such state view", name, "declare it in state_views")
    return views[name]
