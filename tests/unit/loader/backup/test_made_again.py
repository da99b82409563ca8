"""A backup leaves out what is made again from documents, also where all keys are asked for."""

import pytest

from shardqa import keys
from shardqa.loader.backup.dump import MADE_AGAIN

PASSAGE = keys.passage("c", "a document", 3)


@pytest.mark.parametrize("key", [PASSAGE, keys.tokens_of_passage(PASSAGE)])
def test_what_a_document_becomes_is_made_again(key: str) -> None:
    assert MADE_AGAIN.match(key.encode())
    assert not MADE_AGAIN.match(keys.doc_of_passage(PASSAGE).encode())


def test_keys_of_others_are_not() -> None:
    assert not MADE_AGAIN.match(b"passage:california")
