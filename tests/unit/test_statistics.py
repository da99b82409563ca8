"""Statistics of a corpus: sums over shards in any order, and what is refused as one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa.errors import BadData
from shardqa.statistics import COUNTS, CorpusStatistics, total

COUNT = st.integers(0, 99)
BY_TERM = st.dictionaries(st.text(), COUNT)
RECORDS = st.fixed_dictionaries({**dict.fromkeys(COUNTS, COUNT), "df": BY_TERM, "cf": BY_TERM})


@given(st.lists(RECORDS))
def test_statistics_add_up_in_any_order(records: list[dict[str, Any]]) -> None:
    parts = [CorpusStatistics.parse(record) for record in records]
    assert total(parts) == total(parts[::-1])
    assert total(parts).passages == sum(record["passages"] for record in records)


def test_tags_and_epochs_are_not_summed() -> None:
    replies = [{"tag": "06S", "epoch": 5, "documents": 1}, {"tag": "5M5", "epoch": 6, "documents": 2}]
    assert total(map(CorpusStatistics.parse, replies)) == CorpusStatistics(0, 3, 0, 0, {}, {})


@pytest.mark.parametrize("record", [[], {"documents": -1}, {"documents": True}, {"df": []}, {"cf": {"a": 0.5}}])
def test_what_is_no_sum_of_counts_is_refused(record: object) -> None:
    with pytest.raises(BadData, match="statistics"):
        CorpusStatistics.parse(record)
