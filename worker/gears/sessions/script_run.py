"""A session's script as it runs: on the pool, with globals of its own."""

from shardqa.worker.gears.pipeline.run import Run
from shardqa.worker.gears.pipeline.steps import is_async
from shardqa.worker.gears.sessions.script_functions import run_code
from shardqa.worker.gears.sessions.session import Session


async def run_script(session: Session, run: Run) -> None:
    """Runs the script, without its onRegistered functions. Raises whatever it raises."""
    await run.threads.in_pool(run, _execute, session)


async def run_on_registered(session: Session, run: Run) -> None:
    """Runs the onRegistered functions, right before the session is registered. Raises whatever they raise."""
    for function in session.on_registered:
        if is_async(function):
            await run.threads.stepping(function(), run.name, run.request)
        else:
            await run.threads.in_pool(run, function)
    session.commit()


def _execute(session: Session) -> None:
    session.remember_lines()
    interpreter = session.interpreter_of()
    if interpreter is not None:
        interpreter.call(session, "script", session.code, session.file)
        return
    try:
        run_code(session, session.code, session.file)
    except StopIteration as error:  # can't travel through a future
        raise RuntimeError("the script raised StopIteration") from error
