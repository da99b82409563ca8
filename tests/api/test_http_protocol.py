"""Bytes that are no HTTP/1.1, or not as this server takes it: a problem, behind the replies to requests before."""

import re

import pytest

from shardqa.api.http_protocol import MAX_HEAD, PIPELINED
from tests.api.conftest import Server

HOST = b"Host: localhost\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\n" + HOST
WHOLE = HEALTH + b"\r\n"
ASK = b"POST /v1/ask HTTP/1.1\r\nContent-Type: application/json\r\n" + HOST
CHUNKED = ASK + b"Transfer-Encoding: chunked\r\n\r\n"

WRONG = {
    "nothing of HTTP": b"\x16\x03\x01 this is TLS\r\n\r\n",
    "no Host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two Hosts": HEALTH + HOST + b"\r\n",
    "another coding": ASK + b"Transfer-Encoding: xchunked\r\n\r\n",
    "one coding more": ASK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding after chunked": ASK + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked twice": ASK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n",
    "no chunk size": CHUNKED + b"zz\r\n",
    "a negative chunk size": CHUNKED + b"-1\r\n",
    "a chunk size past all integers": CHUNKED + b"f" * 20 + b"\r\n",
    "no chunk size later": CHUNKED + b"1\r\n{\r\nzz\r\n",
    "a chunk longer than it says": CHUNKED + b"1\r\n{}\r\n",
    "two equal lengths": ASK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "two lengths": ASK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a list of lengths": ASK + b"Content-Length: 2, 2\r\n\r\n{}",
    "a length with a sign": ASK + b"Content-Length: +2\r\n\r\n{}",
    "a length past all integers": ASK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    "length and chunks": ASK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": ASK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "a folded header": HEALTH + b"X: a\r\n b\r\n\r\n",
    "lines that end in LF": b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "a header that ends in LF": HEALTH + b"X: y\nY: x\r\n\r\n",
    "a CR in a header": HEALTH + b"X: y\rY: x\r\n\r\n",
    "a NUL in a header": HEALTH + b"X: a\0b\r\n\r\n",
    "a space before the colon": HEALTH + b"X : a\r\n\r\n",
    "a space in a name": HEALTH + b"X Y: a\r\n\r\n",
    "no name": HEALTH + b": a\r\n\r\n",
    "a space before the first header": b"GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/0.9 by name": b"GET /healthz HTTP/0.9\r\n\r\n",
    "HTTP/2.0": b"GET /healthz HTTP/2.0\r\n" + HOST + b"\r\n",
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a server in the target": b"GET http://other.example/healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "CONNECT": b"CONNECT other.example:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "no slash": b"GET healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "a fragment": b"GET /healthz#x HTTP/1.1\r\n" + HOST + b"\r\n",
    "a byte past ASCII in the target": b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "an unknown method": b"BREW /healthz HTTP/1.1\r\n" + HOST + b"\r\n",
}


def exchange(server: Server, sent: bytes) -> tuple[list[int], list[bytes]]:
    """Statuses of the replies, and codes of the problems among them, until the server closes."""
    got = server.exchange(sent)
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", got)], re.findall(rb'"code":"(\w+)"', got)


@pytest.mark.parametrize("sent", WRONG.values(), ids=WRONG)
def test_a_wrong_request_gets_bad_http_and_the_end(lonely: Server, sent: bytes) -> None:
    assert exchange(lonely, sent) == ([400], [b"bad_http"])


@pytest.mark.parametrize("sent", [WRONG["no Host"], WRONG["another coding"], WRONG["no chunk size"], b"nonsense\r\n"])
def test_what_came_before_is_answered_first(lonely: Server, sent: bytes) -> None:
    assert exchange(lonely, WHOLE * 2 + sent + WHOLE) == ([200, 200, 400], [b"bad_http"])


@pytest.mark.parametrize("count", [200, 5_000])
def test_a_pipeline_past_its_bound_is_answered_up_to_it(lonely: Server, count: int) -> None:
    assert exchange(lonely, WHOLE * count) == ([200] * (PIPELINED + 1) + [400], [b"bad_http"])


@pytest.mark.parametrize(
    "sent",
    [
        CHUNKED + b"2;" + b"x" * 20 * MAX_HEAD + b"\r\n{}\r\n0\r\n\r\n",
        CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"x" * 20 * MAX_HEAD + b"\r\n\r\n",
    ],
    ids=["extension of a chunk", "trailer"],
)
def test_what_stands_between_parts_of_a_body_is_bounded(lonely: Server, sent: bytes) -> None:
    assert exchange(lonely, sent) == ([431], [b"head_too_large"])


def test_the_next_head_is_bounded_while_a_request_is_served(lonely: Server) -> None:
    statuses, codes = exchange(lonely, WHOLE + HEALTH + b"X: " + b"x" * 20 * MAX_HEAD)
    assert (statuses, codes) == ([200, 431], [b"head_too_large"])


def test_a_trailer_changes_no_header(lonely: Server) -> None:
    close = ASK + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    assert exchange(lonely, close + b"Host: other.example\r\n\r\n") == exchange(lonely, close + b"\r\n")


def test_what_follows_an_offer_of_another_protocol_is_answered(lonely: Server) -> None:
    offer = HEALTH + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert exchange(lonely, offer + HEALTH + b"Connection: close\r\n\r\n")[0] == [200, 200]


def test_a_reply_that_comes_before_a_large_body_is_read_all_the_same(lonely: Server) -> None:
    with lonely.client() as client:
        assert client.post("/nowhere", content=b"x" * 3_000_000).status_code == 404


def test_http_1_0_needs_no_host(lonely: Server) -> None:
    assert exchange(lonely, b"GET /healthz HTTP/1.0\r\n\r\n")[0] == [200]
