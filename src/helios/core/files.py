"""The files of a core, opened once and read by position.

A core may lie in several files of one folder. Names in the unsigned location set can't lead
elsewhere: paths are relative, every step is opened beneath the folder already open, and links
are not followed. A file is mapped only if nobody but its owner, who is this user or root, can
change it; otherwise its bytes are copied, so that what was hashed is what is used.
"""

import errno
import mmap
import os
import stat
from io import FileIO
from pathlib import Path

from helios.errors import CoreError

MAX_FILES = 256
MAX_NAME_CHARACTERS = 1024

# Not blocking: opening a named pipe must not hang.
_FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY


class SourceFile:
    """An open regular file. Reads carry their position, so threads may share it.

    `identity` tells files apart whatever their names; `copy_reason` says why the file must not
    be mapped, or is empty.
    """

    __slots__ = ("_file", "copy_reason", "identity", "name", "nbytes")

    def __init__(self, name: str, descriptor: int, folder: int) -> None:
        """Take over `descriptor`, open for reading in the folder open as `folder`."""
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            os.close(descriptor)
            raise CoreError("is not a regular file", field=name)
        self._file = FileIO(descriptor, "r")
        self.name = name
        self.nbytes = facts.st_size
        self.identity = (facts.st_dev, facts.st_ino)
        self.copy_reason = _copy_reason(facts, os.fstat(folder))

    def read(self, offset: int, nbytes: int) -> bytes:
        """Exactly these bytes; `CoreError` if the file does not have them."""
        self._check_range(offset, nbytes)
        data = bytearray(nbytes)
        self.read_into(offset, memoryview(data))
        return bytes(data)

    def read_into(self, offset: int, view: memoryview) -> None:
        """Fill `view` with the bytes from `offset`."""
        while len(view):
            try:
                count = os.preadv(self._file.fileno(), [view], offset)
            except (OSError, ValueError) as error:  # ValueError: the file is closed
                raise CoreError(f"can't be read: {error}", field=self.name) from error
            if count == 0:
                raise self._cut_off(offset)
            view = view[count:]
            offset += count

    def map(self, offset: int, nbytes: int) -> memoryview:
        """A read-only, private mapping of these bytes, which lives as long as views of it do."""
        self._check_range(offset, nbytes)
        before = offset % mmap.ALLOCATIONGRANULARITY
        try:
            mapping = mmap.mmap(
                self._file.fileno(),
                nbytes + before,
                flags=mmap.MAP_PRIVATE,
                prot=mmap.PROT_READ,
                offset=offset - before,
            )
        except (OSError, ValueError, OverflowError) as error:
            raise CoreError(f"can't be mapped: {error}", field=self.name) from error
        return memoryview(mapping)[before:]

    def close(self) -> None:
        """Close the file; mappings live on."""
        self._file.close()

    def _check_range(self, offset: int, nbytes: int) -> None:
        # Before memory is reserved: a length that lies must not cost any.
        if offset + nbytes > self.nbytes:
            raise self._cut_off(self.nbytes)

    def _cut_off(self, offset: int) -> CoreError:
        return CoreError(
            "the file ends too early",
            field=self.name,
            value=offset,
            remedy="the core was cut off; copy it again",
        )


class CoreFolder:
    """A core file and the folder it lies in, through which files beside it are reached."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            real = Path(path).resolve(strict=True)
            self._folder = os.open(real.parent, _FOLDER_FLAGS)
        except (OSError, ValueError, RuntimeError) as error:  # a NUL; a loop of links
            raise CoreError(f"can't be opened: {_reason(error)}", field=str(path)) from error
        self._files: dict[str, SourceFile] = {}
        try:
            self.core = self._open(self._folder, real.name, str(path))
        except BaseException:
            os.close(self._folder)
            raise
        self._files[""] = self.core

    def file(self, name: str) -> SourceFile:
        """The file of that relative name beneath the folder; the core itself for ""."""
        if name not in self._files:
            if len(self._files) >= MAX_FILES:
                raise CoreError(
                    f"a core may be spread over at most {MAX_FILES} files", field="locations"
                )
            self._files[name] = self._open_beneath(name)
        return self._files[name]

    def settle(self) -> None:
        """Let go of the folder: no further file will be asked for."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def close(self) -> None:
        """Close every file; mappings live on."""
        for file in self._files.values():
            file.close()
        self.settle()

    def _open_beneath(self, name: str) -> SourceFile:
        parts = _parts(name)
        folder = os.dup(self._folder)
        try:
            for part in parts[:-1]:
                folder = _step(folder, part, name)
            return self._open(folder, parts[-1], name)
        finally:
            os.close(folder)

    @staticmethod
    def _open(folder: int, part: str, name: str) -> SourceFile:
        try:
            descriptor = os.open(part, _FILE_FLAGS, dir_fd=folder)
        except (OSError, ValueError) as error:  # ValueError: no such name in this locale
            raise _not_opened(error, name) from error
        return SourceFile(name, descriptor, folder)


def _parts(name: str) -> list[str]:
    parts = name.split("/")
    bad = any(part in ("", ".", "..") for part in parts)
    if bad or "\0" in name or len(name) > MAX_NAME_CHARACTERS:
        raise CoreError(
            "a location must name a file beneath the core's own folder",
            field="locations.file",
            value=name,
            remedy="use a relative path without '.', '..' or empty parts",
        )
    return parts


def _step(folder: int, part: str, name: str) -> int:
    """Open folder `part` of `folder`, which is closed; without it `folder` stays open."""
    try:
        inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise _not_opened(error, name) from error
    os.close(folder)
    return inner


def _not_opened(error: OSError | ValueError, name: str) -> CoreError:
    # A link where a folder was asked for reads as ENOTDIR on Linux.
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENOTDIR):
        return CoreError(
            "leads through a symbolic link or something that is no folder",
            field="locations.file",
            value=name,
            remedy="put the file itself beside the core",
        )
    return CoreError(f"can't be opened: {_reason(error)}", field=name)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _copy_reason(file: os.stat_result, folder: os.stat_result) -> str:
    trusted = (os.geteuid(), 0)
    if file.st_uid not in trusted or folder.st_uid not in trusted:
        return "it, or its folder, belongs to another user"
    if file.st_mode & 0o022:
        return f"others may write to it (mode {stat.S_IMODE(file.st_mode):04o})"
    if folder.st_mode & 0o022 and not folder.st_mode & stat.S_ISVTX:
        return f"others may write to its folder (mode {stat.S_IMODE(folder.st_mode):04o})"
    return ""
