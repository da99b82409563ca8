"""`shardqa` without a command: what is there in two lines, and the commands that one needs next."""

import shardqa
from shardqa import extras
from shardqa.cli.connection import settings_of, with_engine
from shardqa.cli.output import counted, end
from shardqa.errors import ClusterUnavailable

INSTALL = ("pip install 'FILE.whl[all]'", "brings what 'demo' and 'up' need to start one here")
ALL = ("shardqa --help", "shows all commands")


def overview() -> None:
    """Prints the overview. Raises WrongSetting; exits with 4 where a node does not answer."""
    settings = settings_of(None, None, None)
    try:
        known = with_engine(settings, lambda engine: engine.catalogue.corpora())
    except ClusterUnavailable:
        state = f"there is no cluster at {settings.redis}"
        starts = [("shardqa demo", "starts one with example documents, and asks it"), ("shardqa up", "starts one")]
        elsewhere = [("shardqa --redis HOST:PORT corpus ls", "lists what another has"), INSTALL]
        steps = [*(elsewhere if extras.lacking(*extras.SERVICE) else starts), ALL]
        failed = list[str]()
    else:
        corpora, failed = known.corpora, known.failed
        least = "at least " if failed else ""
        names = ", ".join(f"{one.name} ({least}{counted(one.documents, 'document')})" for one in corpora)
        state = f"the cluster at {settings.redis} has {names or 'no documents yet'}"
        corpus = corpora[0].name if corpora else "NAME"
        where = f"--corpus {corpus}"
        steps = [(f"shardqa ask QUESTION {where}", "asks"), (f"shardqa ingest FOLDER {where}", "adds"), ALL]
    width = max(len(command) for command, _ in steps)
    print(f"shardqa {shardqa.__version__}: question answering inside Redis Cluster\n{state}\n")
    print("\n".join(f"  {command:<{width}}  {what}" for command, what in steps))
    end(failed, True)
