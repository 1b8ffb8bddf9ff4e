"""Rules of value bindings: destination, source, index, type, shape, constants."""

from collections.abc import Iterator

from helios.contract.kinds import IndexKind, ValueSource
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedContract, PreparedGraph, ValueBinding
from helios.contract.reading import check_distinct, refusal
from helios.contract.sources import CONSUMERS, COPIED_PROPOSALS, IMAGE_SOURCES, SOURCES, Tail
from helios.contract.tensor import Dim, DType, TensorType

_INTEGER_RANGE = {
    DType.I32: (-(1 << 31), (1 << 31) - 1),
    DType.I64: (-(1 << 63), (1 << 63) - 1),
    DType.U32: (0, (1 << 32) - 1),
    DType.U64: (0, (1 << 63) - 1),
    DType.U8: (0, 255),
}


def _bindings(contract: PreparedContract) -> Iterator[tuple[PreparedGraph, ValueBinding, str]]:
    for graph in contract.graphs:
        for binding in graph.bindings:
            yield graph, binding, f"graphs.{graph.program}.bindings.{binding.destination}"


def _type(contract: PreparedContract, binding: ValueBinding) -> TensorType:
    return contract.transport[binding.destination].type


def destinations_exist(contract: PreparedContract) -> None:
    """A binding fills a transport destination of the manifest."""
    for _, binding, field in _bindings(contract):
        if binding.destination not in contract.transport:
            raise refusal(
                f"{field}.destination",
                "there is no such transport destination",
                binding.destination,
                "declare it in the manifest",
            )


def destinations_are_filled_once(contract: PreparedContract) -> None:
    """No two bindings of one graph fill the same destination."""
    for graph in contract.graphs:
        check_distinct(
            (b.destination for b in graph.bindings),
            f"graphs.{graph.program}.bindings",
            "destination",
        )


def sources_suit_operations(contract: PreparedContract) -> None:
    """A source belongs to an operation that has such a value."""
    for graph, binding, field in _bindings(contract):
        if graph.operation not in SOURCES[binding.source].operations:
            raise refusal(
                f"{field}.source",
                f"{graph.operation.name} has no such value",
                binding.source.name,
                "remove the binding",
            )


def indices_suit_sources(contract: PreparedContract) -> None:
    """A source is addressed in a way that it has entries for."""
    for _, binding, field in _bindings(contract):
        allowed = SOURCES[binding.source].indices
        if binding.index not in allowed:
            raise refusal(
                f"{field}.index",
                f"does not suit {binding.source.name}",
                binding.index.name,
                f"use one of {', '.join(sorted(i.name for i in allowed))}",
            )


def types_suit_sources(contract: PreparedContract) -> None:
    """A destination has an element type that holds its source exactly."""
    for _, binding, field in _bindings(contract):
        allowed, dtype = SOURCES[binding.source].dtypes, _type(contract, binding).dtype
        if dtype not in allowed:
            raise refusal(
                field,
                f"can't hold {binding.source.name}",
                dtype.text,
                f"use {', '.join(sorted(d.text for d in allowed))}",
            )


def shapes_suit_sources(contract: PreparedContract) -> None:
    """After the dimension that the index runs over, a destination has what its source supplies."""
    for _, binding, field in _bindings(contract):
        shape = _type(contract, binding).shape
        scalar = binding.index is IndexKind.SCALAR
        tail = shape if scalar else shape[1:]
        wanted = SOURCES[binding.source].tail
        if scalar and wanted is Tail.NONE and shape == (1,):
            continue
        if (not scalar and not shape) or not _suits(tail, wanted, contract):
            raise refusal(
                field,
                f"{binding.source.name} supplies {wanted.value}",
                str(_type(contract, binding)),
                "reshape the destination",
            )


