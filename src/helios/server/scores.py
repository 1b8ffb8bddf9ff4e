"""Log-probabilities in the forms that the two endpoints have for them."""

from collections.abc import Iterable, Sequence

from helios.engine.messages import TokenLogprob
from helios.frontend.detokenizer import Detokenizer
from helios.frontend.output import ScoredToken
from helios.frontend.tokenizer import Tokenizer
from helios.server.protocol.chat import (
    Alternative,
    Logprobs,
    PromptScore,
    PromptScoreList,
    TokenScore,
)
from helios.server.protocol.completions import CompletionLogprobs

# JSON has no infinity; a token that can't be drawn gets what OpenAI reports for unlikely ones.
_LEAST = -9999.0


def chat_logprobs(tokenizer: Tokenizer, scored: Iterable[ScoredToken]) -> Logprobs:
    """Scores of presented tokens, with the exact bytes that each stands for."""
    return Logprobs([_token_score(tokenizer, token, score) for token, score in scored])


def _token_score(tokenizer: Tokenizer, token: int, score: TokenLogprob) -> TokenScore:
    return TokenScore(
        tokenizer.token_text(token),
        _finite(score.logprob),
        list(tokenizer.token_bytes(token)),
        [
            Alternative(
                tokenizer.token_text(other), _finite(value), list(tokenizer.token_bytes(other))
            )
            for other, value in score.top
        ],
    )


def prompt_scores(
    tokenizer: Tokenizer, prompt: Sequence[int], scores: Sequence[TokenLogprob]
) -> PromptScoreList:
    """One entry a prompt token, keyed by token id; the first has no score."""
    entries: PromptScoreList = [None]
    for token, score in zip(prompt[1:], scores, strict=True):
        entry = {
            str(other): PromptScore(_finite(value), tokenizer.token_text(other), rank)
            for rank, (other, value) in enumerate(score.top, 1)
        }
        if str(token) not in entry:
            entry[str(token)] = PromptScore(_finite(score.logprob), tokenizer.token_text(token))
        entries.append(entry)
    return entries


class CompletionScores:
    """Builds the four lists of a completion's scores, piece by piece of its text.

    `offset` is where the text goes on; special tokens that presentation drops add nothing to it.
    """

    def __init__(self, tokenizer: Tokenizer, offset: int = 0) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer)
        self._offset = offset

    def add(
        self, tokens: Iterable[tuple[int, TokenLogprob | None]], *, spelled: bool = False
    ) -> CompletionLogprobs:
        """The lists of the next tokens; `spelled` says that the text spells special ones out."""
        result = CompletionLogprobs([], [], [], [])
        for token, score in tokens:
            result.tokens.append(self._name(token))
            result.token_logprobs.append(None if score is None else _finite(score.logprob))
            result.top_logprobs.append(None if score is None else self._top(token, score))
            result.text_offset.append(self._offset)
            if spelled or token not in self._tokenizer.special_tokens:
                pieces = self._detokenizer.feed((token,))
                self._offset += sum([len(piece.text) for piece in pieces])
        return result

    def _top(self, token: int, score: TokenLogprob) -> dict[str, float]:
        top = {self._name(other): _finite(value) for other, value in score.top}
        top.setdefault(self._name(token), _finite(score.logprob))
        return top

    def _name(self, token: int) -> str:
        """A token's text, or its bytes where they are not whole characters."""
        piece = self._tokenizer.whole_piece(token)
        if piece is not None:
            return piece.text
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in self._tokenizer.token_bytes(token))


def join_scores(parts: Sequence[CompletionLogprobs]) -> CompletionLogprobs:
    """The lists one after the other."""
    whole = CompletionLogprobs([], [], [], [])
    for part in parts:
        whole.tokens += part.tokens
        whole.token_logprobs += part.token_logprobs
        whole.top_logprobs += part.top_logprobs
        whole.text_offset += part.text_offset
    return whole


def _finite(value: float) -> float:
    return max(value, _LEAST)  # NaN never arrives: the engine validates completions
