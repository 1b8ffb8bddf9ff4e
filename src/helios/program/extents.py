"""The extents of language programs, by the names every recipe and runtime uses."""

ROWS = "B"  # lanes of a submission
TOKENS = "T"  # packed tokens of a submission, over all lanes
SAMPLED = "S"  # lanes whose last token is sampled from
SLOTS = "R"  # request slots; chosen at load
PAGES = "N"  # cache pages; chosen at load
CONTINUATIONS = "C"  # continuation rows; chosen at load
