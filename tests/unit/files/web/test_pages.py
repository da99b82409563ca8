"""Pages and sitemaps of a real server as documents, and everything that is refused."""

import gzip
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardqa.files.known import KnownFiles
from shardqa.files.source_file import Item, Skipped
from shardqa.files.web import fetch, pages
from shardqa.files.web.pages import Bounds, WebPages
from shardqa.schema import Document
from tests.unit.files.web.site import Site, serving

MILL = "<html><head><title>Mill</title></head><body><main><p>The mill is old.</p></main></body></html>"


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as found:
        yield found


def read(*urls: str, known: KnownFiles | None = None, **bounds: Any) -> list[Item]:
    return list(WebPages(urls, memory=known, bounds=Bounds(**{"allow_private": True, **bounds})))


def documents(items: list[Item]) -> list[tuple[str, str]]:
    return [(item.id, item.text) for item in items if isinstance(item, Document)]


def reasons(items: list[Item]) -> list[str]:
    return [item.reason for item in items if isinstance(item, Skipped)]


def sitemap(*urls: str, of: str = "url") -> str:
    root = "urlset" if of == "url" else "sitemapindex"
    listed = "".join(f"<{of}><loc> {url} </loc></{of}>" for url in urls)
    return f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</{root}>'


def test_a_page_is_a_document_named_by_its_address(site: Site) -> None:
    site.put("/mill", MILL)
    (document,) = read(site.url("/mill#top"))
    assert isinstance(document, Document)
    assert (document.id, document.title) == (f"localhost:{site.port}/mill", "Mill")
    assert document.source == document.origin == site.url("/mill")
    assert document.text == "The mill is old."


def test_the_readers_follow_the_content_type(site: Site) -> None:
    site.put("/a", "name,built\nMill,1820\n", "text/csv; charset=utf-8")
    site.put("/b.md", "# Weir\n\nIt is **new**.", "text/plain")
    site.put("/c", "Bäcker".encode("cp1252"), "text/plain; charset=ISO-8859-1")
    site.put("/d.html", b"\x89PNG", "image/png")
    items = read(*(site.url(target) for target in ("/a", "/b.md", "/c", "/d.html")))
    texts = [text for _, text in documents(items)]
    assert "1820" in texts[0]
    assert "It is new." in texts[1]
    assert texts[2] == "Bäcker\n"
    assert "of content type 'image/png'" in reasons(items)[0]


def test_private_addresses_are_refused_before_anything_is_sent(site: Site) -> None:
    site.put("/mill", MILL)
    assert "a private address; --allow-private" in reasons(read(site.url("/mill"), allow_private=False))[0]
    assert not site.requests


