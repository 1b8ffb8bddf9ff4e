"""Broken serving metadata, cache, vision and stored things."""

from contract_cases import Case, buffer, graph, history, program, transport, unbind
from contract_examples import F32, I32, PAGES, SLOTS, tensor

from helios.schema import contract_pb2 as pb
from helios.schema import frontend_pb2, manifest_pb2

SERVING = [
    Case("identity_is_named", "served_id", lambda c, m: setattr(c, "served_id", "")),
    Case("identity_is_named", "served_id", lambda c, m: setattr(c, "served_id", "a b")),
    Case("identity_is_named", "cache_identity", lambda c, m: setattr(c, "cache_identity", "")),
    Case("aliases_are_distinct", "aliases", lambda c, m: c.aliases.append("example")),
    Case("aliases_are_distinct", "aliases", lambda c, m: c.aliases.append(c.served_id)),
    Case("aliases_are_distinct", "aliases", lambda c, m: c.aliases.append("\n")),
    Case("vocabulary_is_sized", "model.vocabulary", lambda c, m: setattr(c.model, "vocabulary", 0)),
    Case(
        "vocabulary_is_sized",
        "model.input_vocabulary",
        lambda c, m: setattr(c.model, "input_vocabulary", 99),
    ),
    Case("context_is_sized", "context_tokens", lambda c, m: setattr(c, "context_tokens", 0)),
    Case("context_is_sized", "prefill_tokens", lambda c, m: setattr(c, "prefill_tokens", 0)),
    Case("context_is_sized", "prefill_tokens", lambda c, m: setattr(c, "prefill_tokens", 65)),
    Case("prefill_fits_a_graph", "prefill_tokens", lambda c, m: setattr(c, "prefill_tokens", 33)),
    Case("concurrency_fits_slots", "concurrency", lambda c, m: setattr(c, "concurrency", 0)),
    Case(
        "concurrency_fits_slots", "concurrency", lambda c, m: setattr(c, "concurrency", SLOTS + 1)
    ),
    Case(
        "pages_hold_a_context",
        "prepared_pages",
        lambda c, m: setattr(c, "prepared_pages", PAGES - 1),
    ),
    *(
        Case(
            "defaults_are_in_range",
            f"defaults.{name}",
            lambda c, m, name=name, value=value: setattr(c.defaults, name, value),
        )
        for name, value in [
            ("temperature", -0.1),
            ("top_k", 101),
            ("top_p", 0.0),
            ("top_p", 1.1),
            ("min_p", -0.1),
            ("min_p", 1.1),
            ("repetition_penalty", 0.0),
            ("presence_penalty", 2.1),
            ("frequency_penalty", -2.1),
            ("max_output_tokens", 0),
            ("max_output_tokens", 65),
        ]
    ),
    *(
        Case("required_operations_exist", "model.graphs", lambda c, m, name=name: drop(c, m, name))
        for name in ("initialize", "prefill", "decode")
    ),
]


def drop(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest, name: str) -> None:
    c.model.graphs.remove(graph(c, name))
    m.programs.remove(program(m, name))


def plane(c: pb.ServingContract, name: str) -> pb.CachePlane:
    return history(c, name).planes[0]


CACHE = [
    Case(
        "page_is_sized",
        "cache.page_tokens",
        lambda c, m: setattr(c.model.cache, "page_tokens", 0),
    ),
    Case(
        "page_is_sized",
        "cache.page_tokens",
        lambda c, m: setattr(c.model.cache, "page_tokens", 1 << 17),
    ),
    Case("regions_have_planes", "latent.planes", lambda c, m: history(c, "latent").planes.pop()),
    Case("regions_have_planes", "full.planes", lambda c, m: history(c, "full").planes.pop()),
    Case(
        "windows_match_kinds",
        "window.window_tokens",
        lambda c, m: setattr(history(c, "window"), "window_tokens", 0),
    ),
    Case(
        "windows_match_kinds",
        "full.window_tokens",
        lambda c, m: setattr(history(c, "full"), "window_tokens", 8),
    ),
    Case(
        "compression_divides_pages",
        "full.tokens_per_record",
        lambda c, m: setattr(history(c, "full"), "tokens_per_record", 0),
    ),
    Case(
        "compression_divides_pages",
        "latent.tokens_per_record",
        lambda c, m: setattr(history(c, "latent"), "tokens_per_record", 3),
    ),
    Case(
        "compression_divides_pages",
        "recurrent.tokens_per_record",
        lambda c, m: setattr(history(c, "recurrent"), "tokens_per_record", 1),
    ),
    Case(
        "planes_are_storage", "full.planes", lambda c, m: setattr(plane(c, "full"), "buffer", "no")
    ),
    Case(
        "planes_are_storage",
        "partial.planes",
        lambda c, m: setattr(plane(c, "partial"), "buffer", "keys"),
    ),
    Case(
        "planes_are_storage",
        "record_bytes",
        lambda c, m: setattr(plane(c, "full"), "record_bytes", 33),
    ),
    Case(
        "planes_are_storage",
        "latent.planes",
        lambda c, m: setattr(history(c, "latent"), "tokens_per_record", 4),
    ),
    Case(
        "planes_are_storage",
        "full.planes",
        lambda c, m: buffer(m, "keys").type.CopyFrom(tensor(F32, "N", 16, 2, "D")),
    ),
    Case(
        "planes_have_one_region",
        "cache.histories",
        lambda c, m: setattr(history(c, "full").planes[1], "buffer", "keys"),
    ),
    Case(
        "planes_have_one_region",
        "manifest.buffers.near",
        lambda c, m: c.model.cache.histories.remove(history(c, "window")),
    ),
    Case(
        "page_tables_are_bound",
        "cache.page_tables.slot",
        lambda c, m: c.model.cache.page_tables.add(destination="slot"),
    ),
    Case(
        "page_tables_are_bound",
        "cache.page_tables.draft_table",
        lambda c, m: c.model.cache.page_tables.pop(),
    ),
    Case(
        "page_tables_are_bound",
        "cache.page_tables",
        lambda c, m: c.model.cache.page_tables.add(destination="page_table"),
    ),
    Case(
        "page_tables_cover_context",
        "page_offset",
        lambda c, m: setattr(c.model.cache.page_tables[1], "page_offset", -1),
    ),
    Case(
        "page_tables_cover_context",
        "page_offset",
        lambda c, m: setattr(c.model.cache.page_tables[1], "page_offset", PAGES + 1),
    ),
    Case(
        "page_tables_cover_context",
        "draft_table",
        lambda c, m: transport(m, "draft_table").type.CopyFrom(tensor(I32, "R", PAGES - 1)),
    ),
    Case("paged_histories_have_tables", "cache.page_tables", lambda c, m: untable(c)),
]


