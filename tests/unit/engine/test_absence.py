"""Names of a question that no passage has."""

from shardqa.config import Settings
from shardqa.engine import absence
from shardqa.question import Question


def test_a_number_that_no_passage_has_is_told_where_another_of_its_kind_was_read() -> None:
    asked = Question.of("How long is route 67 of the club?", Settings())
    assert absence.names_of(asked, ["67"], "Route 66 of the club is 42 km long.") == ["67"]
    assert absence.names_of(asked, ["67"], "Route 67 of the club is 42 km long.") == []
