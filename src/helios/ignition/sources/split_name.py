"""The names of the files that a split GGUF model comes in: `NAME-00001-of-00003.gguf`."""

import re

SPLIT_NAME = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.gguf)?")