def test_a_host_is_looked_up_once_a_request_and_keeps_its_name(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is public when it is checked and private a moment later can't be connected to."""
    site.put("/mill", MILL)
    lookups: list[str] = []
    real = socket.getaddrinfo

    def answer(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host == "mill.example":
            lookups.append(host)
            host = "127.0.0.1" if len(lookups) <= 2 else "203.0.113.9"
        return real(host, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    url = f"http://mill.example:{site.port}/mill"
    assert documents(read(url)) == [(f"mill.example:{site.port}/mill", "The mill is old.")]
    assert len(lookups) == 2  # robots.txt and the page
    assert site.requests[-1][1]["Host"] == f"mill.example:{site.port}"


def test_a_private_answer_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(host: str, port: int, **_: Any) -> Any:
        return [(0, 0, 0, "", (number, port)) for number in ("93.184.215.14", "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert "mill.example is 10.0.0.1" in reasons(read("https://mill.example/", allow_private=False))[0]


def test_redirects_are_followed_within_the_site_alone(site: Site) -> None:
    site.put("/mill", MILL)
    site.redirect("/old", "/mill")
    site.redirect("/away", "http://169.254.169.254/latest")
    site.redirect("/file", "file:///etc/passwd")
    site.redirect("/round", "/round")
    found = read(*(site.url(target) for target in ("/old", "/away", "/file", "/round")))
    assert documents(found) == [(f"localhost:{site.port}/old", "The mill is old.")]
    away, file, around = reasons(found)
    assert "on another host" in away
    assert "redirects to no valid address" in file
    assert "more than 5 redirects" in around


def test_a_redirect_is_checked_as_the_first_address_is(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host of the same name may lead elsewhere the second time."""
    site.redirect("/old", "/mill")
    site.put("/mill", MILL)
    looked_up: list[str] = []
    monkeypatch.setattr("shardqa.files.web.address.is_public", lambda number: len(looked_up) < 3)
    real = socket.getaddrinfo

    def answer(host: Any, *args: Any, **more: Any) -> Any:
        if host == "localhost":
            looked_up.append(host)
        return real("127.0.0.1", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    assert "a private address" in reasons(read(site.url("/old"), allow_private=False))[0]
    assert site.targets() == ["/robots.txt", "/old"]


def test_the_longest_rule_of_robots_wins_and_stars_stand_for_anything(site: Site) -> None:
    rules = "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$\n"
    site.put("/robots.txt", rules, "text/plain")
    for target in ("/private/open/mill", "/private/mill", "/map.pdf"):
        site.put(target, MILL)
    items = read(*(site.url(target) for target in ("/private/open/mill", "/private/mill", "/map.pdf")))
    assert [id_.partition("/")[2] for id_, _ in documents(items)] == ["private/open/mill"]
    assert len(reasons(items)) == 2


def test_robots_are_obeyed_and_their_rules_read_once(site: Site) -> None:
    site.put("/robots.txt", "User-agent: *\nDisallow: /\n\nUser-agent: shardqa\nDisallow: /secret\n", "text/plain")
    site.redirect("/door", "/secret/a")
    for target in ("/mill", "/secret/a"):
        site.put(target, MILL)
    found = read(*(site.url(target) for target in ("/secret/a", "/door", "/mill")))
    assert [reason.partition("robots")[2] for reason in reasons(found)] == [".txt asks not to read it"] * 2
    assert len(documents(found)) == 1
    assert site.targets() == ["/robots.txt", "/door", "/mill"]


@pytest.mark.parametrize("status", [403, 503])
def test_robots_that_can_not_be_read_forbid_all(site: Site, status: int) -> None:
    site.put("/robots.txt", "", status=status)
    site.put("/mill", MILL)
    assert f"HTTP {status}" in reasons(read(site.url("/mill")))[0]
    assert site.targets() == ["/robots.txt"]


def test_a_sitemap_gives_the_pages_of_its_host(site: Site) -> None:
    site.put("/mill", MILL)
    site.put("/weir", MILL.replace("mill", "weir"))
    pages_ = sitemap(site.url("/weir"), site.url("/mill"), "https://other.example/x", "not one")
    site.put("/pages.xml.gz", gzip.compress(pages_.encode()), "application/gzip")
    site.put("/sitemap.xml", sitemap(site.url("/pages.xml.gz"), of="sitemap"), "application/xml")
    found = read(site.url("/sitemap.xml"))
    assert [text for _, text in documents(found)] == ["The weir is old.", "The mill is old."]
    assert len(reasons(found)) == 2
    assert "on another host" in reasons(found)[0]


def test_sitemaps_end_somewhere(site: Site) -> None:
    for n in range(6):
        site.put(f"/{n}.xml", sitemap(site.url(f"/{n + 1}.xml"), site.url("/0.xml"), of="sitemap"), "text/xml")
    assert "3 within one another" in reasons(read(site.url("/0.xml")))[0]
    site.put("/bomb.xml", '<!DOCTYPE a [<!ENTITY b "c">]>' + sitemap("&b;"), "text/xml")
    site.put("/torn.xml", sitemap("a")[:-4], "text/xml")
    assert reasons(read(site.url("/bomb.xml"))) == ["a sitemap with a document type; that is none"]
    assert "no sitemap" in reasons(read(site.url("/torn.xml")))[0]


def gone_of(reading: WebPages, site: Site, *targets: str) -> list[str]:
    list(reading)
    return [target for target in targets if reading.has_gone(f"localhost:{site.port}{target}", site.url(target))]


def test_what_a_sitemap_no_longer_lists_below_its_folder_has_gone(site: Site) -> None:
    site.put("/a/mill", MILL)
    site.put("/a/burnt", "", status=410)
    site.put("/a/locked", "", status=403)
    listed = sitemap(*(site.url(target) for target in ("/a/mill", "/a/burnt", "/a/locked")))
    site.put("/a/sitemap.xml", listed, "text/xml")
    reading = WebPages([site.url("/a/sitemap.xml")], bounds=Bounds(allow_private=True))
    asked = ("/a/mill", "/a/burnt", "/a/locked", "/a/weir", "/b/weir")
    assert gone_of(reading, site, *asked) == ["/a/burnt", "/a/weir"]
    assert not reading.has_gone("weir.txt", "/home/ada/weir.txt")
    assert not reading.has_gone("other.example/a/weir", "https://other.example/a/weir")
    assert reading.has_gone(f"localhost:{site.port}/a/mill/row2", site.url("/a/mill")), "it holds another document now"


@pytest.mark.parametrize("inner", ["/empty", "/failing", "/none", "/page"])
def test_where_a_sitemap_within_is_not_read_nothing_that_it_may_list_has_gone(site: Site, inner: str) -> None:
    site.put("/empty", sitemap(), "text/xml")
    site.put("/failing", "", status=503)
    site.put("/page", MILL)
    site.put("/mill", MILL)
    site.put("/pages.xml", sitemap(site.url("/mill")), "text/xml")
    site.put("/sitemap.xml", sitemap(site.url("/pages.xml"), site.url(inner), of="sitemap"), "text/xml")
    assert gone_of(WebPages([site.url("/sitemap.xml")], bounds=Bounds(allow_private=True)), site, "/weir") == []


def test_of_single_pages_only_those_that_answer_so_have_gone(site: Site) -> None:
    site.put("/mill", MILL)
    urls = [site.url(target) for target in ("/mill", "/burnt")]
    assert gone_of(WebPages(urls, bounds=Bounds(allow_private=True)), site, "/mill", "/burnt", "/weir") == ["/burnt"]


def test_pages_beyond_the_bound_are_told(site: Site) -> None:
    for n in range(4):
        site.put(f"/{n}", MILL)
    site.put("/sitemap.xml", sitemap(*(site.url(f"/{n}") for n in range(4))), "text/xml")
    found = read(site.url("/sitemap.xml"), pages=3)
    assert len(documents(found)) == 3
    assert "1 page beyond the first 3; --max-pages" in reasons(found)[0]
    assert "the time for all pages is over" in reasons(read(site.url("/0"), seconds=0))[0]


def test_a_page_too_large_or_torn_is_skipped(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_PAGE", 1_000)
    site.put("/large", "a" * 1_001)
    site.put("/torn", "short", Content_Length="500")
    site.put("/packed", gzip.compress(b"a"), Content_Encoding="gzip")
    site.put("/gone", "", status=410)
    found = reasons(read(*(site.url(target) for target in ("/large", "/torn", "/packed", "/gone"))))
    for reason, words in zip(found, ("more than 1,000 bytes", "IncompleteRead", "'gzip'", "HTTP 410"), strict=True):
        assert words in reason


def test_a_server_that_drips_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PAGE_SECONDS", 0.3)
    end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not end.wait(0.05):
                    try:
                        connection.sendall(b"X: y\r\n")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            assert "not there within 0 s" in reasons(read(f"http://127.0.0.1:{server.getsockname()[1]}/"))[0]
        finally:
            end.set()
            thread.join()


def test_what_has_not_changed_is_passed_over(site: Site, tmp_path: Path) -> None:
    site.put("/tagged", MILL, ETag='"1"')
    site.put("/plain", MILL)
    urls = [site.url("/tagged"), site.url("/plain")]
    memory = KnownFiles(tmp_path / "known.json")

    def again() -> tuple[int, int]:
        reading = WebPages(urls, memory=memory, bounds=Bounds(allow_private=True))
        found = documents(list(reading))
        memory.learn(reading.read, set())
        memory.save()
        memory.trust({id_: f"http://{id_}" for url in urls for id_ in [url.removeprefix("http://")]})
        return len(found), reading.passed_over

    assert again() == (2, 0)
    assert again() == (0, 2)
    site.put("/tagged", MILL.replace("old", "new"), ETag='"2"')
    assert again() == (1, 1)
    memory.trust({})  # the corpus has lost them
    reading = WebPages(urls, memory=memory, bounds=Bounds(allow_private=True))
    assert len(documents(list(reading))) == 2


def test_tls_is_for_the_hosts_name_at_the_checked_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -days 2"
    names_in_it = ["-subj", "/CN=mill.example", "-addext", "subjectAltName=DNS:mill.example"]
    subprocess.run([*command.split(), *names_in_it], cwd=tmp_path, check=True, capture_output=True)
    names: list[str] = []
    serves = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serves.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    serves.sni_callback = lambda _, name, __: names.append(name)
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert"))
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusted)
    real = socket.getaddrinfo

    def local(host: Any, *args: Any, **more: Any) -> Any:
        return real("127.0.0.1" if str(host).endswith(".example") else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    with serving(serves) as site:
        site.put("/mill", MILL)
        found = read(f"https://mill.example:{site.port}/mill", f"https://weir.example:{site.port}/mill")
    assert documents(found) == [(f"mill.example:{site.port}/mill", "The mill is old.")]
    assert "certificate verify failed: Hostname mismatch" in reasons(found)[0]
    assert names == ["mill.example", "mill.example", "weir.example"]


def linked(*targets: str) -> str:
    return MILL.replace("old.", "old. " + "".join(f'<a class=x href="{one}">on</a>' for one in targets))


def test_links_of_the_same_host_are_followed_to_their_depth(site: Site) -> None:
    site.put("/docs/", linked("weir?a=1&amp;b=2", "/docs/#top", "mill.png", "https://elsewhere.example/", "mailto:a@b"))
    site.put("/docs/weir?a=1&b=2", linked("../third", "/docs/"))
    site.put("/third", linked("/fourth"))
    site.put("/fourth", MILL)
    ids = [id_.partition("/")[2] for id_, _ in documents(read(site.url("/docs/"), links=2))]
    assert ids == ["docs/", "docs/weir?a=1&b=2", "third"]
    assert site.targets() == ["/robots.txt", "/docs/", "/docs/weir?a=1&b=2", "/third"]
    assert len(documents(read(site.url("/docs/")))) == 1


def test_followed_pages_are_bounded_and_obey_robots(site: Site) -> None:
    site.put("/robots.txt", "User-agent: *\nDisallow: /b", "text/plain")
    site.put("/", linked("/a", "/b", "/c"))
    for target in ("/a", "/b", "/c"):
        site.put(target, MILL)
    items = read(site.url("/"), links=1, pages=3)
    assert [id_.partition("/")[2] for id_, _ in documents(items)] == ["", "a"]
    assert [reason.partition(";")[0] for reason in reasons(items)][1:] == ["1 page beyond the first 3"]
    assert "robots.txt" in reasons(items)[0]


def test_the_links_of_an_unchanged_page_are_followed_again(site: Site, tmp_path: Path) -> None:
    site.put("/", linked("/a"), ETag='"1"')
    memory = KnownFiles(tmp_path / "known.json")
    found = list[tuple[str, str]]()
    for text in (MILL, MILL.replace("old", "new")):
        site.put("/a", text)
        reading = WebPages([site.url("/")], memory=memory, bounds=Bounds(True, links=1))
        found = documents(list(reading))
        memory.learn(reading.read, set())
        memory.trust({f"localhost:{site.port}/": site.url("/")})
    assert [text for _, text in found] == ["The mill is new."]
