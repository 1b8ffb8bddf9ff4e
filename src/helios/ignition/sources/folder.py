"""The files of a checkpoint folder, with a record of which were read."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from helios.errors import SourceError
from helios.ignition.sources.mapping import digest, map_file

MAX_SMALL = 1 << 28


class Folder:
    """Reads small files whole and remembers the name of every file that matters."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: set[str] = set()

    def sha256(self) -> bytes:
        """The digest of the names and digests of every file read."""
        state = hashlib.sha256()
        for name in sorted(self._read):
            state.update(name.encode() + b"\0" + digest(map_file(self.path / name)))
        return state.digest()

    def file(self, name: str) -> Path:
        """The path of a file that is read elsewhere."""
        self._read.add(name)
        return self.path / name

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file()

    def bytes(self, name: str) -> bytes | None:
        """The content of a small file, or None if there is none."""
        if name not in self:
            return None
        size = (self.path / name).stat().st_size
        if size > MAX_SMALL:
            raise SourceError(
                f"larger than {MAX_SMALL} bytes",
                field=name,
                value=size,
                remedy="use the original file",
            )
        return self.file(name).read_bytes()

    def text(self, name: str) -> str | None:
        """The content of a small text file, or None if there is none."""
        content = self.bytes(name)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError as error:
            raise SourceError(
                f"not UTF-8 text: {error}", field=name, remedy="download the folder again"
            ) from None

    def json(self, name: str) -> Mapping[str, object]:
        """The object in a small JSON file; empty if there is no such file."""
        content = self.bytes(name)
        try:
            value = {} if content is None else json.loads(content)
        except (ValueError, RecursionError) as error:
            raise SourceError(
                f"not readable as JSON: {error}", field=name, remedy="download the folder again"
            ) from None
        if not isinstance(value, dict):
            raise SourceError(
                "must be a JSON object",
                field=name,
                value=type(value).__name__,
                remedy="download the folder again",
            )
        return value