def _suits(tail: tuple[Dim, ...], wanted: Tail, contract: PreparedContract) -> bool:
    words = -(-contract.vocabulary // 32)
    if wanted is Tail.VOCABULARY:
        return tail == (contract.vocabulary,)
    if wanted is Tail.WORDS:
        return tail == (words,)
    if wanted is Tail.LIST_OF_WORDS and tail[-1:] != (words,):
        return False
    return all(isinstance(d, int) for d in tail) and len(tail) in _TAIL_RANKS[wanted]


_TAIL_RANKS = {
    Tail.NONE: (0,),
    Tail.LIST: (1,),
    Tail.LIST_OF_WORDS: (2,),
    Tail.PAGES: (1,),
    Tail.AXES: (0, 1),
    Tail.ANY: range(8),
}


def constants_suit_sources(contract: PreparedContract) -> None:
    """Only CONSTANT carries integers, and it carries some that its destination holds."""
    for _, binding, field in _bindings(contract):
        constant = binding.source is ValueSource.CONSTANT
        if constant != bool(binding.constants):
            raise refusal(
                f"{field}.constants",
                f"do not suit {binding.source.name}",
                list(binding.constants),
                "give at least one" if constant else "leave them out",
            )
        for value in binding.constants:
            _check_fits(contract, binding, value, f"{field}.constants")


def image_tensors_are_named(contract: PreparedContract) -> None:
    """Only IMAGE_TENSOR names an output of the image layout, and it names one."""
    for _, binding, field in _bindings(contract):
        image = binding.source is ValueSource.IMAGE_TENSOR
        if image != bool(binding.image_tensor):
            raise refusal(
                f"{field}.image_tensor",
                f"does not suit {binding.source.name}",
                binding.image_tensor,
                "name the layout's output" if image else "leave it out",
            )


def images_need_vision(contract: PreparedContract) -> None:
    """Image values belong to a model with a vision contract."""
    for _, binding, field in _bindings(contract):
        if binding.source in IMAGE_SOURCES and contract.vision is None:
            raise refusal(
                f"{field}.source", "the model has no vision", binding.source.name, "declare it"
            )


def offsets_and_padding_fit(contract: PreparedContract) -> None:
    """Offset and padding fit the element type; floats have no offset."""
    for _, binding, field in _bindings(contract):
        _check_fits(contract, binding, binding.padding, f"{field}.padding")
        if binding.offset and _type(contract, binding).dtype not in _INTEGER_RANGE:
            raise refusal(
                f"{field}.offset", "only integers take an offset", binding.offset, "leave it 0"
            )
        if binding.offset:
            _check_fits(contract, binding, abs(binding.offset), f"{field}.offset")


def _check_fits(contract: PreparedContract, binding: ValueBinding, value: int, field: str) -> None:
    dtype = _type(contract, binding).dtype
    low, high = _INTEGER_RANGE.get(dtype, (-(1 << 24), 1 << 24))
    if not low <= value <= high:
        raise refusal(field, f"does not fit {dtype.text}", value, f"give {low} to {high}")


def physical_rows_are_retained(contract: PreparedContract) -> None:
    """What is addressed by slot keeps the bytes of the slots that a step leaves out."""
    for _, binding, field in _bindings(contract):
        retained = contract.transport[binding.destination].retained
        if binding.index is IndexKind.PHYSICAL_ROW and not retained:
            raise refusal(
                f"{field}.index",
                "addresses a destination that is not retained",
                binding.index.name,
                "retain it in the manifest",
            )


def lanes_are_identified(contract: PreparedContract) -> None:
    """Every graph knows the slot and generation of its lanes."""
    for graph in contract.graphs:
        for source in (ValueSource.SLOT, ValueSource.GENERATION):
            _require(graph, source)


_NEEDS = {
    Operation.PREFILL: (ValueSource.PROMPT_TOKENS,),
    Operation.MIXED: (ValueSource.PROMPT_TOKENS,),
    Operation.SCORED_PREFILL: (ValueSource.PROMPT_TOKENS, ValueSource.SCORED_TARGET_TOKENS),
    Operation.RESTORE: (ValueSource.RESTORE_SOURCE,),
}


def operations_have_inputs(contract: PreparedContract) -> None:
    """An operation binds the values that make it what it is."""
    for graph in contract.graphs:
        for source in _NEEDS.get(graph.operation, ()):
            _require(graph, source)


def _require(graph: PreparedGraph, source: ValueSource) -> None:
    if not any(b.source is source for b in graph.bindings):
        raise refusal(
            f"graphs.{graph.program}.bindings",
            f"{graph.operation.name} needs {source.name}",
            [b.source.name for b in graph.bindings],
            f"bind {source.name}",
        )


def lengths_have_one_source(contract: PreparedContract) -> None:
    """Exactly one source says how many tokens a lane consumes.

    QUERY_LENGTH is exact and the host's; in SPECULATIVE, SPECULATIVE_PREFIX_LIMIT may stand in its
    place, a ceiling below which the program decides. DECODE may omit it: it is one token.
    """
    for graph in contract.graphs:
        lengths = [b.source.name for b in graph.bindings if b.source in _LENGTHS]
        least = 1 if graph.operation in CONSUMERS - {Operation.DECODE} else 0
        if not least <= len(lengths) <= 1:
            raise refusal(
                f"graphs.{graph.program}.bindings",
                f"{graph.operation.name} takes its lengths from one source",
                lengths,
                "bind either QUERY_LENGTH or, in SPECULATIVE, SPECULATIVE_PREFIX_LIMIT",
            )


_LENGTHS = (ValueSource.QUERY_LENGTH, ValueSource.SPECULATIVE_PREFIX_LIMIT)


def proposals_are_complete(contract: PreparedContract) -> None:
    """Copied proposals come with their count, generation and endpoint, or not at all."""
    for graph in contract.graphs:
        bound = {b.source for b in graph.bindings}
        proposals = {*COPIED_PROPOSALS, ValueSource.PROPOSAL_GRAMMAR_MASK}
        if bound & proposals and not bound.issuperset(COPIED_PROPOSALS):
            raise refusal(
                f"graphs.{graph.program}.bindings",
                "copied proposals are incomplete",
                sorted(s.name for s in bound & proposals),
                f"bind all of {', '.join(s.name for s in COPIED_PROPOSALS)}",
            )


def biases_are_paired(contract: PreparedContract) -> None:
    """Biased tokens and their biases are bound together and are equally many."""
    for graph in contract.graphs:
        widths = {
            b.source: _type(contract, b).shape[1]
            for b in graph.bindings
            if b.source in (ValueSource.LOGIT_BIAS_TOKENS, ValueSource.LOGIT_BIAS_VALUES)
        }
        if widths and (len(widths) != 2 or len(set(widths.values())) != 1):
            raise refusal(
                f"graphs.{graph.program}.bindings",
                "logit biases are not paired",
                {s.name: w for s, w in widths.items()},
                "bind tokens and values of one width",
            )


def pending_destination_is_bound(contract: PreparedContract) -> None:
    """A host-owned pending token names the destination of a PENDING_TOKEN binding."""
    for graph in contract.graphs:
        name = graph.pending_destination
        bound = {b.destination for b in graph.bindings if b.source is ValueSource.PENDING_TOKEN}
        if name is not None and name not in bound:
            raise refusal(
                f"graphs.{graph.program}.pending_destination",
                "no PENDING_TOKEN binding fills it",
                name,
                "bind PENDING_TOKEN to it",
            )


def eos_tokens_fit(contract: PreparedContract) -> None:
    """A destination of end tokens holds all that the contract names."""
    for _, binding, field in _bindings(contract):
        if binding.source is not ValueSource.EOS_TOKENS:
            continue
        room, count = _type(contract, binding).shape[1], len(contract.frontend.eos_tokens)
        if isinstance(room, int) and room < count:
            raise refusal(field, f"{count} end tokens do not fit", room, "widen the destination")


RULES = (
    destinations_exist,
    destinations_are_filled_once,
    sources_suit_operations,
    indices_suit_sources,
    types_suit_sources,
    shapes_suit_sources,
    constants_suit_sources,
    image_tensors_are_named,
    images_need_vision,
    offsets_and_padding_fit,
    physical_rows_are_retained,
    lanes_are_identified,
    operations_have_inputs,
    lengths_have_one_source,
    proposals_are_complete,
    biases_are_paired,
    pending_destination_is_bound,
    eos_tokens_fit,
)
