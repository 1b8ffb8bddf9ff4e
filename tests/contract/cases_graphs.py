"""Broken graphs: extents, bindings, state, completion, tuning."""

from contract_cases import (
    Case,
    access,
    binding,
    buffer,
    complete,
    completion,
    graph,
    program,
    transport,
    unbind,
    uncomplete,
    view,
)
from contract_examples import (
    DRAFTS,
    F32,
    I32,
    SCALAR,
    SLOTS,
    SUBMISSION,
    U32,
    VOCABULARY,
    WORDS,
    tensor,
)

from helios.schema import contract_pb2 as pb
from helios.schema import manifest_pb2

READ, WRITE, BOTH = pb.ACCESS_READ, pb.ACCESS_WRITE, pb.ACCESS_READ_WRITE


def extent(rule: str, name: str, field: str, value: int) -> Case:
    return Case(rule, f"graphs.{name}.{field}", lambda c, m: setattr(graph(c, name), field, value))


EXTENTS = [
    extent("rows_fit_slots", "decode", "batch_capacity", 0),
    extent("rows_fit_slots", "decode", "batch_capacity", SLOTS + 1),
    extent("widths_suit_operations", "initialize", "token_capacity", 1),
    extent("widths_suit_operations", "decode", "token_capacity", 2),
    extent("widths_suit_operations", "prefill", "token_capacity", 0),
    extent("widths_suit_operations", "prefill", "token_capacity", 65),
    extent("packed_tokens_fit_rows", "prefill", "packed_token_capacity", 65),
    extent("packed_tokens_fit_rows", "scored_prefill", "packed_token_capacity", 0),
    extent("packed_tokens_fit_rows", "speculative.3", "packed_token_capacity", 13),
    extent("packed_tokens_fit_rows", "speculative.3", "packed_token_capacity", 3),
    extent("packed_tokens_fit_rows", "mixed", "packed_token_capacity", 3),
    extent("drafts_suit_widths", "decode", "draft_tokens", 1),
    extent("drafts_suit_widths", "speculative.1", "draft_tokens", 1),
    extent("drafts_suit_widths", "speculative.3", "draft_tokens", 0),
    extent("drafts_suit_widths", "speculative.3", "draft_tokens", DRAFTS + 1),
    extent("confidence_is_of_drafts", "speculative.4", "confidence_width", DRAFTS - 1),
    extent("confidence_is_of_drafts", "speculative.3", "confidence_width", 2),
    Case(
        "confidence_is_of_drafts",
        "completion.confidence",
        lambda c, m: buffer(m, "completion.confidence").type.CopyFrom(tensor(F32, SLOTS, DRAFTS)),
    ),
    Case(
        "device_allocation_has_confidence",
        "speculative.4.confidence_width",
        lambda c, m: unconfident(c, m),
    ),
    Case("speculative_widths_are_captured", "widths", lambda c, m: c.speculative_widths.pop()),
    Case("speculative_widths_are_captured", "widths", lambda c, m: c.speculative_widths.append(4)),
    Case("speculative_widths_are_captured", "widths", lambda c, m: c.speculative_widths.reverse()),
]


def unconfident(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest) -> None:
    graph(c, "speculative.4").confidence_width = 0
    uncomplete(m, "speculative.4", "CONFIDENCE")


def bound(rule: str, name: str, destination: str, field: str, /, **values: object) -> Case:
    def apply(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest) -> None:
        for key, value in values.items():
            setattr(binding(c, name, destination), key, value)

    return Case(rule, field, apply)


def reshaped(rule: str, destination: str, dtype: int, *shape: int | str) -> Case:
    return Case(
        rule,
        f"bindings.{destination}",
        lambda c, m: transport(m, destination).type.CopyFrom(tensor(dtype, *shape)),
    )


