"""Which recipe prepares which architecture."""

from collections.abc import Callable

from helios.errors import SourceError
from helios.ignition.recipes import gemma_config, llama_config
from helios.ignition.recipes.gemma import GemmaRecipe
from helios.ignition.recipes.llama import LlamaRecipe
from helios.ignition.recipes.recipe import Recipe
from helios.ignition.sources.source import Dialect, Source

RECIPES: dict[tuple[Dialect, str], Callable[[Source], Recipe]] = {
    **dict.fromkeys(llama_config.VARIATIONS, LlamaRecipe),
    **dict.fromkeys(gemma_config.VARIATIONS, GemmaRecipe),
}


def recipe_for(source: Source) -> Recipe:
    """The recipe of a source's architecture; raises `SourceError` where there is none."""
    known = sorted(name for dialect, name in RECIPES if dialect is source.dialect)
    if (source.dialect, source.architecture) not in RECIPES:
        raise SourceError(
            "unknown architecture",
            field="general.architecture" if source.dialect is Dialect.GGUF else "model_type",
            value=source.architecture,
            remedy=f"known architectures: {', '.join(known)}",
        )
    return RECIPES[source.dialect, source.architecture](source)
