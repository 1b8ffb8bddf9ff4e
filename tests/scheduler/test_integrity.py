"""The integrity check finds what it is there to find."""

from collections.abc import Callable

import pytest
from scheduler_harness import Driver, geometry, request

from helios.errors import DeviceError


def take_page(driver: Driver) -> None:
    driver.scheduler.residency.pool.take()


def share_page(driver: Driver) -> None:
    one, other = driver.scheduler.seated
    one.pages[-1] = other.pages[-1]


def forget_reference(driver: Driver) -> None:
    next(node for job in driver.scheduler.seated for node in job.path[1:]).references -= 1


def lose_row(driver: Driver) -> None:
    driver.scheduler.residency.rows.take()


def pin_row(driver: Driver) -> None:
    rows = driver.scheduler.residency.rows
    rows.pin(next(rows.tails()))


def lose_slot(driver: Driver) -> None:
    driver.scheduler._seating._free.pop()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (take_page, "has 0 owners"),
        (share_page, "has 2 owners"),
        (forget_reference, "counts 0 references"),
        (lose_row, "1 snapshot rows are lost"),
        (pin_row, "counts 1 readers"),
        (lose_slot, "slots are held by"),
    ],
)
def test_damage_is_found(damage: Callable[[Driver], None], problem: str) -> None:
    driver = Driver(geometry())
    driver.admit(request(1, range(10), 20), request(2, range(20, 30), 20))
    for _ in range(7):
        driver.step()
    assert driver.scheduler.check_integrity() == []
    damage(driver)
    assert any(problem in found for found in driver.scheduler.check_integrity())


def test_a_page_is_not_freed_twice() -> None:
    driver = Driver(geometry())
    with pytest.raises(DeviceError, match="freed twice"):
        driver.scheduler.residency.pool.give(0)