BINDINGS = [
    bound("destinations_exist", "decode", "slot", "destination", destination="nowhere"),
    bound("destinations_are_filled_once", "decode", "slot", "bindings", destination="generation"),
    bound(
        "sources_suit_operations",
        "decode",
        "sampling_decision",
        "source",
        source=pb.VALUE_SOURCE_RESTORE_SOURCE,
    ),
    bound(
        "sources_suit_operations",
        "prefill",
        "prompt_tokens",
        "source",
        source=pb.VALUE_SOURCE_PROPOSAL_COUNT,
    ),
    bound("indices_suit_sources", "decode", "slot", "slot.index", index=SCALAR),
    bound("indices_suit_sources", "decode", "page_table", "page_table.index", index=SUBMISSION),
    reshaped("types_suit_sources", "generation", F32, "B"),
    reshaped("types_suit_sources", "seed", I32, "B"),
    reshaped("shapes_suit_sources", "generation", I32, "B", 1),
    reshaped("shapes_suit_sources", "generation", I32),
    reshaped("shapes_suit_sources", "live_rows", I32, 2),
    reshaped("shapes_suit_sources", "eos_tokens", I32, "B"),
    reshaped("shapes_suit_sources", "prompt_histogram", I32, "B", VOCABULARY - 1),
    reshaped("shapes_suit_sources", "grammar_mask", U32, "B", WORDS + 1),
    reshaped("shapes_suit_sources", "proposal_grammar_mask", U32, "B", DRAFTS, WORDS - 1),
    reshaped("shapes_suit_sources", "page_table", I32, "R", "M"),
    reshaped("shapes_suit_sources", "prompt_positions", I32, "T", 3, 3),
    reshaped("shapes_suit_sources", "image_tensor", F32, "X", 12),
    Case(
        "constants_suit_sources",
        "slot.constants",
        lambda c, m: binding(c, "decode", "slot").constants.append(1),
    ),
    Case(
        "constants_suit_sources",
        "constant.constants",
        lambda c, m: binding(c, "initialize", "constant").ClearField("constants"),
    ),
    Case(
        "constants_suit_sources",
        "constant.constants",
        lambda c, m: binding(c, "initialize", "constant").constants.append(1 << 31),
    ),
    bound("image_tensors_are_named", "prefill", "image_tensor", "image_tensor", image_tensor=""),
    bound("image_tensors_are_named", "prefill", "slot", "slot.image_tensor", image_tensor="x"),
    Case("images_need_vision", "source", lambda c, m: c.model.ClearField("vision")),
    bound("offsets_and_padding_fit", "decode", "slot", "slot.padding", padding=1 << 31),
    bound("offsets_and_padding_fit", "decode", "slot", "slot.offset", offset=1 << 31),
    bound("offsets_and_padding_fit", "initialize", "temperature", "temperature.offset", offset=1),
    bound("offsets_and_padding_fit", "initialize", "seed", "seed.padding", padding=-1),
    Case(
        "physical_rows_are_retained",
        "page_table.index",
        lambda c, m: setattr(transport(m, "page_table"), "retained", False),
    ),
    Case("lanes_are_identified", "decode.bindings", lambda c, m: unbind(c, "decode", "slot")),
    Case(
        "lanes_are_identified", "restore.bindings", lambda c, m: unbind(c, "restore", "generation")
    ),
    Case(
        "operations_have_inputs",
        "prefill.bindings",
        lambda c, m: unbind(c, "prefill", "prompt_tokens"),
    ),
    Case(
        "operations_have_inputs",
        "scored_prefill.bindings",
        lambda c, m: unbind(c, "scored_prefill", "scored_target_tokens"),
    ),
    Case(
        "operations_have_inputs",
        "restore.bindings",
        lambda c, m: unbind(c, "restore", "restore_source"),
    ),
    Case(
        "lengths_have_one_source",
        "speculative.3.bindings",
        lambda c, m: add_binding(
            c, "speculative.3", "speculative_prefix_limit", "SPECULATIVE_PREFIX_LIMIT"
        ),
    ),
    Case(
        "lengths_have_one_source",
        "speculative.3.bindings",
        lambda c, m: unbind(c, "speculative.3", "query_length"),
    ),
    Case(
        "lengths_have_one_source",
        "mixed.bindings",
        lambda c, m: unbind(c, "mixed", "query_length"),
    ),
    Case(
        "proposals_are_complete",
        "speculative.3.bindings",
        lambda c, m: unbind(c, "speculative.3", "proposal_endpoint"),
    ),
    Case(
        "biases_are_paired",
        "initialize.bindings",
        lambda c, m: unbind(c, "initialize", "logit_bias_values"),
    ),
    Case(
        "biases_are_paired",
        "initialize.bindings",
        lambda c, m: transport(m, "logit_bias_values").type.CopyFrom(tensor(F32, "B", 9)),
    ),
    Case("pending_destination_is_bound", "pending_destination", lambda c, m: host_owns(c, "slot")),
    Case(
        "eos_tokens_fit",
        "eos_tokens",
        lambda c, m: transport(m, "eos_tokens").type.CopyFrom(tensor(I32, "B", 1)),
    ),
]


