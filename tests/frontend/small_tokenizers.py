"""Small tokenizers of the two families that checkpoints come with."""

import functools
import json

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

CORPUS = [
    "Gravity is a fundamental concept in physics that describes the curvature of spacetime.",
    "user assistant system tool hello world the quick brown fox jumps over the lazy dog",
    '{"name": "weather", "arguments": {"city": "Rome", "days": 3}}',
    "Grüße aus Köln — 数学は美しい 🙂🙃",
] * 4

END = "<|im_end|>"
START = "<|im_start|>"
CALL = "<tool_call>"


@functools.cache
def byte_level() -> str:
    """Byte-level BPE, as GPT-2's, Llama 3's and Qwen's: every byte is a token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    # Markup that is a token of its own but not special, as Qwen's <tool_call> and <think>.
    tokenizer.add_tokens([AddedToken(CALL, normalized=False), AddedToken("<é>", normalized=False)])
    return tokenizer.to_str()


@functools.cache
def sentence_piece() -> str:
    """SentencePiece-like BPE with byte tokens, as Llama 2's: a text gets a leading space."""
    words = ["▁", "▁H", "▁He", "e", "l", "o", "H", "a", "b", "▁a", "▁b", "é", "▁▁"]
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + words
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    merges = [("▁", "H"), ("▁H", "e"), ("▁", "a"), ("▁", "b"), ("▁", "▁")]
    tokenizer = Tokenizer(
        models.BPE(
            vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer.to_str()


def with_decoder(source: str, decoder: object) -> str:
    """The same tokenizer with another decoder entry."""
    layout = json.loads(source)
    layout["decoder"] = decoder
    return json.dumps(layout)
