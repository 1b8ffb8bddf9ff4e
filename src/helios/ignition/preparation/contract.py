"""The serving contract: what a server must know of the prepared model."""

import hashlib
from collections.abc import Sequence
from math import prod

from helios.ignition.preparation.geometry import Geometry
from helios.ignition.preparation.graph import Graph, cache_planes, continuation_rows
from helios.ignition.preparation.manifest import every_buffer
from helios.ignition.recipes.recipe import LayerHistory, ModelFacts
from helios.ignition.sources.source import SamplingDefaults
from helios.program.ir import Buffer, BufferKind
from helios.schema import contract_pb2 as pb
from helios.schema import frontend_pb2

VERSION = 3


def serving_contract(
    facts: ModelFacts,
    geometry: Geometry,
    graphs: Sequence[Graph],
    frontend: frontend_pb2.FrontendContract,
    *,
    served_id: str,
    aliases: Sequence[str],
    source_sha256: bytes,
) -> pb.ServingContract:
    """The whole contract of one prepared model."""
    return pb.ServingContract(
        served_id=served_id,
        aliases=aliases,
        cache_identity=_cache_identity(geometry, source_sha256),
        context_tokens=geometry.context,
        prefill_tokens=geometry.prefill_tokens,
        prepared_pages=_working_pages(geometry),
        prepared_snapshots=2 * geometry.concurrency,
        concurrency=geometry.concurrency,
        defaults=_defaults(facts.defaults, facts.vocabulary),
        model=pb.ModelContract(
            version=VERSION,
            vocabulary=facts.vocabulary,
            input_vocabulary=facts.vocabulary,
            cache=_cache_contract(geometry),
            graphs=[graph.contract for graph in graphs],
            frontend=frontend,
            state_views=_state_views(graphs),
        ),
    )


def _cache_identity(geometry: Geometry, source_sha256: bytes) -> str:
    """Cached prefixes may be shared where the same weights wrote the same records."""
    facts = (source_sha256.hex(), geometry.cache_dtype.text, geometry.page_tokens)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _working_pages(geometry: Geometry) -> int:
    """One request at full context beside the others at one prefill chunk and a page to grow."""
    chunk = -(-geometry.prefill_tokens // geometry.page_tokens) + 1
    return geometry.table_pages + (geometry.concurrency - 1) * min(chunk, geometry.table_pages)


def _cache_contract(geometry: Geometry) -> pb.CacheContract:
    regions = [
        _region(layer, history, geometry) for layer, history in enumerate(geometry.histories)
    ]
    partial_pages = pb.HistoryRegion(
        name="continuation",
        kind=pb.HISTORY_KIND_CONTINUATION,
        planes=[
            pb.CachePlane(buffer=continuation_rows(p.buffer), record_bytes=p.record_bytes)
            for region in regions
            for p in region.planes
        ],
        tokens_per_record=1,
    )
    return pb.CacheContract(
        page_tokens=geometry.page_tokens,
        histories=[*regions, partial_pages],
        page_tables=[pb.PageTableView(destination="page_table")],
    )


def _region(layer: int, history: LayerHistory, geometry: Geometry) -> pb.HistoryRegion:
    """Sliding layers keep whole pages like the others; the window says which are still read."""
    return pb.HistoryRegion(
        name=f"layer.{layer}",
        kind=pb.HISTORY_KIND_SLIDING_WINDOW if history.window else pb.HISTORY_KIND_PAGED_KEY_VALUE,
        planes=[
            pb.CachePlane(buffer=name, record_bytes=geometry.record_bytes(history))
            for name in cache_planes(layer)
        ],
        tokens_per_record=1,
        window_tokens=history.window,
    )


def _state_views(graphs: Sequence[Graph]) -> list[pb.StateView]:
    return [
        _whole_buffer(buffer)
        for buffer in every_buffer(graphs).values()
        if buffer.kind is BufferKind.STATE
    ]


def _whole_buffer(buffer: Buffer) -> pb.StateView:
    """Rows of a state buffer, all of whose other dimensions are constants."""
    row = buffer.type.dtype.nbytes * prod(int(dim) for dim in buffer.type.shape[1:])
    return pb.StateView(name=buffer.name, buffer=buffer.name, row_stride=row, row_bytes=row)


def _defaults(defaults: SamplingDefaults, vocabulary: int) -> pb.ServingDefaults:
    return pb.ServingDefaults(
        temperature=defaults.temperature,
        top_k=None if defaults.top_k is None else min(defaults.top_k, vocabulary),
        top_p=defaults.top_p,
        min_p=defaults.min_p,
        repetition_penalty=defaults.repetition_penalty,
    )
