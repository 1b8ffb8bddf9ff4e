"""The page pool: which physical pages nobody uses."""

from helios.errors import DeviceError


class PagePool:
    """Pages by number. Every page is free here or owned by exactly one holder elsewhere."""

    def __init__(self, pages: int) -> None:
        self.total = pages
        self._free = list(range(pages - 1, -1, -1))
        self._taken = bytearray(pages)

    @property
    def free(self) -> int:
        """How many pages nobody uses."""
        return len(self._free)

    def take(self) -> int:
        """A free page, now the caller's, or -1."""
        if not self._free:
            return -1
        page = self._free.pop()
        self._taken[page] = 1
        return page

    def give(self, page: int) -> None:
        """Return a page. Raises `DeviceError` for one that is already free."""
        if not self._taken[page]:
            raise DeviceError("a page was freed twice", field="pages", value=page)
        self._taken[page] = 0
        self._free.append(page)

    def is_free(self, page: int) -> bool:
        """Whether the page is free."""
        return not self._taken[page]
