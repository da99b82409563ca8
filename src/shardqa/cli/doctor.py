"""`shardqa doctor`: what is wrong with this machine and the cluster, and how to mend it."""

from dataclasses import asdict

import typer
from rich.text import Text

from shardqa.cli.connection import node_client, seed_of
from shardqa.cli.options import CorpusOption, JsonOption, Target, on_cluster
from shardqa.cli.output import out, print_json
from shardqa.cluster import doctor

COLOURS = {"ok": "green", "warning": "yellow", "bad": "bold red", "unknown": "magenta"}


@on_cluster
def doctor_(target: Target, corpus: CorpusOption = None, as_json: JsonOption = False) -> None:
    """Check this machine and the cluster. Every fault comes with its remedy. Exits with 1 when something is bad.

    Example: shardqa doctor --redis 10.0.0.5:7000 --user app --password s3cret
    """
    settings = target.settings(corpus=corpus)
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
