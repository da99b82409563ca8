"""Addresses: what is one of a page, which are of one site, and which hosts are private."""

import pytest

from shardqa.errors import BadDocument
from shardqa.files.web.address import NotFetched, PageAddress, is_public, resolve


@pytest.mark.parametrize(
    "number",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "fec0::1",
        "::ffff:127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::a01:203",
        "::7f00:1",
        "2001:0:0:0:0:0:80ff:fffe",
    ],
)
def test_a_private_number_is_none_of_the_internet(number: str) -> None:
    assert not is_public(number)


@pytest.mark.parametrize("number", ["93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_number_is_one(number: str) -> None:
    assert is_public(number)


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1", "[::1]"])
def test_other_spellings_of_loopback_are_refused(host: str) -> None:
    with pytest.raises(NotFetched, match=r"private address; --allow-private|is not found"):
        resolve(PageAddress.parse(f"http://{host}/"), allow_private=False)


@pytest.mark.parametrize(
    "url", ["ftp://a.example/", "file:///etc/passwd", "https://", "https://u:p@a.example/", "https://a:99999/", "a"]
)
def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    with pytest.raises(BadDocument, match="address"):
        PageAddress.parse(url)


def test_an_address_is_written_in_one_way_and_names_its_document() -> None:
    address = PageAddress.parse("HTTPS://Bücher.example:443/Über uns?q=ä#top")
    assert str(address) == "https://xn--bcher-kva.example/%C3%9Cber%20uns?q=%C3%A4"
    assert address.name == "xn--bcher-kva.example/Über uns?q=ä"
    assert str(PageAddress.parse(str(address))) == str(address)


def test_http_and_https_are_one_site_and_other_ports_another() -> None:
    sites = [
        PageAddress.parse(url).site for url in ("http://a.example", "https://a.example/x", "https://a.example:8443/")
    ]
    assert sites[0] == sites[1] != sites[2]
