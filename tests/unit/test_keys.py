"""Keys: what is written can be read back, and no input makes a key of another corpus, tag or question."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardqa import keys
from shardqa.errors import BadCorpusName, BadDocumentId, BadKey, EmptyQuestion

corpora = st.text(string.ascii_lowercase + string.digits + "._-", min_size=1, max_size=keys.MAX_CORPUS)
documents = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=100).filter(
    lambda document: document not in (".", "..")
)
epochs = st.integers(0, 2**53)


@given(corpora, documents)
def test_a_document_key_gives_back_corpus_and_id(corpus: str, document: str) -> None:
    found = keys.parse_doc(keys.doc(corpus, document))
    assert (found.corpus, found.document) == (corpus, document)


@given(corpora, documents, st.integers(0, 10**6))
def test_a_passage_key_gives_back_document_and_number(corpus: str, document: str, n: int) -> None:
    found = keys.parse_passage(keys.passage(corpus, document, n))
    assert (found.corpus, found.document, found.n) == (corpus, document, n)


@given(corpora, documents, st.integers(0, 10**6))
def test_all_that_belongs_to_a_document_shares_its_hash_tag(corpus: str, document: str, n: int) -> None:
    made = {keys.doc(corpus, document), keys.passage(corpus, document, n), keys.tokens(corpus, document, n)}
    assert len({key[key.index("{") : key.index("}")] for key in made}) == 1


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="{}"), min_size=1),
    st.from_regex(r"[0-9A-Za-z]{1,3}", fullmatch=True),
)
def test_a_model_key_gives_back_its_name(name: str, tag: str) -> None:
    assert keys.name_of_model(keys.model(name, tag)) == name


@pytest.mark.parametrize(
    "key", ["model:reader", "model:reader:06S", "model::{06S}", "model:a:{06S}x", "mymodel:a:{06S}"]
)
def test_any_other_key_names_no_model(key: str) -> None:
    assert keys.name_of_model(key) is None


@given(corpora, documents, st.integers(0, 9))
def test_the_tokens_key_follows_from_the_passage_key(corpus: str, document: str, n: int) -> None:
    assert keys.tokens_of_passage(keys.passage(corpus, document, n)) == keys.tokens(corpus, document, n)


@given(corpora, epochs, st.integers(1, 100), st.text(st.characters(codec="utf-8"), min_size=1))
def test_an_answer_key_gives_back_its_question(corpus: str, epoch: int, k: int, question: str) -> None:
    try:
        normal = keys.normalise_question(question)
    except EmptyQuestion:
        return
    found = keys.parse_answer(keys.answer(corpus, "06S", epoch, "reader", k, normal))
    assert found == keys.AnswerKey(corpus, "06S", epoch, "reader", k, keys.question_in_key(normal))


@given(st.text(st.characters(codec="utf-8")))
def test_normalising_twice_changes_nothing(question: str) -> None:
    try:
        once = keys.normalise_question(question)
    except EmptyQuestion:
        return
    assert keys.normalise_question(once) == once


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_question_in_a_key_is_bounded(question: str) -> None:
    assert len(keys.question_in_key(question).encode()) <= keys.MAX_QUESTION_IN_KEY


@pytest.mark.parametrize("other", ["  Who  wrote\tIt ??", "who wrote it.", "WHO WROTE IT", "who\u3000wrote it？"])
def test_case_blanks_and_the_end_do_not_make_another_question(other: str) -> None:
    assert keys.normalise_question(other) == keys.normalise_question("Who wrote it?")


@pytest.mark.parametrize(
    ("question", "other"),
    [
        ("Who created C#?", "Who created C?"),
        ("Who created C++?", "Who created C?"),
        ("Who created C+?", "Who created C++?"),
        ("Who created F#?", "Who created F?"),
        (".NET was created by?", "NET was created by?"),
        ("#1 hit of 1999?", "1 hit of 1999?"),
        ("What is 10⁵?", "What is 105?"),
        ("What is x²?", "What is x2?"),
        ("What is 5!?", "What is 5?"),
        ("What is ½?", "What is 1/2?"),
        ("Was sind Maße?", "Was sind Masse?"),
        ("What does cd .. do in .?", "What does cd .. do in ..?"),
        ("What is Ⅷ?", "What is VIII?"),
        ("What ends in ς?", "What ends in σ?"),
        ("What means a:b?", "What means a b?"),
        ("Who wrote 'It'?", "Who wrote It?"),
        ("What is -5?", "What is 5?"),
        ("What is 3,5?", "What is 35?"),
        ("Who created C♯?", "Who created C?"),
        ("Is a ≠ b?", "Is a = b?"),
        ("Có bao nhiêu?", "Co bao nhieu?"),
        ("Is a ∉ b?", "Is a ∈ b?"),
        ("Who created C\u200d?", "Who created C?"),
    ],
)
def test_questions_that_differ_to_a_reader_have_different_keys(question: str, other: str) -> None:
    assert keys.normalise_question(question) != keys.normalise_question(other)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_no_question_looks_like_a_hashed_one(question: str) -> None:
    try:
        assert not keys.normalise_question(question).startswith(keys.HASHED)
    except EmptyQuestion:
        return


@pytest.mark.parametrize("question", ["", "   ", "?!", "\n\t", "…", "#", "¿?"])
def test_a_question_without_words_is_refused(question: str) -> None:
    with pytest.raises(EmptyQuestion):
        keys.normalise_question(question)


@pytest.mark.parametrize("corpus", ["", "A", "a b", "a:b", "a{b", "ä", "x" * 65])
def test_a_bad_corpus_name_is_refused_with_the_form_wanted(corpus: str) -> None:
    with pytest.raises(BadCorpusName, match="a-z0-9"):
        keys.doc(corpus, "x")


@pytest.mark.parametrize("document", ["", ".", "..", "a\nb", "x" * 513, "\x00", "\ud800"])
def test_a_bad_document_id_is_refused(document: str) -> None:
    with pytest.raises(BadDocumentId):
        keys.doc("c", document)


def test_a_document_under_a_tag_that_is_not_its_bucket_is_refused_with_the_right_key() -> None:
    with pytest.raises(BadKey, match=r"doc:c:\{b"):
        keys.parse_doc("doc:c:{b9999}:x")


@pytest.mark.parametrize(
    "key", ["passage:c:{b0001}:x", "passage:c:{b0001}::1", "passage:c:x:1", "doc:c:{b}:x:1", "passage:c:{b}:x:²"]
)
def test_a_key_that_is_no_passage_is_refused(key: str) -> None:
    with pytest.raises(BadKey):
        keys.parse_passage(key)


@given(epochs, epochs)
def test_an_epoch_always_rises(previous: int, now: int) -> None:
    assert keys.next_epoch(previous, now) > previous


def test_the_epoch_of_a_corpus_changes_with_any_shard() -> None:
    assert keys.corpus_epoch({"06S": 1, "5M5": 2}) != keys.corpus_epoch({"06S": 1, "5M5": 3})
    assert keys.corpus_epoch({"06S": 1, "5M5": 2}) == keys.corpus_epoch({"5M5": 2, "06S": 1})


@pytest.mark.parametrize(("document", "tag"), [("cia/France", "b0139"), ("handbook.pdf", "b0128"), ("é", "b0062")])
def test_the_tag_of_a_document_stays_what_it_is(document: str, tag: str) -> None:
    """Stored keys hold it."""
    assert keys.bucket(document) == tag


def test_the_longest_name_of_a_corpus_is_taken() -> None:
    assert keys.check_corpus("a" * keys.MAX_CORPUS)


def test_the_longest_question_stands_in_its_key_as_it_is() -> None:
    longest = "a" * keys.MAX_QUESTION_IN_KEY
    assert keys.question_in_key(longest) == longest
    assert keys.question_in_key(longest + "a").startswith(keys.HASHED)
