"""Rules of image input: geometry, preparation, layout, tokens and settings."""

from helios.contract.kinds import ImageLayout, ImagePreparation
from helios.contract.prepared import PreparedContract
from helios.contract.reading import check_distinct, refusal
from helios.contract.syntax import ImageSettings

CHANNELS = (1, 3)


def images_are_whole(contract: PreparedContract) -> None:
    """Preparation, layout, tokens, settings and vision geometry come together or not at all."""
    frontend = contract.frontend
    parts = {
        "frontend.image_preparation": frontend.image_preparation is not ImagePreparation.NONE,
        "frontend.image_layout": frontend.image_layout is not ImageLayout.NONE,
        "frontend.image_tokens": frontend.image_tokens is not None,
        "frontend.image_settings": frontend.image_settings is not None,
        "model.vision": contract.vision is not None,
    }
    missing = [name for name, present in parts.items() if not present]
    if missing and len(missing) < len(parts):
        present = [name for name in parts if name not in missing]
        raise refusal(missing[0], "is missing beside other image data", present, "declare it")


def vision_is_sized(contract: PreparedContract) -> None:
    """Feature capacities are positive; patch capacities ascend and divide into features."""
    vision = contract.vision
    if vision is None:
        return
    for name in ("feature_slots", "window_feature_capacity", "patches_per_feature"):
        if getattr(vision, name) < 1:
            raise refusal(f"model.vision.{name}", "must be positive", 0, "give at least 1")
    field = "model.vision.patch_capacities"
    capacities = check_distinct(vision.patch_capacities, field, "capacity")
    if not capacities or list(capacities) != sorted(capacities) or capacities[0] < 1:
        raise refusal(field, "must ascend from a positive one", list(capacities), "sort them")
    for capacity in capacities:
        if capacity % vision.patches_per_feature:
            raise refusal(
                field,
                f"is no multiple of {vision.patches_per_feature} patches per feature",
                capacity,
                "round it up",
            )


def image_tokens_are_input(contract: PreparedContract) -> None:
    """Image tokens are distinct ids of the input vocabulary."""
    tokens = contract.frontend.image_tokens
    if tokens is None:
        return
    field = "frontend.image_tokens"
    features = check_distinct(tokens.feature_ids, f"{field}.feature_ids", "token")
    if not features:
        raise refusal(f"{field}.feature_ids", "no token stands for a feature", (), "name one")
    for token in (*features, tokens.begin_id, tokens.end_id):
        if token >= contract.input_vocabulary:
            raise refusal(
                field,
                f"lies outside the input vocabulary of {contract.input_vocabulary}",
                token,
                "count it in input_vocabulary",
            )


def image_settings_are_sized(contract: PreparedContract) -> None:
    """Patches and merges are positive, pixel bounds ordered, normalisation complete."""
    settings = contract.frontend.image_settings
    if settings is None:
        return
    for name in ("patch_size", "merge_size"):
        if getattr(settings, name) < 1:
            raise refusal(f"frontend.image_settings.{name}", "must be positive", 0, "give it")
    if settings.maximum_pixels < settings.minimum_pixels:
        raise refusal(
            "frontend.image_settings.maximum_pixels",
            f"is below the minimum of {settings.minimum_pixels}",
            settings.maximum_pixels,
            "swap them",
        )
    _check_normalisation(settings)


def _check_normalisation(settings: ImageSettings) -> None:
    mean, deviation = settings.mean, settings.deviation
    if len(mean) not in CHANNELS or len(mean) != len(deviation):
        raise refusal(
            "frontend.image_settings.mean",
            "mean and deviation need one entry per channel",
            (len(mean), len(deviation)),
            "give 1 or 3 of each",
        )
    if min(deviation) <= 0:
        raise refusal(
            "frontend.image_settings.deviation", "must be positive", min(deviation), "correct it"
        )


_PREPARATION_NEEDS = {
    ImagePreparation.SMART_RESIZE: ("minimum_pixels", "maximum_pixels"),
    ImagePreparation.FIXED_SQUARE: ("square_size",),
    ImagePreparation.TILES: ("square_size", "maximum_tiles"),
}


def image_preparation_is_complete(contract: PreparedContract) -> None:
    """Each preparation has the numbers that it works by."""
    settings, preparation = contract.frontend.image_settings, contract.frontend.image_preparation
    if settings is None:
        return
    for name in _PREPARATION_NEEDS.get(preparation, ()):
        if getattr(settings, name) < 1:
            raise refusal(
                f"frontend.image_settings.{name}", f"{preparation.name} needs it", 0, "give it"
            )


def merges_give_features(contract: PreparedContract) -> None:
    """A spatial merge makes one feature of the square of its size in patches."""
    settings, vision = contract.frontend.image_settings, contract.vision
    if settings is None or vision is None:
        return
    if contract.frontend.image_layout is ImageLayout.SPATIAL_MERGE:
        merged = settings.merge_size**2
        if merged != vision.patches_per_feature:
            raise refusal(
                "model.vision.patches_per_feature",
                f"a merge of {settings.merge_size} joins {merged} patches",
                vision.patches_per_feature,
                f"give {merged}",
            )


RULES = (
    images_are_whole,
    vision_is_sized,
    image_tokens_are_input,
    image_settings_are_sized,
    image_preparation_is_complete,
    merges_give_features,
)
