"""Rules of the cache: pages, history regions, planes and page-table views."""

from helios.contract.kinds import HistoryKind, ValueSource
from helios.contract.prepared import BufferDescriptor, CachePlane, HistoryRegion, PreparedContract
from helios.contract.reading import check_distinct, refusal
from helios.contract.rules.serving import PAGED
from helios.contract.tensor import BufferKind

MAX_PAGE_TOKENS = 1 << 16


def page_is_sized(contract: PreparedContract) -> None:
    """A page holds tokens."""
    if not 1 <= contract.cache.page_tokens <= MAX_PAGE_TOKENS:
        raise refusal(
            "cache.page_tokens",
            "out of range",
            contract.cache.page_tokens,
            f"give 1 to {MAX_PAGE_TOKENS}",
        )


def regions_have_planes(contract: PreparedContract) -> None:
    """Every region names its planes; keys and values come in pairs."""
    for region in contract.cache.histories:
        field = f"cache.histories.{region.name}.planes"
        if not region.planes:
            raise refusal(field, "a history needs a plane", 0, "name its buffers")
        if region.kind is HistoryKind.PAGED_KEY_VALUE and len(region.planes) % 2:
            raise refusal(
                field, "keys and values come in pairs", len(region.planes), "name both planes"
            )


def windows_match_kinds(contract: PreparedContract) -> None:
    """Sliding windows state their extent, and nothing else does."""
    for region in contract.cache.histories:
        slides = region.kind is HistoryKind.SLIDING_WINDOW
        if slides != (region.window_tokens > 0):
            raise refusal(
                f"cache.histories.{region.name}.window_tokens",
                f"does not suit {region.kind.name}",
                region.window_tokens,
                "give the window's tokens" if slides else "leave it 0",
            )


def compression_divides_pages(contract: PreparedContract) -> None:
    """Records fill pages evenly; recurrent state has no token records."""
    for region in contract.cache.histories:
        field = f"cache.histories.{region.name}.tokens_per_record"
        count = region.tokens_per_record
        if region.kind is HistoryKind.RECURRENT and count:
            raise refusal(field, "recurrent state has no token records", count, "leave it 0")
        if region.kind in PAGED and count == 0:
            raise refusal(field, "paged history needs it", count, "give 1 to store every token")
        if count and contract.cache.page_tokens % count:
            raise refusal(
                field,
                f"does not divide a page of {contract.cache.page_tokens} tokens",
                count,
                "choose a divisor",
            )


def planes_are_storage(contract: PreparedContract) -> None:
    """A plane is a buffer of the kind its history needs, with records of the size it states."""
    for region in contract.cache.histories:
        for plane in region.planes:
            buffer = _buffer_of(contract, region, plane)
            _check_records(contract, region, plane, buffer)


def _buffer_of(
    contract: PreparedContract, region: HistoryRegion, plane: CachePlane
) -> BufferDescriptor:
    field = f"cache.histories.{region.name}.planes.{plane.buffer}"
    buffer = contract.buffers.get(plane.buffer)
    if buffer is None:
        raise refusal(field, "there is no such buffer", plane.buffer, "declare it in the manifest")
    wanted = BufferKind.CACHE if region.kind in PAGED else BufferKind.STATE
    if buffer.kind is not wanted:
        raise refusal(field, f"must be a {wanted.name} buffer", buffer.kind.name, "change its kind")
    return buffer


def _check_records(
    contract: PreparedContract,
    region: HistoryRegion,
    plane: CachePlane,
    buffer: BufferDescriptor,
) -> None:
    field = f"cache.histories.{region.name}.planes.{plane.buffer}"
    shape, record = list(buffer.type.shape), buffer.type.dtype.nbytes
    inner = shape[1:]
    if region.tokens_per_record:
        records = contract.cache.page_tokens // region.tokens_per_record
        if len(shape) < 3 or shape[1] != records:
            raise refusal(
                field,
                f"must hold {records} records a row",
                str(buffer.type),
                f"shape it [rows, {records}, …]",
            )
        inner = shape[2:]
    for dim in inner:
        if isinstance(dim, str):
            raise refusal(field, "a record has a constant size", dim, "fix its length")
        record *= dim
    if plane.record_bytes != record:
        raise refusal(
            f"{field}.record_bytes",
            f"the buffer {buffer.type} says {record}",
            plane.record_bytes,
            f"give {record}",
        )


def planes_have_one_region(contract: PreparedContract) -> None:
    """No two regions share a plane, and every cache buffer belongs to one."""
    named = check_distinct(
        (p.buffer for h in contract.cache.histories for p in h.planes), "cache.histories", "plane"
    )
    for buffer in contract.buffers.values():
        if buffer.kind is BufferKind.CACHE and buffer.name not in named:
            raise refusal(
                f"manifest.buffers.{buffer.name}",
                "no history names this cache buffer",
                buffer.name,
                "add it to a history's planes",
            )


def page_tables_are_bound(contract: PreparedContract) -> None:
    """Page-table views name distinct destinations that graphs fill with page tables."""
    views = check_distinct(
        (t.destination for t in contract.cache.page_tables), "cache.page_tables", "destination"
    )
    bound = {
        b.destination
        for g in contract.graphs
        for b in g.bindings
        if b.source is ValueSource.PAGE_TABLE
    }
    for name in views:
        if name not in bound:
            raise refusal(
                f"cache.page_tables.{name}", "no graph binds it", name, "bind PAGE_TABLE to it"
            )
    for name in bound:
        if name not in views:
            raise refusal(
                f"cache.page_tables.{name}", "is not declared", name, "declare its page offset"
            )


def page_tables_cover_context(contract: PreparedContract) -> None:
    """A row of a page table has an entry for every page of a context, shifted within it."""
    pages = -(-contract.context_tokens // contract.cache.page_tokens)
    for view in contract.cache.page_tables:
        field = f"cache.page_tables.{view.destination}"
        shape = contract.transport[view.destination].type.shape
        entries = shape[1] if len(shape) == 2 else 0
        if not 0 <= view.page_offset <= pages:
            raise refusal(
                f"{field}.page_offset", "lies outside a context", view.page_offset, f"0 to {pages}"
            )
        if isinstance(entries, str) or entries < pages:
            raise refusal(
                field, f"must have {pages} entries a row", entries, "widen the destination"
            )


def paged_histories_have_tables(contract: PreparedContract) -> None:
    """Paged histories can be found: there is a page table."""
    paged = [h.name for h in contract.cache.histories if h.kind in PAGED]
    if paged and not contract.cache.page_tables:
        raise refusal("cache.page_tables", "paged history needs one", paged[0], "declare a view")


RULES = (
    regions_have_planes,
    windows_match_kinds,
    compression_divides_pages,
    planes_are_storage,
    planes_have_one_region,
    page_tables_are_bound,
    page_tables_cover_context,
    paged_histories_have_tables,
)
