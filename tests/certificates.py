"""Certificates for localhost, signed by an authority that a test makes itself."""

import subprocess
from pathlib import Path


def certificates(folder: Path) -> None:
    """Makes ca.pem, node.pem and node.key for localhost, client.pem and client.key for whoever calls."""
    _openssl(folder, "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for name, subject in (("node", "localhost"), ("client", "caller")):
        _openssl(folder, f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={subject}")
        signed = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 2"
        _openssl(folder, f"{signed} -extfile names")


def _openssl(folder: Path, words: str) -> None:
    subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
