"""The store of models: an address by content, names that point to it, and nothing half done."""

import errno
import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from shardqa.cli import app
from shardqa.errors import BadData, BadModel, SetupError
from shardqa.models import shipped
from shardqa.models.cards import Card, Score, address
from shardqa.models.store import DAMAGED, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def model(folder: Path, content: bytes = b"weights", card: Card | None = None) -> Path:
    folder.mkdir()
    (folder / "model.onnx").write_bytes(content)
    (folder / "config.json").write_text("{}")
    if card is not None:
        card.save(folder)
    return folder


def add_at_once(root: Path, folder: Path, name: str) -> str:
    """In a process of its own."""
    return Store(root).add(folder, name).address


def models(store: Store, *words: object) -> Any:
    return CliRunner().invoke(app, ["models", *map(str, words), "--store", str(store.root)])


def test_a_model_is_found_by_name_address_and_first_digits(store: Store, tmp_path: Path) -> None:
    added = store.add(model(tmp_path / "mine"))
    assert added.names == ("mine",)
    assert added.address == address(tmp_path / "mine")
    assert {store.find(word).address for word in ("mine", added.address, added.address[:8])} == {added.address}


def test_a_folder_is_found_without_being_added(store: Store, tmp_path: Path) -> None:
    assert store.find(str(model(tmp_path / "mine"))).address == address(tmp_path / "mine")


def test_the_shipped_reader_is_always_there(store: Store) -> None:
    (entry,) = store.entries()
    assert (entry.names, entry.kind, entry.shipped) == ((shipped.NAME,), "reader", True)
    assert store.find(shipped.NAME) == entry


def test_a_model_takes_the_name_of_its_card(store: Store, tmp_path: Path) -> None:
    assert store.add(model(tmp_path / "folder", card=Card("carded"))).names == ("carded",)


def test_a_card_that_gained_a_score_replaces_the_old_one(store: Store, tmp_path: Path) -> None:
    folder = model(tmp_path / "mine", card=Card("mine"))
    store.add(folder)
    Card("mine", scores=(Score("SQuAD 1.1 dev", "F1", 84.5),)).save(folder)
    assert store.add(folder).f1 == "84.50 (SQuAD 1.1 dev)"


def test_the_same_content_is_kept_once_under_two_names(store: Store, tmp_path: Path) -> None:
    folder = model(tmp_path / "mine")
    store.add(folder)
    assert store.add(folder, "other").names == ("mine", "other")
    assert len(store.entries()) == 2  # and the shipped one


def test_a_model_stays_while_another_name_uses_it(store: Store, tmp_path: Path) -> None:
    store.add(model(tmp_path / "mine"))
    store.add(tmp_path / "mine", "other")
    assert store.remove("mine") == ["other"]
    assert store.find("other").folder.is_dir()
    assert store.remove("other") == []
    assert not list((store.root / "models").iterdir())


def test_a_model_with_names_is_not_removed_by_its_address(store: Store, tmp_path: Path) -> None:
    added = store.add(model(tmp_path / "mine"))
    with pytest.raises(BadData, match="mine"):
        store.remove(added.address)


def test_a_model_without_a_name_is_removed_by_its_address(store: Store, tmp_path: Path) -> None:
    added = store.add(model(tmp_path / "mine"))
    (store.root / "names" / "mine").unlink()
    store.remove(added.address[:8])
    assert len(store.entries()) == 1


def test_the_shipped_reader_is_not_removed(store: Store) -> None:
    with pytest.raises(BadData, match="comes with shardqa"):
        store.remove(shipped.NAME)


def test_an_unknown_name_is_told_with_those_that_are_known(store: Store, tmp_path: Path) -> None:
    store.add(model(tmp_path / "mine"))
    for act in (store.find, store.remove):
        with pytest.raises(BadModel, match=rf"no model 'yours'.*{shipped.NAME}, mine"):
            act("yours")


def test_an_ambiguous_address_asks_for_more_digits(store: Store, tmp_path: Path) -> None:
    added = store.add(model(tmp_path / "mine"))
    twin = added.address[:8] + "0" * 56
    shutil.copytree(added.folder, added.folder.with_name(twin))
    with pytest.raises(BadModel, match="more digits"):
        store.find(added.address[:6])


