"""What does not decode: versions, selections, names, tables, catalogs."""

from contract_cases import Case, access, binding, buffer, completion, graph, history, program, view

from helios.schema import contract_pb2 as pb
from helios.schema import manifest_pb2, program_pb2


def version(number: int, *cleared: str) -> object:
    def apply(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest) -> None:
        c.model.version = number
        for name in cleared:
            for item in c.model.graphs:
                item.ClearField(name)

    return apply


NEWER = ("draft_tokens", "packed_token_capacity", "confidence_width")

VERSIONS = [
    Case("check_version", "model.version", version(0)),
    Case("check_version", "model.version", version(4)),
    Case("check_version", "tuned_bindings", version(1, *NEWER)),
    *(Case("check_version", name, version(2, *(n for n in NEWER if n != name))) for name in NEWER),
]

CATALOGS = [
    Case(
        "check_operation_agrees",
        "decode.operation",
        lambda c, m: setattr(graph(c, "decode"), "operation", program_pb2.OPERATION_PREFILL),
    ),
    Case(
        "check_operation_agrees",
        "decode.operation",
        lambda c, m: setattr(graph(c, "decode"), "operation", program_pb2.OPERATION_TUNING),
    ),
    Case(
        "check_tuned_agrees",
        "prefill.tuned_bindings",
        lambda c, m: graph(c, "prefill").ClearField("tuned_bindings"),
    ),
    Case(
        "check_tuned_agrees",
        "prefill.tuned_bindings",
        lambda c, m: setattr(program(m, "prefill").tuned_inputs[0], "buffer", "tuned.splits"),
    ),
    Case("_graph", "program", lambda c, m: setattr(graph(c, "decode"), "program", "decode.other")),
    Case("_graphs", "manifest.programs.decode", lambda c, m: ungraph(c, "decode")),
    Case(
        "_entry",
        "decode.operation",
        lambda c, m: setattr(program(m, "decode"), "operation", program_pb2.OPERATION_TUNING),
    ),
    Case(
        "_entry",
        "decode.tuned_outputs",
        lambda c, m: program(m, "decode").tuned_outputs.append("tuned.tiles"),
    ),
    Case(
        "_tuning",
        "tune.operation",
        lambda c, m: setattr(m.tuning[0], "operation", program_pb2.OPERATION_DECODE),
    ),
    Case(
        "_tuning",
        "tune",
        lambda c, m: m.tuning[0].completion.add(
            field=manifest_pb2.COMPLETION_FIELD_SLOT, buffer="completion.slot"
        ),
    ),
    Case("check_catalogs_apart", "tuning.decode", lambda c, m: also_tunes(m)),
    Case(
        "check_one_namespace",
        "buffers.keys",
        lambda c, m: setattr(m.transport[0], "name", "keys"),
    ),
    Case(
        "check_one_namespace",
        "buffers.slot",
        lambda c, m: buffer(m, "slot").type.shape.add(constant=1),
    ),
]


def ungraph(c: pb.ServingContract, name: str) -> None:
    c.model.graphs.remove(graph(c, name))


def also_tunes(m: manifest_pb2.ExecutionManifest) -> None:
    m.tuning[0].name = "decode"


