"""How byte-level vocabularies split text before merging, by the name GGUF files give it.

The expressions are those the vocabularies were learned with, as llama.cpp lists them
(https://github.com/ggml-org/llama.cpp/blob/master/src/llama-vocab.cpp).
"""

from helios.records import dataclass

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
_LLAMA3_MERGED = Splitting(_LLAMA3.expressions)
_SEED_CODER = Splitting(
    (
        rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    )
)
# Han, Kana and Hangul as DeepSeek's vocabularies delimit them.
_EAST_ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_KANA_AND_HAN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_WIDE_SIGNS = "\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002"
_DEEPSEEK_CODER = Splitting((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, r"\p{N}"))
_DEEPSEEK_LLM = Splitting(
    (
        r"[\r\n]",
        r"\s?[\p{Lu}\p{Ll}\p{Lt}]+",
        rf"\s?[!-/:-~{_WIDE_SIGNS}]+",
        r"\s+$",
        _EAST_ASIAN,
        r"\p{N}",
    )
)
_DEEPSEEK_V3 = Splitting(
    (
        r"\p{N}{1,3}",
        _KANA_AND_HAN,
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    )
)

SPLITTINGS = {
    "default": _DEFAULT,
    "gpt-2": _PLAIN,
    "gpt2": _PLAIN,
    "phi-2": _PLAIN,
    "olmo": _PLAIN,
    "a.x-4.0": _PLAIN,
    "gigachat": _PLAIN,
    "granite-docling": _PLAIN,
    "mellum": _PLAIN,
    "trillion": _PLAIN,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "command-r": _DIGITS,
    "codeshell": _DIGITS,
    "minerva-7b": _DIGITS,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama-bpe": _LLAMA3,
    "falcon3": _LLAMA3,
    "pixtral": _LLAMA3,
    "midm-2.0": _LLAMA3,
    "lfm2": _LLAMA3,
    "dbrx": _LLAMA3_MERGED,
    "smaug-bpe": _LLAMA3_MERGED,
    "chatglm-bpe": _LLAMA3_MERGED,
    "seed-coder": _SEED_CODER,
    "deepseek-coder": _DEEPSEEK_CODER,
    "deepseek-llm": _DEEPSEEK_LLM,
    "deepseek-v3": _DEEPSEEK_V3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "megrez": _QWEN2,
    "kormo": _QWEN2,
    "stablelm2": _QWEN2,
    "tekken": _TEKKEN,
    "gpt-4o": _GPT4O,
    "llama4": _GPT4O,
}
