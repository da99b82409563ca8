"""A training file out of many: what is held out, what is left out, negatives, and the same bytes from the same seed."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardqa.errors import BadData
from shardqa.models import shipped
from shardqa_toolchain import squad
from shardqa_toolchain.training import mixture
from shardqa_toolchain.training.mixture import Mixture, MixtureSource
from shardqa_toolchain.training.retrieved import PassageRows
from shardqa_toolchain.training.styles import Styles
from toolchain.tests import tiny

RECIPES = sorted((Path(__file__).parents[2] / "recipes" / "mixtures").glob("*.toml"))


def villages(path: Path, count: int = 40, together: bool = False) -> Path:
    """Writes a SQuAD file of so many paragraphs, each an article or all of them one."""
    articles: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for number in range(count):
        text = f"The village {number} lies on hill {number}. Its church has {number} bells."
        question = tiny.question(f"q{number}", f"How many bells has village {number}?", text, f"{number} bells")
        articles.setdefault("all" if together else f"article {number}", {})[text] = [question]
    return tiny.write_squad(path, articles)


def mixed(tmp_path: Path, *sources: MixtureSource, **settings: Any) -> tuple[dict[str, Any], squad.QuestionSet]:
    """Returns the manifest, and what may be learnt from."""
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    manifest = mixture.mix(Mixture(tokenizer=str(shipped.folder()), sources=sources, **settings), out)
    return manifest, squad.read_squad(out / mixture.TRAIN_FILE)


def test_documents_held_out_are_in_their_own_file_and_never_learnt_from(tmp_path: Path) -> None:
    file = villages(tmp_path / "set.json")
    manifest, learnt = mixed(tmp_path, MixtureSource(str(file), held_out=0.3))
    held_out = squad.read_squad(next(tmp_path.glob("out-*/held-out/set.json.gz")))
    titles = {one.title for one in held_out.paragraphs}
    assert titles
    assert not titles & {one.title for one in learnt.paragraphs}
    assert len(learnt.questions) + len(held_out.questions) == 40
    assert manifest["taken"]["set.json"] == {"learnt": len(learnt.questions), "held_out": len(held_out.questions)}


def test_paragraphs_of_one_title_are_held_out_one_by_one_where_told(tmp_path: Path) -> None:
    file = villages(tmp_path / "set.json", together=True)
    _, learnt = mixed(tmp_path, MixtureSource(str(file), held_out=0.3, by_context=True))
    assert 0 < len(learnt.questions) < 40


def test_a_paragraph_that_measures_is_left_out_however_it_is_spaced(tmp_path: Path) -> None:
    text = "the  VILLAGE 1 lies on hill 1. Its church has 1 bells."
    apart = tiny.write_squad(tmp_path / "apart.json", {"other": {text: []}})
    _, learnt = mixed(tmp_path, MixtureSource(str(villages(tmp_path / "set.json", 3))), apart=(str(apart),))
    assert {one.title for one in learnt.paragraphs} == {"article 0", "article 2"}


def test_a_negative_is_a_passage_that_is_alike_and_lacks_the_answer(tmp_path: Path) -> None:
    file = villages(tmp_path / "set.json", 12)
    manifest, learnt = mixed(tmp_path, MixtureSource(str(file), negatives=1.0))
    texts = {one.id: one.text for one in learnt.paragraphs}
    answers = {f"q{number}#no": f"{number} bells" for number in range(12)}
    negatives = [one for one in learnt.questions if not one.answers]
    assert manifest["negatives"] == len(negatives) > 0
    assert not [one.id for one in negatives if answers[one.id] in texts[one.document or ""]]


def test_copies_have_an_id_and_a_style_of_their_own_and_unanswerable_ones_may_be_taken_alone(tmp_path: Path) -> None:
    file = str(tiny.question_set(tmp_path / "set.json"))
    _, learnt = mixed(tmp_path, MixtureSource(file, copies=3), styles=Styles(0.5))
    assert len(learnt.questions) == len({one.id for one in learnt.questions}) == 12
    assert len({one.text for one in learnt.questions if one.id.startswith("r1")}) == 2
    _, learnt = mixed(tmp_path, MixtureSource(file, answerable=False))
    assert [one.id for one in learnt.questions] == ["r3#0"]


def test_every_answer_stands_where_the_file_says(tmp_path: Path) -> None:
    _, learnt = mixed(tmp_path, MixtureSource(str(villages(tmp_path / "set.json", 9)), share=0.5, negatives=0.5))
    texts = {one.id: one.text for one in learnt.paragraphs}
    for one in learnt.questions:
        for answer, start in zip(one.answers, one.starts, strict=True):
            assert texts[one.document or ""].startswith(answer, start)


def test_one_seed_gives_one_file_and_another_another(tmp_path: Path) -> None:
    source = MixtureSource(str(villages(tmp_path / "set.json")), share=0.5, negatives=0.5)
    base = Mixture(tokenizer=str(shipped.folder()), styles=Styles(0.2, 0.2, 0.2, 0.2), sources=(source,))
    files = []
    for number, seed in enumerate((1, 1, 2)):
        mixture.mix(replace(base, seed=seed), tmp_path / f"seed-{number}")
        files.append((tmp_path / f"seed-{number}" / mixture.TRAIN_FILE).read_bytes())
    assert files[0] == files[1] != files[2]
    assert gzip.decompress(files[0])


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_shipped_mixture_holds_settings_that_fit_and_sets_squads_dev_apart(path: Path) -> None:
    found = Mixture.read(path)
    assert not [one.file for one in found.sources if "squad/dev" in one.file]
    assert [Path(name).name for name in found.apart] == ["dev-v1.1.json.gz", "dev-v2.0.json.gz"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1", "has no"),
        ("[[sources]]\nfile = 'a'\nshare = 0", "share is 0.0, above 0, at most 1 is needed"),
        ("[[sources]]\nfile = 'a'\ncopy = 2", "'copy' is unknown"),
        ("[[sources]]\nheld_out = 0.1", "file is '', a SQuAD file, or one of questions with evidence is needed"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mixture.toml").write_text(text)
    with pytest.raises(BadData, match=message):
        Mixture.read(tmp_path / "mixture.toml")


PASSAGES = PassageRows([np.array(pieces, np.int32) for pieces in ([1, 2, 3], [1, 2, 9], [1, 4, 5], [6, 7, 8])])


def test_the_search_puts_what_shares_the_rarer_wordpieces_first_and_leaves_out_what_shares_nothing() -> None:
    assert PASSAGES.likest(np.array([1, 2, 9], np.int32), 2) == [1, 0]
    assert PASSAGES.likest(np.array([7, 999], np.int32), 3) == [3]
