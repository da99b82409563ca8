"""When a call is made again: within its attempts, its seconds and the client's budget."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from shardqa.client.retries import Budget, Retries, is_passing, retry_after


def test_a_budget_is_spent_by_retries_and_earned_by_successes() -> None:
    budget = Budget(Retries(share=0.5, burst=2))
    assert [budget.pause(1, 0, None) is not None for _ in range(3)] == [True, True, False]
    budget.earn()
    assert budget.pause(1, 0, None) is None
    budget.earn()
    assert budget.pause(1, 0, None) is not None


def test_successes_save_up_no_more_than_the_burst() -> None:
    budget = Budget(Retries(share=1, burst=1))
    for _ in range(5):
        budget.earn()
    assert [budget.pause(1, 0, None) is not None for _ in range(2)] == [True, False]


def test_the_last_attempt_and_the_last_second_end_a_call() -> None:
    budget = Budget(Retries(attempts=3, seconds=10))
    assert budget.pause(2, 0, None) is not None
    assert budget.pause(3, 0, None) is None
    assert budget.pause(1, 9.95, None) is None


def test_a_server_s_wish_is_waited_for_where_there_is_time() -> None:
    budget = Budget(Retries(seconds=10))
    assert budget.pause(1, 0, 7.0) == 7.0
    assert budget.pause(1, 5, 7.0) is None


def test_pauses_grow() -> None:
    budget = Budget(Retries(attempts=9, burst=20))
    assert all((budget.pause(4, 0, None) or 0) > (budget.pause(1, 0, None) or 9) for _ in range(5))


@pytest.mark.parametrize(
    ("status", "media", "passing"),
    [
        (429, "application/problem+json", True),
        (503, "text/html", True),
        (504, "", True),
        (502, "text/html", True),
        (502, "application/problem+json", False),
        (500, "text/html", False),
        (422, "application/problem+json", False),
    ],
)
def test_what_may_pass(status: int, media: str, passing: bool) -> None:
    assert is_passing(status, {"content-type": media}) is passing


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after({"retry-after": "3"}) == 3.0
    assert retry_after({}) is None
    assert retry_after({"retry-after": "soon"}) is None
    soon = retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)})
    assert soon is not None
    assert 0 < soon <= 60