def add_binding(c: pb.ServingContract, name: str, destination: str, source: str) -> None:
    graph(c, name).bindings.add(
        destination=destination,
        source=f"VALUE_SOURCE_{source}",
        index=pb.INDEX_KIND_ACTIVE_ROW,
    )


def host_owns(c: pb.ServingContract, destination: str) -> None:
    for item in c.model.graphs:
        if item.WhichOneof("pending_token"):
            item.pending_destination = destination


def viewed(rule: str, name: str, field: str, /, **values: object) -> Case:
    def apply(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest) -> None:
        for key, value in values.items():
            setattr(view(c, name), key, value)

    return Case(rule, f"state_views.{name}.{field}", apply)


def accessed(rule: str, name: str, of: str, mode: int, field: str = "") -> Case:
    return Case(
        rule,
        field or f"graphs.{name}.state.{of}",
        lambda c, m: setattr(access(c, name, of), "access", mode),
    )


STATE = [
    viewed("views_are_state", "pending", "buffer", buffer="nowhere"),
    viewed("views_are_state", "saved", "buffer", buffer="keys"),
    Case("views_are_state", "buffer", lambda c, m: many_views(c)),
    viewed("views_fit_buffers", "pending", "row_bytes", row_bytes=0),
    viewed("views_fit_buffers", "pending", "row_stride", row_stride=3),
    viewed("views_fit_buffers", "pending", "row_stride", row_stride=8),
    viewed("views_fit_buffers", "pending", "byte_offset", byte_offset=4),
    viewed("views_fit_buffers", "draft", "byte_offset", byte_offset=32 * SLOTS + 4),
    viewed("views_fit_buffers", "draft", "byte_offset", row_stride=64),
    Case(
        "views_fit_buffers",
        "state_views.recurrent.buffer",
        lambda c, m: buffer(m, "state.recurrent").type.CopyFrom(tensor(F32, "R", "X")),
    ),
    Case(
        "views_fit_buffers",
        "state_views.pending.buffer",
        lambda c, m: buffer(m, "state.pending").type.CopyFrom(tensor(I32)),
    ),
    Case("accesses_do_not_overlap", "decode.state.again", lambda c, m: overlap(c, 0, BOTH)),
    Case("accesses_do_not_overlap", "decode.state.again", lambda c, m: overlap(c, 4, READ)),
    Case("producers_write", "restore.state", lambda c, m: only_reads(c, "restore")),
    Case("reads_have_writers", "state.saved", lambda c, m: unwritten(c, "saved")),
    Case(
        "carried_state_is_initialized",
        "state.recurrent",
        lambda c, m: graph(c, "initialize").state.remove(access(c, "initialize", "recurrent")),
    ),
    Case(
        "pending_token_has_an_owner",
        "decode.pending_token",
        lambda c, m: graph(c, "decode").ClearField("pending_view"),
    ),
    accessed("pending_view_is_readable", "decode", "pending", WRITE, "decode.pending_view"),
    accessed("pending_view_is_written", "mixed", "pending", READ),
    Case(
        "pending_view_is_written",
        "prefill.state.pending",
        lambda c, m: graph(c, "prefill").state.remove(access(c, "prefill", "pending")),
    ),
    Case(
        "pending_view_is_written",
        "mixed.pending_view",
        lambda c, m: setattr(graph(c, "mixed"), "pending_view", "endpoint"),
    ),
    Case("pending_ownership_is_one", "pending_destination", lambda c, m: two_owners(c)),
    Case(
        "cursor_is_committed",
        "draft_cursor.view",
        lambda c, m: graph(c, "speculative.3").state.remove(access(c, "speculative.3", "draft")),
    ),
    Case(
        "cursor_is_committed",
        "draft_cursor.lag_tokens",
        lambda c, m: setattr(graph(c, "speculative.3").draft_cursor, "lag_tokens", 64),
    ),
    extent("state_rows_are_counted", "decode", "state_rows_per_request", 0),
    extent("state_rows_are_counted", "decode", "state_rows_per_request", 1 << 11),
]


