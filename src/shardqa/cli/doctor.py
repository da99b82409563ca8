"""`shardqa doctor`: what is wrong with this machine and the cluster, and how to mend it."""

from dataclasses import asdict

import typer
from rich.text import Text

from shardqa.cli.connection import (
    CorpusOption,
    JsonOption,
    PasswordOption,
    RedisOption,
    UserOption,
    node_client,
    seed_of,
    settings_of,
)
from shardqa.cli.output import out, print_json
from shardqa.cluster import doctor

COLOURS = {"ok": "green", "warning": "yellow", "bad": "bold red", "unknown": "magenta"}


def doctor_(
    corpus: CorpusOption = None,
    as_json: JsonOption = False,
    redis: RedisOption = None,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Check this machine and the cluster. Every fault comes with its remedy. Exits with 1 when something is bad.

    Example: shardqa doctor --redis 10.0.0.5:7000 --user app --password s3cret
    """
    settings = settings_of(redis, user, password, corpus=corpus)
    findings = [
        *doctor.this_machine(),
        *doctor.cluster(
            seed_of(settings),
            lambda host, port: node_client(settings, host, port),
            settings.user,
            settings.model,
            settings.corpus,
        ),
    ]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            _print_finding(finding)
    if any(finding.verdict == "bad" for finding in findings):
        raise typer.Exit(1)


def _print_finding(finding: doctor.Finding) -> None:
    verdict = (f"{finding.verdict:<8}", COLOURS[finding.verdict])
    out.print(Text.assemble(verdict, f"{finding.place:<22} {finding.check}: {finding.found}"))
    if finding.verdict != "ok" and finding.remedy:
        out.print(Text(f"{'':<8}{'':<22} -> {finding.remedy}"))
