"""How byte-level vocabularies split text before merging, by the name GGUF files give it.

The expressions are those the vocabularies were learned with, as llama.cpp lists them
(https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp).
"""

from dataclasses import dataclass

_WORDS = r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d|{_WORDS}"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_REST_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
_UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"


@dataclass(frozen=True, slots=True)
class Splitting:
    """Expressions applied one after the other to what the ones before left whole.

    `whole_words` takes a piece that is in the vocabulary as it is, without merging;
    `add_bos` is what a file that does not say means.
    """

    expressions: tuple[str, ...]
    whole_words: bool = False
    add_bos: bool = False
    composed: bool = False  # text is brought to Unicode form C first


_PLAIN = Splitting((_GPT2,))
_DEFAULT = Splitting((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"))
_DIGITS = Splitting((r"\p{N}", _GPT2))
_LLAMA3 = Splitting(
    (rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_REST}",),
    whole_words=True,
    add_bos=True,
)
_QWEN2 = Splitting((rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_REST}",), composed=True)
_TEKKEN = Splitting((rf"{_LOWER}|{_UPPER}|\p{{N}}|{_REST_SLASH}",), whole_words=True, add_bos=True)
_GPT4O = Splitting((rf"{_LOWER}{_ENDINGS}?|{_UPPER}{_ENDINGS}?|\p{{N}}{{1,3}}|{_REST_SLASH}",))

SPLITTINGS = {
    "default": _DEFAULT,
    "gpt-2": _PLAIN,
    "gpt2": _PLAIN,
    "phi-2": _PLAIN,
    "olmo": _PLAIN,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "command-r": _DIGITS,
    "codeshell": _DIGITS,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama-bpe": _LLAMA3,
    "falcon3": _LLAMA3,
    "pixtral": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "stablelm2": _QWEN2,
    "tekken": _TEKKEN,
    "gpt-4o": _GPT4O,
    "llama4": _GPT4O,
}
