"""Lowering: scheduled nodes become native steps with absolute addresses.

A step is a kind and its parameters by name; `native/src/steps/` reads them. A count is the name of
a dynamic extent, or a number.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from helios import _native
from helios.program.extents import ROWS, SAMPLED, TOKENS
from helios.program.ir import Dim, Op, Program, Ref
from helios.runtime.cpu.placement import Lifetime, Placement
from helios.runtime.cpu.regions import plain_values, quantised_regions, rope_key, rope_tables
from helios.runtime.cpu.schedule import Gated, Node, Quantise, Round, Schedule, Scheduled

Params = dict[str, Any]
Step = tuple[str, Params]

_FUNCTIONS = {"silu": 0, "gelu": 1, "gelu_tanh": 2}
_DYNAMIC = (ROWS, TOKENS, SAMPLED)


def lifetimes(plan: Schedule, lengths: Mapping[str, int]) -> tuple[Lifetime, ...]:
    """How long each value that needs memory must survive, in nodes of the schedule."""
    spans: dict[str, tuple[int, int, int]] = {}
    for index, value in plain_values(plan.nodes):
        root = plan.root(value)
        first = spans.get(root.name, (index, index, 0))[0]
        spans[root.name] = (first, index, root.type.nbytes(lengths))
    return tuple(
        Lifetime(name, nbytes, first, last) for name, (first, last, nbytes) in spans.items()
    )


def lower(
    program: Program,
    plan: Schedule,
    placement: Placement,
    lengths: Mapping[str, int],
    planes: int,
) -> list[Step]:
    """The native steps of a program. `lengths` has the capacity of every extent."""
    return _Lowering(program, plan, placement, lengths, planes).run()


class _Lowering:
    def __init__(
        self,
        program: Program,
        plan: Schedule,
        placement: Placement,
        lengths: Mapping[str, int],
        planes: int,
    ) -> None:
        self._program = program
        self._plan = plan
        self._placement = placement
        self._lengths = lengths
        self._planes = planes
        self._regions = quantised_regions(plan.nodes)
        self._tables = rope_tables(plan.nodes)
        self._tables_made: set[int] = set()
        self._steps: list[Step] = []

    def run(self) -> list[Step]:
        for node in self._plan.nodes:
            self._lower(node)
        return self._steps

    def _lower(self, node: Scheduled) -> None:
        if isinstance(node, Round):
            self._round(node)
        elif isinstance(node, Gated):
            self._gated(node)
        elif isinstance(node, Quantise):
            self._emit(
                "quantise",
                count=self._count(node.x),
                x=self._at(node.x),
                columns=self._inner(node.x),
                **self._region(node.x),
            )
        else:
            _RULES.get(node.op.kind, _Lowering._unknown)(self, node)

    # ---- words -------------------------------------------------------------------------------

    def _emit(self, kind: str, **params: Any) -> None:
        self._steps.append((kind, params))

    def _at(self, ref: Ref | None) -> int:
        return 0 if ref is None else self._placement.address(self._plan.root(ref))

    def _dim(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self._lengths[dim]

    def _count(self, ref: Ref) -> str | int:
        lead = ref.type.shape[0]
        return lead if isinstance(lead, str) and lead in _DYNAMIC else self._dim(lead)

    def _inner(self, ref: Ref) -> int:
        """Elements of one row of the leading dimension."""
        return prod(self._dim(d) for d in ref.type.shape[1:])

    def _bytes(self, ref: Ref) -> int:
        return self._inner(ref) * ref.type.dtype.nbytes

    def _rows(self, ref: Ref) -> int:
        return self._dim(ref.type.shape[0])

    def _region(self, ref: Ref) -> Params:
        return {"region": self._regions[ref], "planes": self._planes}

    def _unknown(self, node: Node) -> None:
        raise NotImplementedError(node.op.kind)

    # ---- matrix products ---------------------------------------------------------------------

    def _linear(
        self,
        x: Ref,
        ops: Sequence[Op],
        outs: Sequence[Ref | None],
        residuals: Sequence[Ref | None],
        integer: bool,
    ) -> Params:
        weights = [self._placement.weight(op.operands[1]) for op in ops]
        biases = [op.operands[2] if len(op.operands) > 2 else None for op in ops]
        params: Params = {
            "count": self._count(x),
            "columns": weights[0].columns,
            "weights": [w.address for w in weights],
            "layouts": [_native.layout_number(w.layout.upper()) for w in weights],
            "rows": [w.rows for w in weights],
            "biases": [self._at(b) for b in biases],
            "residuals": [self._at(r) for r in residuals],
            "outs": [self._at(o) for o in outs],
        }
        return params | (self._region(x) if integer else {"x": self._at(x)})

    def _round(self, node: Round) -> None:
        params = self._linear(
            node.x,
            [p.linear for p in node.products],
            [p.out for p in node.products],
            [p.residual for p in node.products],
            node.integer,
        )
        self._emit("linear", **params)

    def _gated(self, node: Gated) -> None:
        result = node.activation.results[0]
        params = self._linear(
            node.x,
            [node.gate, node.up],
            [result if node.plain else None, None],
            [None, None],
            node.integer,
        )
        params["gate"] = _FUNCTIONS[str(node.activation.attributes["function"])]
        if node.quantised:
            params["out_region"] = self._regions[result]
            params["planes"] = self._planes
        self._emit("linear", **params)

    # ---- packed layout -----------------------------------------------------------------------

    def _token_rows(self, node: Node) -> None:
        query_length, endpoints = _operands(node, 2)
        rows, positions = node.op.results
        self._emit(
            "token_rows",
            query_length=self._at(query_length),
            endpoints=self._at(endpoints),
            rows=self._at(rows),
            positions=self._at(positions),
            tokens=self._count(rows),
        )

    def _resolve_tokens(self, node: Node) -> None:
        self._named(node, "tokens", "rows", "pending")

    def _last_tokens(self, node: Node) -> None:
        self._named(node, "query_length", "sampled_rows")

    def _add_integers(self, node: Node) -> None:
        self._named(node, "left", "right")

    def _ones(self, node: Node) -> None:
        self._named(node, "like")

    def _named(self, node: Node, *names: str, **more: Any) -> None:
        """A step of the operation's own name whose operands keep their names."""
        result = node.op.results[0]
        operands = dict(zip(names, map(self._at, _operands(node, len(names))), strict=True))
        out = self._at(result) if node.plain else 0
        self._emit(node.op.kind, count=self._count(result), out=out, **operands, **more)

    def _gather(self, node: Node) -> None:
        source, index = _operands(node, 2)
        self._emit(
            "gather",
            count=self._count(node.op.results[0]),
            source=self._at(source),
            index=self._at(index),
            out=self._at(node.op.results[0]),
            bytes=self._bytes(source),
            source_count=self._count(source),
        )

    # ---- network -----------------------------------------------------------------------------

    def _embedding(self, node: Node) -> None:
        tokens, table = _operands(node, 2)
        weight = self._placement.weight(table)
        self._emit(
            "embedding",
            count=self._count(tokens),
            tokens=self._at(tokens),
            out=self._at(node.op.results[0]),
            weight=weight.address,
            layout=weight.layout.upper(),
            vocabulary=weight.rows,
            columns=weight.columns,
            scale=node.op.attributes["scale"],
        )

    def _rms_norm(self, node: Node) -> None:
        x = _operands(node, 2)[0]
        columns = self._dim(x.type.shape[-1])
        region = self._region(node.op.results[0]) if node.quantised else {}
        self._named(
            node,
            "x",
            "weight",
            columns=columns,
            repeat=self._inner(x) // columns,
            epsilon=node.op.attributes["epsilon"],
            **region,
        )

    def _rope(self, node: Node) -> None:
        x, positions, frequencies = _operands(node, 3)
        key = rope_key(node.op)
        table = self._tables[key]
        pairs = self._rows(frequencies)
        if table not in self._tables_made:
            self._tables_made.add(table)
            self._emit(
                "rope_table",
                count=self._count(x),
                positions=self._at(positions),
                frequencies=self._at(frequencies),
                pairs=pairs,
                magnitude=key[2],
                table=table,
            )
        _, heads, dim = x.type.shape
        self._emit(
            "rope",
            count=self._count(x),
            x=self._at(x),
            out=self._at(node.op.results[0]),
            heads=self._dim(heads),
            dim=self._dim(dim),
            pairs=pairs,
            interleaved=node.op.attributes["interleaved"],
            table=table,
        )

    def _heads(self, node: Node) -> None:
        """split_heads and merge_heads: a copy, unless the bytes already lie there."""
        (x,) = _operands(node, 1)
        result = node.op.results[0]
        offset = node.op.attributes.get("offset", 0)
        assert isinstance(offset, int)
        source, out = self._at(x) + offset * x.type.dtype.nbytes, self._at(result)
        if source == out and self._inner(x) == self._inner(result):
            return
        self._emit(
            "copy",
            count=self._count(result),
            source=source,
            source_pitch=self._bytes(x),
            out=out,
            bytes=self._bytes(result),
        )

    def _gated_activation(self, node: Node) -> None:
        function = _FUNCTIONS[str(node.op.attributes["function"])]
        self._named(node, "gate", "up", columns=self._inner(node.op.results[0]), function=function)

    def _add(self, node: Node) -> None:
        self._named(node, "left", "right", columns=self._inner(node.op.results[0]))

    def _scale(self, node: Node) -> None:
        columns = self._inner(node.op.results[0])
        self._named(node, "x", columns=columns, factor=node.op.attributes["factor"])

    def _softcap(self, node: Node) -> None:
        columns = self._inner(node.op.results[0])
        self._named(node, "x", columns=columns, factor=node.op.attributes["cap"])

    # ---- attention ---------------------------------------------------------------------------

    def _paging(self, table: Ref, plane: Ref) -> Params:
        pages, page_tokens, _, _ = plane.type.shape
        return {
            "page_table": self._at(table),
            "table_rows": self._rows(table),
            "table_columns": self._inner(table),
            "pages": self._dim(pages),
            "page_tokens": self._dim(page_tokens),
            "dtype": int(plane.type.dtype),
        }

    def _cache_write(self, node: Node) -> None:
        x, rows, positions, slots, table, plane = _operands(node, 6)
        self._emit(
            "cache_write",
            count=self._count(x),
            x=self._at(x),
            rows=self._at(rows),
            positions=self._at(positions),
            slots=self._at(slots),
            plane=self._at(plane),
            width=self._inner(x),
            **self._paging(table, plane),
        )

    def _paged_attention(self, node: Node) -> None:
        q, rows, positions, slots, table, keys, values = _operands(node, 7)
        sinks = node.op.operands[7] if len(node.op.operands) > 7 else None
        result = node.op.results[0]
        _, heads, dim = q.type.shape
        attributes = node.op.attributes
        self._emit(
            "paged_attention",
            count=self._count(q),
            q=self._at(q),
            rows=self._at(rows),
            positions=self._at(positions),
            slots=self._at(slots),
            keys=self._at(keys),
            values=self._at(values),
            sinks=self._at(sinks),
            out=self._at(result) if node.plain else 0,
            heads=self._dim(heads),
            key_heads=self._dim(keys.type.shape[2]),
            dim=self._dim(dim),
            scale=attributes["scale"],
            window=attributes["window"],
            softcap=attributes["softcap"],
            **self._paging(table, keys),
            **(self._region(result) if node.quantised else {}),
        )

    # ---- sampling ----------------------------------------------------------------------------

    def _process_logits(self, node: Node) -> None:
        operands = _operands(node, 12)
        self._named(
            node,
            "logits",
            "slots",
            "prompt_histogram",
            "output_histogram",
            "repetition",
            "presence",
            "frequency",
            "bias_tokens",
            "bias_values",
            "minimum_output",
            "output_count",
            "eos_tokens",
            vocabulary=self._inner(operands[0]),
            biases=self._inner(operands[7]),
            eos_count=self._inner(operands[11]),
            state_rows=self._rows(operands[2]),
        )

    def _mask_logits(self, node: Node) -> None:
        operands = _operands(node, 4)
        names = ("logits", "sampled_rows", "mask", "active")
        self._named(
            node, *names, vocabulary=self._inner(operands[0]), words=self._inner(operands[2])
        )

    def _sample(self, node: Node) -> None:
        names = ("logits", "temperature", "top_k", "top_p", "min_p", "seed", "position")
        self._named(node, *names, vocabulary=self._inner(_operands(node, 7)[0]))

    def _log_probability(self, node: Node) -> None:
        self._named(node, "logits", "tokens", vocabulary=self._inner(_operands(node, 2)[0]))

    def _top_log_probabilities(self, node: Node) -> None:
        logits, count = _operands(node, 2)
        tokens, values = node.op.results
        self._emit(
            "top_log_probabilities",
            count=self._count(logits),
            logits=self._at(logits),
            wanted=self._at(count),
            tokens=self._at(tokens),
            values=self._at(values),
            vocabulary=self._inner(logits),
            maximum=node.op.attributes["maximum"],
        )

    # ---- state -------------------------------------------------------------------------------

    def _state_write(self, node: Node) -> None:
        state, rows = _operands(node, 2)
        value = node.op.operands[2] if len(node.op.operands) > 2 else None
        self._emit(
            "state_write",
            count=self._count(rows),
            state=self._at(state),
            rows=self._at(rows),
            value=self._at(value),
            bytes=self._bytes(state),
            state_rows=self._rows(state),
        )

    def _state_add(self, node: Node) -> None:
        state, rows, value = _operands(node, 3)
        self._emit(
            "state_add",
            count=self._count(rows),
            state=self._at(state),
            rows=self._at(rows),
            value=self._at(value),
            state_rows=self._rows(state),
            columns=1,
        )

    def _histogram_add(self, node: Node) -> None:
        histogram, rows, tokens = _operands(node, 3)
        self._emit(
            "state_add",
            count=self._count(rows),
            state=self._at(histogram),
            rows=self._at(rows),
            column=self._at(tokens),
            state_rows=self._rows(histogram),
            columns=self._inner(histogram),
        )

    def _current_page(self, node: Node) -> None:
        slots, endpoints, selector, table = _operands(node, 4)
        self._emit(
            "current_page",
            count=self._count(slots),
            slots=self._at(slots),
            endpoints=self._at(endpoints),
            selector=self._at(selector),
            page_table=self._at(table),
            out=self._at(node.op.results[0]),
            table_rows=self._rows(table),
            table_columns=self._inner(table),
            page_tokens=node.op.attributes["page_tokens"],
        )

    def _page_copy(self, source: Ref, from_row: Ref, target: Ref, to_row: Ref) -> None:
        self._emit(
            "page_copy",
            count=self._count(from_row),
            **{"from": self._at(source)},
            to=self._at(target),
            from_row=self._at(from_row),
            to_row=self._at(to_row),
            from_rows=self._rows(source),
            to_rows=self._rows(target),
            bytes=self._bytes(source),
        )

    def _page_save(self, node: Node) -> None:
        plane, page, continuation, row = _operands(node, 4)
        self._page_copy(plane, page, continuation, row)

    def _page_load(self, node: Node) -> None:
        continuation, row, plane, page = _operands(node, 4)
        self._page_copy(continuation, row, plane, page)

    def _store(self, node: Node) -> None:
        value, record = _operands(node, 2)
        self._emit(
            "copy",
            count=self._count(value),
            source=self._at(value),
            source_pitch=self._bytes(value),
            out=self._at(record),
            bytes=self._bytes(value),
        )


