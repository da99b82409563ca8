"""Who speaks: in transcripts of meetings, and in what chats export; JSON of other forms beside them."""

import io
import json
import zipfile

from shardqa.files import formats
from shardqa.files.source_file import Skipped, SourceFile
from shardqa.schema import Document


def documents(name: str, content: bytes) -> list[Document]:
    items = list(formats.read(SourceFile.of_bytes(content, name, name, inner=formats.read)))
    assert not any(isinstance(item, Skipped) for item in items)
    return [item for item in items if isinstance(item, Document)]


def cues(*cues: str) -> bytes:
    times = (f"00:00:{2 * n:02}.000 --> 00:00:{2 * n + 1:02}.500\n{cue}" for n, cue in enumerate(cues))
    return "\n\n".join(["WEBVTT", *times]).encode()


def test_a_speaker_is_named_once_a_turn() -> None:
    (teams,) = documents("a.vtt", cues("<v Ada Moss>I paint.</v>", "<v Ada Moss>On Friday.</v>", "<v Ugo>Good.</v>"))
    assert teams.text == "Ada Moss: I paint.\nOn Friday.\n\nUgo: Good."
    (zoom,) = documents("a.vtt", cues("Ada Moss: I paint.", "Ada Moss: On Friday.", "Ugo: Good."))
    assert zoom.text == teams.text


def test_captions_that_roll_are_read_once_a_line() -> None:
    (found,) = documents("a.vtt", cues("we paint", "we paint\nthe boat", "the boat\non Friday"))
    assert found.text == "we paint\nthe boat\non Friday"


def test_a_day_of_a_channel_is_a_document_with_names_and_times() -> None:
    messages = [
        {"user": "U1", "text": "<@U2> signs &amp; pays", "ts": "1709550000.0"},
        {"user": "U1", "text": "see <https://a.example|the page>", "ts": "1709550060.0"},
    ]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("users.json", json.dumps([{"id": "U1", "real_name": "Ada"}, {"id": "U2", "name": "ugo"}]))
        archive.writestr("channels.json", "[]")
        archive.writestr("yard/2024-03-04.json", json.dumps(messages))
    (found,) = documents("a.zip", file.getvalue())
    assert (found.id, found.title, found.metadata) == (
        "a.zip/yard/2024-03-04.json", "yard, 2024-03-04", {"date": "2024-03-04"}
    )  # fmt: skip
    assert found.text == "yard, 2024-03-04\n\nAda: ugo signs & pays.\nsee the page."
    assert [place.time for _, place in found.places] == [None, "11:00:00", "11:01:00"]


def test_messages_of_teams_have_their_authors() -> None:
    message = {"createdDateTime": "2024-03-04T11:00:00Z", "from": {"user": {"displayName": "Ada"}},
               "body": {"content": "<p>I paint.</p>"}}  # fmt: skip
    (found,) = documents("a.json", json.dumps({"value": [message]}).encode())
    assert found.text == "Ada: I paint."


def test_a_list_of_objects_is_rows_and_an_object_pairs_under_its_name() -> None:
    (rows,) = documents("a.json", b'[{"sku": 7, "name": "Oak bench", "price": "57 euros"}]')
    assert rows.text == "name Oak bench has sku: 7; price: 57 euros."
    (rows,) = documents("a.json", b'[{"name": "Ash stool", "price": {"amount": 65, "in": "euros"}}, {"name": "Bench"}]')
    assert rows.text == "name Ash stool has price amount: 65; price in: euros.\nname Bench."
    (pairs,) = documents("a.json", b'{"info": {"title": "Kiln", "tags": ["a", "b"]}, "open": true}')
    assert pairs.text == "open: yes.\n\ninfo\n\ntitle: Kiln.\ntags: a, b."
