"""Who owns which page: the pool, one job, or the prefix tree that lends it to many."""

from collections.abc import Iterator

from helios.contract.submission import Geometry
from helios.scheduler.job import Job
from helios.scheduler.pages import PagePool
from helios.scheduler.prefix import PageKey, PrefixTree
from helios.scheduler.snapshots import SnapshotRows, Tail


class Residency:
    """Seats jobs on pages, publishes what they wrote, and takes pages back."""

    def __init__(self, geometry: Geometry, *, restores: bool, prefix_cache: bool) -> None:
        self._page_tokens = geometry.page_tokens
        self._recurrent = geometry.recurrent
        self._caches = prefix_cache and (restores or not geometry.recurrent)
        self.pool = PagePool(geometry.pages)
        self.rows = SnapshotRows(geometry.snapshots if restores else 0, exact=geometry.recurrent)
        self.tree = PrefixTree(self.rows)
        self.pages_evicted = 0
        self.snapshots_evicted = 0
        self.snapshots_published = 0

    @property
    def available(self) -> int:
        """How many pages can be had without taking any from a job."""
        return self.pool.free + self.tree.unreferenced

    def pages_for(self, tokens: int) -> int:
        """How many pages hold that many tokens."""
        return -(-tokens // self._page_tokens)

    # ---- a job's pages -----------------------------------------------------------------------

    def seat(self, job: Job, tokens: int, spare: int) -> int:
        """Give a job what is cached of it and pages for `tokens` in all, or nothing.

        Cached tokens are at most `job.fill_to`, less the one from which the first output is
        drawn. `spare` pages must be left for others. Returns 0, or where that is not to be had,
        how many pages (at least one: there is a token to consume) it lacks beside the spare ones.
        """
        endpoint = self._lock_prefix(job)
        needed = self.pages_for(tokens) - len(job.pages)
        if needed + spare > self.available:
            missing = needed + sum(1 for node in job.path[1:] if node.references == 1)
            self._let_go(job)
            return missing
        job.pages.extend(self._page() for _ in range(needed))
        job.consumed = job.ahead = endpoint
        job.sent = 0
        return 0

    def grow(self, job: Job) -> bool:
        """Give a job one more page, from the pool or from what is cached and unused."""
        page = self._page()
        if page < 0:
            return False
        job.pages.append(page)
        return True

    def publish(self, job: Job, endpoint: int) -> None:
        """Share the complete pages of what a job has consumed up to `endpoint`."""
        if not self._shares(job):
            return
        if not job.path:
            job.path = self.tree.lock(job.request.cache_salt, iter(()))
        for index in range(len(job.path) - 1, endpoint // self._page_tokens):
            self.tree.extend(job.path, self._key(job, index), job.pages[index])

    def release(self, job: Job) -> None:
        """Take back a job's pages: published ones stay in the tree, the others are free."""
        path = job.path
        for index, page in enumerate(job.pages):
            if index + 1 >= len(path) or path[index + 1].page != page:
                self.pool.give(page)
        self._let_go(job)

    # ---- snapshots ---------------------------------------------------------------------------

    def reserve_row(self, job: Job, endpoint: int) -> int:
        """A row for a snapshot of the job at `endpoint`, or -1 where none is useful or free."""
        rest = endpoint % self._page_tokens
        if not self.rows.total or not self._shares(job) or not (rest or self._recurrent):
            return -1
        complete = endpoint // self._page_tokens
        if len(job.path) > complete:
            elements = tuple(job.identity[endpoint - rest : endpoint])
            if self.rows.covering(job.path[complete], elements) is not None:
                return -1
        if not self.rows.free and (oldest := self.rows.oldest()) is not None:
            self.tree.drop_tail(oldest)
            self.snapshots_evicted += 1
        return self.rows.take()

    def publish_row(self, job: Job, endpoint: int, row: int) -> None:
        """Share a snapshot that a step has written."""
        self.publish(job, endpoint)
        complete = endpoint // self._page_tokens
        elements = tuple(job.identity[complete * self._page_tokens : endpoint])
        if self.rows.publish(job.path[complete], elements, row):
            self.snapshots_published += 1

    def may_close(self, job: Job, endpoint: int, *, rewinds: bool, alone: bool) -> bool:
        """Whether a finished job could keep the page that it ends in, and that is worth a step."""
        if rewinds if self._recurrent else not alone:
            return False
        inside = endpoint % self._page_tokens > 0 or self._recurrent
        backed = endpoint <= len(job.pages) * self._page_tokens
        return inside and backed and self._shares(job) and self.rows.total > 0

    def restored(self, job: Job) -> None:
        """The step that read the job's snapshot is over."""
        if job.tail is not None:
            self.rows.unpin(job.tail)
            job.tail = None

    # ---- inside ------------------------------------------------------------------------------

    def _shares(self, job: Job) -> bool:
        return self._caches and job.request.use_cache

    def _lock_prefix(self, job: Job) -> int:
        """Lock what is cached of a job; returns the endpoint from which it goes on."""
        if not self._shares(job) or job.scores_prompt:
            return 0
        most = job.fill_to - job.samples
        job.path = self.tree.lock(job.request.cache_salt, self._keys(job, most))
        tail, endpoint = self._best_endpoint(job, most)
        self.tree.cut(job.path, endpoint // self._page_tokens + 1)
        job.pages = [node.page for node in job.path[1:]]
        if tail is not None:
            self.rows.pin(tail)
            job.tail = tail
        return endpoint

    def _best_endpoint(self, job: Job, most: int) -> tuple[Tail | None, int]:
        """The snapshot to restore, if one helps, and the endpoint reached."""
        size = self._page_tokens
        depth = len(job.path) - 1
        if not self._recurrent:
            tail, length = self._best_tail(job, depth, most)
            return tail, depth * size + length
        for level in range(depth, -1, -1):
            tail, length = self._best_tail(job, level, most)
            if tail is not None:
                return tail, level * size + length
        return None, 0

    def _best_tail(self, job: Job, level: int, most: int) -> tuple[Tail | None, int]:
        start = level * self._page_tokens
        rest = job.identity[start : min(start + self._page_tokens, most)]
        return self.rows.best(job.path[level], rest)

    def _keys(self, job: Job, most: int) -> Iterator[PageKey]:
        for index in range(most // self._page_tokens):
            yield self._key(job, index)

    def _key(self, job: Job, index: int) -> PageKey:
        start = index * self._page_tokens
        return tuple(job.identity[start : start + self._page_tokens])

    def _page(self) -> int:
        page = self.pool.take()
        if page < 0 and (page := self.tree.evict()) >= 0:
            self.pages_evicted += 1
        return page

    def _let_go(self, job: Job) -> None:
        self.restored(job)
        if job.path:
            self.tree.unlock(job.path)
        job.path = []
        job.pages = []
