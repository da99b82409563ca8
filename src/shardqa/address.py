"""Addresses of a cluster as people write them: HOST:PORT, redis://…, rediss://…, several with commas."""

import ipaddress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

DEFAULT_PORT = 6379  # of an address that names none, as redis-cli has it
FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
VERIFY = {"required": True, "none": False}  # ssl_cert_reqs: whether certificates and names are checked


@dataclass(frozen=True, slots=True)
class Address:
    hosts: str  # HOST:PORT, several with commas: never a password
    user: str | None = None
    password: str | None = None
    tls: dict[str, Any] = field(default_factory=dict)  # options of redis-py's clients; none without TLS


def parse(text: str) -> Address:
    """Raises ValueError, which never repeats a password."""
    hosts, parameters = list[str](), dict[str, Any]()
    for part in (part.strip() for part in text.split(",")):
        if "://" not in part:
            hosts.append(part)
            continue
        host, settings = _url(part)
        hosts.append(host)
        for name, value in settings.items():
            if parameters.setdefault(name, value) != value:
                raise ValueError(f"the addresses differ in {name}; all nodes of a cluster have one user and one TLS")
    user, password = parameters.pop("user", None), parameters.pop("password", None)
    return Address(",".join(hosts), user, password, parameters)


def _url(url: str) -> tuple[str, dict[str, Any]]:
    parts = urlsplit(url)
    if parts.scheme not in ("redis", "rediss"):
        raise ValueError(f"{parts.scheme}:// is no address of Redis; write redis://, rediss:// (TLS) or HOST:PORT")
    try:
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        raise ValueError(f"the port in {_shown(url)} is no number from 1 to 65535") from None
    if not host:
        raise ValueError(f"{_shown(url)} names no host")
    if parts.path.strip("/") not in ("", "0"):
        raise ValueError(f"{_shown(url)} names database {parts.path.strip('/')!r}; a cluster has database 0 alone")
    settings: dict[str, Any] = {}
    if parts.scheme == "rediss":
        settings = {"ssl": True, "ssl_cert_reqs": "required", "ssl_check_hostname": True}
    if parts.username:
        settings["user"] = unquote(parts.username)
    if parts.password:
        settings["password"] = unquote(parts.password)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        settings.update(_option(name, value, parts.scheme))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}", settings


def _option(name: str, value: str, scheme: str) -> dict[str, Any]:
    options = (*FILES, "ssl_cert_reqs")
    if name not in options or scheme != "rediss":
        raise ValueError(f"{scheme}:// takes no option {name!r}; rediss:// takes {', '.join(options)}")
    if name in FILES:
        return {name: value}
    if value not in VERIFY:
        raise ValueError(f"ssl_cert_reqs={value!r}; write required or none")
    return {name: value, "ssl_check_hostname": VERIFY[value]}


def _shown(url: str) -> str:
    return repr(url.rpartition("@")[2] if "@" in url else url.partition("://")[2])


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    ipv4 = getattr(address, "ipv4_mapped", None)
    return (ipv4 or address).is_loopback