def test_a_damaged_file_is_named(store: Store, tmp_path: Path) -> None:
    added = store.add(model(tmp_path / "mine"))
    (added.folder / "model.onnx").write_bytes(b"weighty")
    with pytest.raises(BadModel, match=r"model\.onnx is damaged: SHA-256"):
        store.find("mine")


def test_a_missing_file_is_named(store: Store, tmp_path: Path) -> None:
    (store.add(model(tmp_path / "mine")).folder / "config.json").unlink()
    with pytest.raises(BadModel, match=r"config\.json can't be read"):
        store.find("mine")


def test_files_exchanged_together_with_their_list_are_noticed(store: Store, tmp_path: Path) -> None:
    mine, other = store.add(model(tmp_path / "mine")), store.add(model(tmp_path / "other", b"others"))
    for name in ("model.onnx", "files.json"):
        shutil.copyfile(other.folder / name, mine.folder / name)
    with pytest.raises(BadModel, match=r"files\.json is damaged"):
        store.find("mine")


def test_adding_again_heals_a_damaged_model(store: Store, tmp_path: Path) -> None:
    added = store.add(model(tmp_path / "mine"))
    (added.folder / "files.json").write_text("no JSON")
    assert [entry.kind for entry in store.entries()][1:] == [DAMAGED]
    store.add(tmp_path / "mine")
    assert store.find("mine").kind == "onnx"


def test_a_name_of_another_model_is_not_taken_over(store: Store, tmp_path: Path) -> None:
    store.add(model(tmp_path / "mine"))
    with pytest.raises(BadData, match="choose another --name"):
        store.add(model(tmp_path / "other", b"others"), "mine")
    assert store.find("mine").address == address(tmp_path / "mine")


@pytest.mark.parametrize("name", ["", "../up", "a:b", "{a}", "-a", ".a", "a" * 65, "0123456789ab", "a\n", shipped.NAME])
def test_a_name_that_keys_or_files_cannot_hold_is_refused(store: Store, tmp_path: Path, name: str) -> None:
    folder = model(tmp_path / "a b")
    with pytest.raises(BadData, match="--name"):
        store.add(folder, name or None)


def test_a_folder_that_is_no_model_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="holds no model"):
        store.add(tmp_path, "mine")
    assert not store.root.exists()


def test_a_full_disk_leaves_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = model(tmp_path / "mine")
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(SetupError, match="is full"):
        store.add(folder)
    assert not list((store.root / "models").iterdir())
    assert not list((store.root / "names").iterdir())


def test_a_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match="--store"):
        Store(tmp_path / "file").add(model(tmp_path / "mine"))


def test_processes_that_add_at_once_all_succeed(store: Store, tmp_path: Path) -> None:
    folders = [model(tmp_path / f"m{number}", bytes([number % 2]) * 100_000) for number in range(4)]
    with ProcessPoolExecutor(4) as pool:
        jobs = [pool.submit(add_at_once, store.root, folder, folder.name) for folder in folders]
        addresses = [job.result() for job in jobs]
    assert addresses == [address(folder) for folder in folders]
    assert [entry.names for entry in store.entries()[1:]] in ([("m0", "m2"), ("m1", "m3")],)


def test_what_a_killed_process_left_is_cleared_away(store: Store, tmp_path: Path) -> None:
    store.add(model(tmp_path / "mine"))
    left = store.root / "models" / ".unfinished-x"
    left.mkdir()
    store.add(tmp_path / "mine", "other")
    assert not left.exists()


def test_list_shows_models_and_card_their_cards(store: Store, tmp_path: Path) -> None:
    added = models(store, "add", model(tmp_path / "mine", card=Card("mine", "somewhere")))
    assert added.exit_code == 0
    listed = models(store, "ls")
    assert listed.stdout.splitlines()[2].split("\t")[:3] == ["mine", address(tmp_path / "mine")[:12], "onnx"]
    assert "somewhere" in models(store, "card", "mine").stdout
    assert json.loads(models(store, "card", "mine", "--json").stdout)["card"]["origin"] == "somewhere"


def test_rm_says_what_stays(store: Store, tmp_path: Path) -> None:
    models(store, "add", model(tmp_path / "mine"))
    models(store, "add", tmp_path / "mine", "--name", "other")
    assert "stays as other" in models(store, "rm", "mine").stderr
    assert "files are gone" in models(store, "rm", "other").stderr
    assert isinstance(models(store, "rm", "other").exception, BadModel)