def _operands(node: Node, count: int) -> tuple[Ref, ...]:
    """The first `count` operands, none of which may be absent."""
    found = node.op.operands[:count]
    return tuple(ref for ref in found if ref is not None)


_RULES: Mapping[str, Callable[[_Lowering, Node], None]] = {
    "token_rows": _Lowering._token_rows,
    "resolve_tokens": _Lowering._resolve_tokens,
    "last_tokens": _Lowering._last_tokens,
    "gather": _Lowering._gather,
    "add_integers": _Lowering._add_integers,
    "ones": _Lowering._ones,
    "embedding": _Lowering._embedding,
    "rms_norm": _Lowering._rms_norm,
    "rope": _Lowering._rope,
    "split_heads": _Lowering._heads,
    "merge_heads": _Lowering._heads,
    "gated_activation": _Lowering._gated_activation,
    "add": _Lowering._add,
    "scale": _Lowering._scale,
    "softcap": _Lowering._softcap,
    "cache_write": _Lowering._cache_write,
    "paged_attention": _Lowering._paged_attention,
    "process_logits": _Lowering._process_logits,
    "mask_logits": _Lowering._mask_logits,
    "sample": _Lowering._sample,
    "log_probability": _Lowering._log_probability,
    "top_log_probabilities": _Lowering._top_log_probabilities,
    "state_read": _Lowering._gather,
    "state_write": _Lowering._state_write,
    "state_clear": _Lowering._state_write,
    "state_add": _Lowering._state_add,
    "histogram_add": _Lowering._histogram_add,
    "current_page": _Lowering._current_page,
    "page_save": _Lowering._page_save,
    "page_load": _Lowering._page_load,
    "store": _Lowering._store,
}

SUPPORTED = frozenset({"linear", *_RULES})
"""Operations that can be lowered."""