def untable(c: pb.ServingContract) -> None:
    del c.model.cache.page_tables[:]
    for item in c.model.graphs:
        bound = {b.destination for b in item.bindings}
        unbind(c, item.program, *(bound & {"page_table", "draft_table"}))


def frontend(c: pb.ServingContract) -> frontend_pb2.FrontendContract:
    return c.model.frontend


VISION = [
    Case(
        "images_are_whole",
        "frontend.image_layout",
        lambda c, m: setattr(frontend(c), "image_layout", frontend_pb2.IMAGE_LAYOUT_NONE),
    ),
    Case(
        "images_are_whole",
        "frontend.image_preparation",
        lambda c, m: setattr(frontend(c), "image_preparation", frontend_pb2.IMAGE_PREPARATION_NONE),
    ),
    Case(
        "images_are_whole",
        "frontend.image_tokens",
        lambda c, m: frontend(c).ClearField("image_tokens"),
    ),
    *(
        Case(
            "vision_is_sized",
            f"model.vision.{name}",
            lambda c, m, name=name: setattr(c.model.vision, name, 0),
        )
        for name in ("feature_slots", "window_feature_capacity", "patches_per_feature")
    ),
    Case(
        "vision_is_sized",
        "patch_capacities",
        lambda c, m: c.model.vision.patch_capacities.append(32),
    ),
    Case(
        "vision_is_sized",
        "patch_capacities",
        lambda c, m: c.model.vision.patch_capacities.append(66),
    ),
    Case(
        "vision_is_sized",
        "patch_capacities",
        lambda c, m: c.model.vision.ClearField("patch_capacities"),
    ),
    Case(
        "image_tokens_are_input",
        "feature_ids",
        lambda c, m: frontend(c).image_tokens.feature_ids.append(100),
    ),
    Case(
        "image_tokens_are_input",
        "feature_ids",
        lambda c, m: frontend(c).image_tokens.ClearField("feature_ids"),
    ),
    Case(
        "image_tokens_are_input",
        "image_tokens",
        lambda c, m: setattr(frontend(c).image_tokens, "end_id", 104),
    ),
    Case(
        "image_settings_are_sized",
        "patch_size",
        lambda c, m: setattr(frontend(c).image_settings, "patch_size", 0),
    ),
    Case(
        "image_settings_are_sized",
        "maximum_pixels",
        lambda c, m: setattr(frontend(c).image_settings, "maximum_pixels", 1),
    ),
    Case(
        "image_settings_are_sized",
        "mean",
        lambda c, m: frontend(c).image_settings.mean.pop(),
    ),
    Case(
        "image_settings_are_sized",
        "deviation",
        lambda c, m: frontend(c).image_settings.deviation.__setitem__(1, 0.0),
    ),
    Case(
        "image_preparation_is_complete",
        "minimum_pixels",
        lambda c, m: setattr(frontend(c).image_settings, "minimum_pixels", 0),
    ),
    Case("image_preparation_is_complete", "maximum_tiles", lambda c, m: tiles(c)),
    Case(
        "merges_give_features",
        "patches_per_feature",
        lambda c, m: setattr(c.model.vision, "patches_per_feature", 8),
    ),
]


def tiles(c: pb.ServingContract) -> None:
    frontend(c).image_preparation = frontend_pb2.IMAGE_PREPARATION_TILES
    frontend(c).image_settings.maximum_tiles = 0


RESOURCES = [
    Case("weights_are_sized", "embedding.nbytes", lambda c, m: setattr(m.weights[0], "nbytes", 1)),
    Case(
        "weights_are_sized",
        "embedding.shape",
        lambda c, m: m.weights[0].shape.__setitem__(1, 65),
    ),
    Case("weights_are_sized", "norm.shape", lambda c, m: m.weights[1].ClearField("shape")),
    Case("weights_are_sized", "norm.shape", lambda c, m: m.weights[1].shape.__setitem__(0, 0)),
    Case("weights_are_sized", "norm.offset", lambda c, m: setattr(m.weights[1], "offset", 1 << 63)),
    Case(
        "graphs_name_their_resources",
        "decode.resources",
        lambda c, m: graph(c, "decode").resources.append("weights"),
    ),
    Case(
        "graphs_name_their_resources",
        "decode.resources",
        lambda c, m: graph(c, "decode").resources.__setitem__(0, "program/prefill"),
    ),
]

CASES = [*SERVING, *CACHE, *VISION, *RESOURCES]