def many_views(c: pb.ServingContract) -> None:
    for index in range(70):
        c.model.state_views.add(
            name=f"more.{index}", buffer="state.pending", row_stride=4, row_bytes=4
        )


def overlap(c: pb.ServingContract, offset: int, mode: int) -> None:
    c.model.state_views.add(
        name="again",
        buffer="state.recurrent",
        byte_offset=offset,
        row_stride=60,
        row_bytes=8,
    )
    graph(c, "decode").state.add(view="again", access=mode)


def only_reads(c: pb.ServingContract, name: str) -> None:
    for item in graph(c, name).state:
        item.access = READ


def unwritten(c: pb.ServingContract, name: str) -> None:
    for item in c.model.graphs:
        for found in item.state:
            if found.view == name:
                found.access = READ


def two_owners(c: pb.ServingContract) -> None:
    add_binding(c, "mixed", "pending_token", "PENDING_TOKEN")
    graph(c, "mixed").pending_destination = "pending_token"


COMPLETION = [
    Case(
        "fields_suit_operations",
        "decode.completion",
        lambda c, m: uncomplete(m, "decode", "TOKENS"),
    ),
    Case(
        "fields_suit_operations",
        "speculative.3.completion",
        lambda c, m: uncomplete(m, "speculative.3", "OFFERED"),
    ),
    Case(
        "fields_suit_operations",
        "scored_prefill.completion",
        lambda c, m: uncomplete(m, "scored_prefill", "SCORES"),
    ),
    Case("fields_suit_operations", "decode", lambda c, m: complete(m, "decode", "OFFERED")),
    Case("fields_suit_operations", "restore", lambda c, m: complete(m, "restore", "TOKENS")),
    Case("alternatives_are_paired", "decode", lambda c, m: uncomplete(m, "decode", "TOP_TOKENS")),
    Case(
        "cursor_is_reported",
        "speculative.3",
        lambda c, m: uncomplete(m, "speculative.3", "CURSOR"),
    ),
    Case(
        "cursor_is_reported",
        "speculative.3",
        lambda c, m: graph(c, "speculative.3").ClearField("draft_cursor"),
    ),
    *(
        Case(
            "outputs_are_completion_buffers",
            "decode.completion.TOKENS",
            lambda c, m, name=name: setattr(completion(m, "decode", "TOKENS"), "buffer", name),
        )
        for name in ("pending_token", "nowhere", "keys", "tuned.tiles", "completion.scores")
    ),
]

TUNING = [
    *(
        Case(
            "outputs_do_not_overlap",
            "tune.tuned_outputs",
            lambda c, m, name=name: m.tuning[0].tuned_outputs.append(name),
        )
        for name in ("top_k", "state.pending", "keys", "completion.tokens")
    ),
    Case(
        "outputs_are_tuned_buffers",
        "tune.tuned_outputs",
        lambda c, m: m.tuning[0].tuned_outputs.append("nowhere"),
    ),
    Case(
        "outputs_are_tuned_buffers",
        "tune.tuned_outputs",
        lambda c, m: m.tuning[0].ClearField("tuned_outputs"),
    ),
    Case(
        "outputs_are_tuned_buffers",
        "twin.tuned_outputs",
        lambda c, m: m.tuning.add(
            name="twin",
            operation=m.tuning[0].operation,
            resource="program/twin",
            tuned_outputs=["tuned.tiles"],
        ),
    ),
    Case("producers_are_cataloged", "producer", lambda c, m: retune(c, m, producer="decode")),
    Case("producers_are_cataloged", "buffer", lambda c, m: retune(c, m, buffer="tuned.none")),
]


def retune(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest, **values: str) -> None:
    for key, value in values.items():
        setattr(graph(c, "prefill").tuned_bindings[0], key, value)
        setattr(program(m, "prefill").tuned_inputs[0], key, value)


CASES = [*EXTENTS, *BINDINGS, *STATE, *COMPLETION, *TUNING]
