"""SentencePiece BPE vocabularies as ranked merges.

SentencePiece merges the adjacent pair whose union has the best score (Kudo and Richardson,
arXiv:1808.06226). Ranked-merge BPE does the same once every way of joining two entries into a
third is listed, best union first.
"""

from collections.abc import Sequence

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # ggml token types


def ranked_merges(
    tokens: Sequence[str], types: Sequence[int], ranks: Sequence[float]
) -> list[tuple[str, str]]:
    """Every merge of two text entries into a third, by descending rank of the result.

    Equal ranks go by the id of the result, since training numbers entries as it finds them; ways
    of making the same entry go by the ids of their parts.
    """
    ids = {
        token: i
        for i, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (NORMAL, USER_DEFINED)
    }
    merges: list[tuple[float, int, int, int, str, str]] = []
    for token, index in ids.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in ids and right in ids:
                merges.append((-ranks[index], index, ids[left], ids[right], left, right))
    return [(left, right) for *_, left, right in sorted(merges)]
