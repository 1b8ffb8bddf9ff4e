"""A publisher's recommended sampling, read from either dialect."""

from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.source import SamplingDefaults


def gguf_sampling(facts: Facts) -> SamplingDefaults:
    """The `general.sampling.` keys of a GGUF file."""
    return SamplingDefaults(
        temperature=_real(facts, "temp", 0.0),
        top_k=_top_k(facts),
        top_p=_real(facts, "top_p", 1e-6, 1.0),
        min_p=_real(facts, "min_p", 0.0, 1.0),
        repetition_penalty=_real(facts, "penalty_repeat", 1e-6),
    )


def huggingface_sampling(generation: Facts) -> SamplingDefaults:
    """The settings of a `generation_config.json`.

    One that says to take the likeliest token means that, whatever else it says; one that does not
    say, but has a temperature, is read as what its publisher recommends.
    """
    sampled = generation.flag("do_sample", True)
    penalty = _real(generation, "repetition_penalty", 1e-6)
    if not sampled:
        return SamplingDefaults(repetition_penalty=penalty)
    return SamplingDefaults(
        temperature=_real(generation, "temperature", 0.0),
        top_k=_top_k(generation),
        top_p=_real(generation, "top_p", 1e-6, 1.0),
        min_p=_real(generation, "min_p", 0.0, 1.0),
        repetition_penalty=penalty,
    )


def _real(facts: Facts, key: str, least: float, most: float = 1e6) -> float | None:
    if key not in facts:
        return None
    value = float(f"{facts.real(key):.7g}")  # as it was before a file stored it in single precision
    if not least <= value <= most:
        raise _refused(facts, key, value, f"give {least:g} to {most:g}")
    return value


def _top_k(facts: Facts) -> int | None:
    """The most tokens to choose from; any, where a file says 0 or −1."""
    if "top_k" not in facts:
        return None
    value = facts.real("top_k")
    if value < -1 or value != int(value) or value >= 1 << 31:
        raise _refused(facts, "top_k", value, "give a whole number, or 0 for no limit")
    return max(int(value), 0)


def _refused(facts: Facts, key: str, value: float, remedy: str) -> SourceError:
    return SourceError(
        "is no sampling setting",
        field=facts.name(key),
        value=value,
        remedy=f"{remedy}, or remove it",
    )