SELECTIONS = [
    Case("select", "slot.source", lambda c, m: binding(c, "decode", "slot").ClearField("source")),
    Case("select", "slot.index", lambda c, m: binding(c, "decode", "slot").ClearField("index")),
    Case("select", "operation", lambda c, m: graph(c, "decode").ClearField("operation")),
    Case("_accesses", "access", lambda c, m: access(c, "decode", "pending").ClearField("access")),
    Case("select", "full.kind", lambda c, m: history(c, "full").ClearField("kind")),
    Case("select", "completion", lambda c, m: completion(m, "decode", "SLOT").ClearField("field")),
    Case("select", "keys.kind", lambda c, m: buffer(m, "keys").ClearField("kind")),
    Case("select", "dtype", lambda c, m: buffer(m, "keys").type.ClearField("dtype")),
    Case("select", "storage", lambda c, m: m.weights[0].ClearField("storage")),
    Case("select", "operation", lambda c, m: program(m, "decode").ClearField("operation")),
    Case("select", "operation", lambda c, m: m.tuning[0].ClearField("operation")),
    *(
        Case(
            "select",
            f"frontend.{name}",
            lambda c, m, name=name: c.model.frontend.ClearField(name),
        )
        for name in ("tool_parser", "reasoning_parser", "image_preparation", "image_layout")
    ),
    *(
        Case(
            "select",
            f"tool_syntax.{name}",
            lambda c, m, name=name: c.model.frontend.tool_syntax.ClearField(name),
        )
        for name in ("typing", "parallel")
    ),
]

NAMES = [
    Case("table", "graphs.decode", lambda c, m: c.model.graphs.append(graph(c, "decode"))),
    Case(
        "table", "state_views.pending", lambda c, m: c.model.state_views.append(view(c, "pending"))
    ),
    Case("table", "manifest.buffers.keys", lambda c, m: m.buffers.append(buffer(m, "keys"))),
    Case("table", "weights.norm", lambda c, m: m.weights.append(m.weights[1])),
    Case(
        "table",
        "cache.histories.full",
        lambda c, m: c.model.cache.histories.append(history(c, "full")),
    ),
    Case("check_name", "manifest.weights.name", lambda c, m: setattr(m.weights[0], "name", "a b")),
    Case("check_name", "resource", lambda c, m: program(m, "decode").ClearField("resource")),
    Case(
        "check_name",
        "state_views.name",
        lambda c, m: setattr(view(c, "saved"), "name", "n" * 257),
    ),
    Case("check_distinct", "resources", lambda c, m: twice(graph(c, "decode").resources)),
    Case(
        "check_distinct",
        "state",
        lambda c, m: graph(c, "decode").state.append(graph(c, "decode").state[0]),
    ),
    Case(
        "_completion",
        "completion",
        lambda c, m: setattr(
            completion(m, "decode", "SLOT"), "field", manifest_pb2.COMPLETION_FIELD_TOKENS
        ),
    ),
    Case(
        "check_distinct",
        "completion",
        lambda c, m: setattr(completion(m, "decode", "SLOT"), "buffer", "completion.tokens"),
    ),
    Case(
        "_template_tokens",
        "template_tokens",
        lambda c, m: c.model.frontend.template_tokens.add(name="bos_token"),
    ),
    Case(
        "_resolve",
        "decode.pending_view",
        lambda c, m: setattr(graph(c, "decode"), "pending_view", "nowhere"),
    ),
    Case(
        "_resolve",
        "decode.state",
        lambda c, m: setattr(access(c, "decode", "pending"), "view", "nowhere"),
    ),
    Case(
        "_resolve",
        "draft_cursor",
        lambda c, m: setattr(graph(c, "speculative.3").draft_cursor, "view", "nowhere"),
    ),
    Case("_dim", "keys.type.shape", lambda c, m: buffer(m, "keys").type.shape[1].Clear()),
    Case(
        "_dim",
        "keys.type.shape",
        lambda c, m: setattr(buffer(m, "keys").type.shape[1], "constant", 0),
    ),
]


def twice(items: list[str]) -> None:
    items.append(items[0])


LIMITS = [
    Case("check_counts", "contract.aliases", lambda c, m: c.aliases.extend(map(str, range(65)))),
    Case(
        "check_counts",
        "decode.bindings",
        lambda c, m: graph(c, "decode").bindings.extend([pb.ValueBinding()] * 513),
    ),
    Case(
        "check_counts",
        "manifest.tuning",
        lambda c, m: m.tuning.extend([manifest_pb2.ProgramDescriptor()] * 4097),
    ),
]

CASES = [*VERSIONS, *CATALOGS, *SELECTIONS, *NAMES, *LIMITS]
