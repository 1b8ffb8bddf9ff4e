"""Tokens, their bytes, and text that comes back from any stream of them."""

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizers import CALL, END, byte_level, sentence_piece, with_decoder

from helios.errors import ContractError
from helios.frontend.detokenizer import Detokenizer
from helios.frontend.parsing import Piece
from helios.frontend.tokenizer import Tokenizer

BYTES = Tokenizer(byte_level())
SENTENCES = Tokenizer(sentence_piece())
EXAMPLES = settings(max_examples=150, derandomize=True, deadline=None)
# U+2581 is how SentencePiece writes a space, so that it can't be told from one.
TEXTS = st.text(st.characters(exclude_characters="▁", codec="utf-8"))
BOTH = pytest.mark.parametrize("tokenizer", [BYTES, SENTENCES], ids=["byte-level", "sentence"])


@BOTH
@EXAMPLES
@given(text=TEXTS)
def test_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@BOTH
@EXAMPLES
@given(text=TEXTS)
def test_the_lower_bound_of_tokens_holds(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.fewest_tokens(text) <= len(tokenizer.encode(text))


@pytest.mark.parametrize(
    ("tokenizer", "source"), [(BYTES, byte_level()), (SENTENCES, sentence_piece())]
)
@EXAMPLES
@given(text=TEXTS)
def test_decodes_as_the_library_does(tokenizer: Tokenizer, source: str, text: str) -> None:
    oracle = tokenizers.Tokenizer.from_str(source)
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == oracle.decode(tokens, skip_special_tokens=False)


@BOTH
@EXAMPLES
@given(data=st.data())
def test_deltas_join_to_the_whole(tokenizer: Tokenizer, data: st.DataObject) -> None:
    """For any tokens, valid or not, and any split of them."""
    ids = st.integers(0, tokenizer.vocabulary - 1).filter(
        lambda token: token not in tokenizer.special_tokens
    )
    tokens = data.draw(st.lists(ids, max_size=40))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(tokens)), max_size=6)))
    detokenizer = Detokenizer(tokenizer)
    pieces: list[Piece] = []
    for start, stop in zip([0, *cuts], [*cuts, len(tokens)], strict=True):
        pieces += detokenizer.feed(tokens[start:stop])
    pieces += detokenizer.finish()
    whole = b"".join([tokenizer.token_bytes(token) for token in tokens])
    assert "".join([piece.text for piece in pieces]) == whole.decode("utf-8", "replace")
    assert [piece.token for piece in pieces if piece.token >= 0] == tokens


def test_characters_are_never_split() -> None:
    tokens = [BYTES.token_id(character) for character in ("ð", "Ł", "Ļ", "Ĥ")]  # F0 9F 99 82
    detokenizer = Detokenizer(BYTES)
    texts = [detokenizer.feed((token or 0,))[0].text for token in tokens]
    assert texts == ["", "", "", "🙂"]
    assert detokenizer.finish() == []


def test_bytes_become_a_replacement_once_nothing_can_complete_them() -> None:
    first, letter = BYTES.token_id("ð"), BYTES.token_id("a")
    assert first is not None
    assert letter is not None
    detokenizer = Detokenizer(BYTES)
    assert detokenizer.feed((first,)) == [Piece("", first)]
    assert detokenizer.feed((letter,)) == [Piece("\ufffda", letter)]
    detokenizer.feed((first,))
    assert detokenizer.finish() == [Piece("\ufffd")]


def test_a_special_token_is_a_piece_of_its_own() -> None:
    first, end = BYTES.token_id("ð"), BYTES.token_id(END)
    assert first is not None
    assert end is not None
    pieces = Detokenizer(BYTES).feed((first, end))
    assert pieces == [Piece("", first), Piece("\ufffd"), Piece(END, end)]


def test_leading_space_belongs_to_texts_that_start() -> None:
    tokens = SENTENCES.encode("Hello")
    assert SENTENCES.decode(tokens) == "Hello"
    assert SENTENCES.decode(tokens, at_start=False) == " Hello"
    start = SENTENCES.token_id("<s>")
    assert start is not None
    assert SENTENCES.decode([start, *tokens]) == "<s>Hello"


def test_bytes_of_tokens() -> None:
    call, accented = BYTES.token_id(CALL), BYTES.token_id("<é>")
    assert call is not None
    assert accented is not None
    assert BYTES.token_bytes(call) == CALL.encode()
    assert BYTES.token_bytes(accented) == "<é>".encode()
    assert BYTES.is_added(call)
    assert call not in BYTES.special_tokens
    assert BYTES.token_bytes(BYTES.vocabulary + 7) == b""
    assert BYTES.token_bytes(-1) == b""
    newline = SENTENCES.token_id("<0x0A>")
    assert newline is not None
    assert SENTENCES.token_bytes(newline) == b"\n"
    word = SENTENCES.token_id("▁He")
    assert word is not None
    assert SENTENCES.token_bytes(word) == b" He"


def test_single_tokens() -> None:
    assert BYTES.single_token(CALL) == BYTES.token_id(CALL)
    assert BYTES.single_token("<tool_cal>") is None
    assert BYTES.single_token("") is None


def test_metaspace_decoder() -> None:
    decoder = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    tokenizer = Tokenizer(with_decoder(sentence_piece(), decoder))
    assert tokenizer.decode(SENTENCES.encode("He a")) == "He a"
    decoder["prepend_scheme"] = "never"
    assert (
        Tokenizer(with_decoder(sentence_piece(), decoder)).decode(SENTENCES.encode("He a"))
        == " He a"
    )


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {"type": "Strip", "content": " ", "start": 0, "stop": 1},
        {
            "type": "Sequence",
            "decoders": [
                {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": False}
            ],
        },
    ],
)
def test_other_decoders_are_refused(decoder: object) -> None:
    with pytest.raises(ContractError, match=r"tokenizer_resource\.decoder"):
        Tokenizer(with_decoder(sentence_piece(), decoder))


@pytest.mark.parametrize("source", ["", "{}", "null", '{"model": 1}'])
def test_unreadable_tokenizers_are_refused(source: str) -> None:
    with pytest.raises(ContractError, match="tokenizer_resource"):
        Tokenizer(source)
