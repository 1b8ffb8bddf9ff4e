"""Masks between scheduler and device: asked for once a step, checked, and failing alone."""

import pytest
from scheduler_harness import Driver, OnlyMultiples, geometry, request

from helios.errors import DeviceError
from helios.scheduler.events import Failed, Finished
from helios.scheduler.masks import next_mask

VOCABULARY = 97


class Fixed(OnlyMultiples):
    """A monitor that always says the same."""

    def __init__(self, mask: object) -> None:
        super().__init__()
        self._mask = mask

    def accept(self, token: int) -> bool:
        return False

    def mask(self) -> bytes | None:
        return self._mask  # type: ignore[return-value]


@pytest.mark.parametrize(
    "mask",
    [
        b"",
        bytes(13),
        bytes(16),
        bytes(12) + b"\xfe",  # bits 97 to 103 name no token
        bytes(13) + b"\xff" * 3,
        bytes(16) + b"\xff",
    ],
)
def test_a_mask_that_allows_no_token_is_refused(mask: bytes) -> None:
    with pytest.raises(DeviceError, match="no token is allowed"):
        next_mask(Fixed(mask), VOCABULARY)


@pytest.mark.parametrize("mask", [b"\x01", bytes(12) + b"\x01", bytes(3) + b"\x80" + bytes(12)])
def test_a_mask_that_allows_one_token_is_enough_and_comes_in_whole_words(mask: bytes) -> None:
    assert next_mask(Fixed(mask), VOCABULARY) == mask.ljust(16, b"\0")


def test_a_mask_is_no_longer_than_the_vocabulary() -> None:
    assert next_mask(Fixed(b"\xff" * 40), VOCABULARY) == b"\xff" * 16
    assert next_mask(Fixed(None), VOCABULARY) is None


@pytest.mark.parametrize("mask", [bytes(13), "text", 7, [1, 2]])
def test_a_monitor_without_a_mask_fails_alone(mask: object) -> None:
    driver = Driver(geometry())
    good = request(2, range(9), 8, monitor=OnlyMultiples(), constrained=True)
    plain = request(3, range(7), 8)
    driver.admit(request(1, range(6), 8, monitor=Fixed(mask), constrained=True), good, plain)
    driver.run()
    end = driver.end(1)
    assert isinstance(end, Failed)
    assert "monitor failed" in end.message
    assert driver.tokens(1) == ()
    driver.check(good, OnlyMultiples())
    driver.check(plain)
    assert driver.scheduler.fault is None


def test_a_step_whose_masks_never_come_fails_its_requests() -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(6), 8, monitor=OnlyMultiples(), constrained=True))
    driver.step()
    submission = driver.scheduler.next()
    assert submission is not None
    assert submission.masked
    driver.device.submit(submission)
    driver.complete()
    end = driver.end(1)
    assert isinstance(end, Failed)
    assert "no masks were supplied" in end.message
    driver.admit(request(2, range(6), 4))
    driver.run()
    assert isinstance(driver.end(2), Finished)


def test_a_cancelled_request_needs_no_mask() -> None:
    asked: list[int] = []

    class Counting(OnlyMultiples):
        def mask(self) -> bytes | None:
            asked.append(self.factor)
            return super().mask()

    driver = Driver(geometry())
    driver.admit(request(1, range(6), 8, monitor=Counting(), constrained=True))
    driver.step()
    submission = driver.scheduler.next()
    assert submission is not None
    driver.device.submit(submission)
    driver.cancel(1)
    masks, events = driver.scheduler.masks()
    assert (masks, events, asked) == ([(None,)], [], [])
    driver.device.supply(submission.sequence, masks)
    driver.complete()
    assert driver.scheduler.idle
