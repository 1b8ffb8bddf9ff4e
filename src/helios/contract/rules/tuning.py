"""Rules of tuned bindings: storage that tuning programs fill once, before serving begins."""

from helios.contract.kinds import Access
from helios.contract.prepared import PreparedContract, TunedBinding
from helios.contract.reading import refusal
from helios.contract.tensor import BufferKind


def outputs_do_not_overlap(contract: PreparedContract) -> None:
    """What a tuning program fills is no request input, no writable state and no cache."""
    cached = {p.buffer for h in contract.cache.histories for p in h.planes}
    written = {a.view.buffer for g in contract.graphs for a in g.state if a.access & Access.WRITE}
    completed = {name for g in contract.graphs for name in g.completion.values()}
    occupied = (
        (contract.transport, "a request input"),
        (written, "writable state"),
        (cached, "cache storage"),
        (completed, "a completion record"),
    )
    for program in contract.tuning.values():
        for name in program.outputs:
            for names, what in occupied:
                if name in names:
                    raise refusal(
                        f"manifest.tuning.{program.program}.tuned_outputs",
                        f"overlaps {what}",
                        name,
                        "fill a TUNED buffer",
                    )


def outputs_are_tuned_buffers(contract: PreparedContract) -> None:
    """A tuning program fills registered TUNED buffers, each filled by one program."""
    producers: dict[str, str] = {}
    for program in contract.tuning.values():
        field = f"manifest.tuning.{program.program}.tuned_outputs"
        if not program.outputs:
            raise refusal(field, "a tuning program fills something", 0, "name its buffers")
        for name in program.outputs:
            buffer = contract.buffers.get(name)
            if buffer is None or buffer.kind is not BufferKind.TUNED:
                raise refusal(field, "is no TUNED buffer", name, "declare it in the manifest")
            if name in producers:
                raise refusal(
                    field, f"{producers[name]} fills it too", name, "let one program fill it"
                )
            producers[name] = program.program


def producers_are_cataloged(contract: PreparedContract) -> None:
    """A binding names a producer of the tuning catalog that fills its buffer."""
    for graph in contract.graphs:
        for binding in graph.tuned:
            _check(contract, binding, f"graphs.{graph.program}.tuned_bindings.{binding.buffer}")


def _check(contract: PreparedContract, binding: TunedBinding, field: str) -> None:
    producer = contract.tuning.get(binding.producer)
    if producer is None:
        raise refusal(
            f"{field}.producer",
            "is not in the tuning catalog",
            binding.producer,
            "add it there",
        )
    if binding.buffer not in producer.outputs:
        raise refusal(
            f"{field}.buffer",
            f"{binding.producer} does not fill it",
            binding.buffer,
            f"bind one of {list(producer.outputs)}",
        )


RULES = (outputs_do_not_overlap, outputs_are_tuned_buffers, producers_are_cataloged)
