"""The options of `run` and `register` for each reader, and their checks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shardqa.worker.gears.pipeline.plan import RunPlan
from shardqa.worker.gears.registrations.hooked_commands import hooked_command, writing_commands
from shardqa.worker.gears.registrations.registrations import Registration, StreamOptions
from shardqa.worker.gears.sessions.session import Session

READERS = ("KeysReader", "KeysOnlyReader", "StreamReader", "CommandReader", "PythonReader", "ShardsIDReader")
MODES = ("async", "async_local", "sync")
KEY_TYPES = ("string", "list", "set", "zset", "hash", "stream", "module", "empty")
POLICIES = ("continue", "abort", "retry")  # onFailedPolicy

PACE = ("concurrency", "ExecutionMaxIdleTime")  # ours: RedisGears runs one event of a registration at a time
RUN_OPTIONS = {
    "KeysReader": ("noScan", "readValue", "prefix"),
    "KeysOnlyReader": ("pattern", "count", "noScan", "patternGenerator", "prefix"),
    "StreamReader": ("fromId", "prefix"),
    "PythonReader": (),
    "ShardsIDReader": (),
}
REGISTER_OPTIONS = {
    "KeysReader": ("eventTypes", "keyTypes", "commands", "readValue", "regex", "noScan", *PACE),
    "StreamReader": ("batch", "duration", "onFailedPolicy", "onFailedRetryInterval", "trimStream", "regex", *PACE),
    "CommandReader": ("trigger", "inorder", "hook", "keyprefix"),
}
STREAM_EVENTS = ("xadd", "restore", "rename_to", "copy_to")  # by which messages come to a key
EVENTS = (
    "append copy_to decrby del evicted expire expired getdel getex hdel hexpire hexpired hincrby hincrbyfloat hpersist "
    "hset incrby incrbyfloat keymiss linsert lmove lpop lpush lrem lset ltrim move_from move_to new persist pexpire "
    "pfadd pfmerge rename_from rename_to restore rpop rpush sadd sdiffstore set setbit setrange sinterstore "
    "sortstore spop srem sunionstore xadd xautoclaim xclaim xdel xdelex xgroup-create xgroup-createconsumer "
    "xgroup-delconsumer xgroup-destroy xgroup-setid xsetid xtrim zadd zdiffstore zincr zinterstore zpopmax zpopmin "
    "zrangestore zrem zremrangebyrank zremrangebyscore zremrangebylex zunionstore georadiusstore geosearchstore"
)
"""That Redis has; those of modules have a point in their names."""
COMMON = ("regex", "noScan", "trigger", "eventTypes", "keyTypes", "commands", "readValue")  # taken as None by all


def checked(plan: RunPlan) -> RunPlan:
    """Raises TypeError and ValueError with what is wrong."""
    reader, argument, options = plan.reader, plan.argument, plan.options
    if reader == "CommandReader":
        raise ValueError("reader do not support run: a CommandReader has no records; register it with a trigger")
    for name in ("prefix", "pattern"):
        argument = options.get(name, argument)
    if reader == "PythonReader" and not callable(argument):
        raise TypeError(f"pyreader argument must be a function that generates records, not {type(argument).__name__}")
    if reader in ("KeysReader", "KeysOnlyReader", "StreamReader") and not isinstance(argument, str):
        raise TypeError(f"{reader} wants a pattern of keys as a string, not {type(argument).__name__}")
    if not isinstance(options.get("fromId", ""), str):
        raise TypeError(f"fromId wants the id of a message as a string, not {options['fromId']!r}")
    _flag(options, "noScan", False)
    _flag(options, "readValue", True)
    others = {name: value for name, value in options.items() if name not in ("prefix", "pattern")}
    return replace(plan, argument=argument, options=others)


def add_options(session: Session, registration: Registration, prefix: str, options: Mapping[str, Any]) -> None:
    """Raises TypeError and ValueError with what is wrong."""
    reader, mode = registration.reader, registration.mode
    if reader not in REGISTER_OPTIONS:
        raise ValueError(f"{reader} can't be registered; {', '.join(REGISTER_OPTIONS)} can")
    options = {name: value for name, value in options.items() if value is not None or name not in COMMON}
    registration.privileged = bool(options.get("privileged", False))
    if reader != "CommandReader":
        registration.concurrency = _number("concurrency", options.get("concurrency", 1), 1)
        registration.idle = _number("ExecutionMaxIdleTime", options.get("ExecutionMaxIdleTime", 0), 0) / 1000
    match reader:
        case "CommandReader":
            _command_reader(session, registration, options)
        case "StreamReader":
            registration.prefix = _prefix(session, options.get("regex", prefix))
            registration.stream = _stream_options(options)
            registration.events, registration.types = STREAM_EVENTS, ("stream",)
            number = sum(earlier.reader == reader for earlier in session.registrations)
            registration.stream_group = f"shardqa:{session.id}:{number}"
            if mode == "sync":
                registration.hooked = writing_commands(session.execute)
        case _:
            registration.prefix = _prefix(session, options.get("regex", prefix))
            _keys_reader(session, registration, options)


def _command_reader(session: Session, registration: Registration, options: Mapping[str, Any]) -> None:
    trigger, hook = options.get("trigger"), options.get("hook")
    if trigger is not None and hook is not None:
        raise ValueError("a CommandReader's register takes trigger= or hook=, not both")
    registration.in_order = bool(options.get("inorder", False))
    if hook is not None:
        _hook(session, registration, hook, options.get("keyprefix"))
        return
    if options.get("keyprefix") is not None:
        raise ValueError("keyprefix= belongs to hook=; a trigger is sent by its name")
    if trigger is not None and not isinstance(trigger, str):
        raise TypeError(f"trigger argument is not string but {type(trigger).__name__}")
    if not trigger:
        raise ValueError(
            "no trigger or hook argument was given: trigger='name' is the word after RG.TRIGGER, hook= a command"
        )
    registration.trigger = trigger


def _hook(session: Session, registration: Registration, hook: Any, prefix: Any) -> None:
    if not hook or not isinstance(hook, str):
        raise TypeError(f"hook wants the name of a command, not {hook!r}")
    if prefix is not None and not isinstance(prefix, str):
        raise TypeError(f"keyprefix wants a string, not {type(prefix).__name__}")
    start = (prefix or "").removesuffix("*")
    registration.prefix = f"{start}*"
    registration.hooked = (hooked_command(session.execute, hook, bool(start), "override"),)
    registration.commands = (registration.hooked[0].name,)


def _keys_reader(session: Session, registration: Registration, options: Mapping[str, Any]) -> None:
    registration.events = _names("eventTypes", options.get("eventTypes"))
    for name in registration.events or ():
        if name not in EVENTS.split() and "." not in name:
            session.note(f"event {name!r} is none of Redis'; 'hset', 'del', 'expired' … are")
    registration.types = _names("keyTypes", options.get("keyTypes"))
    for name in registration.types or ():
        if name not in KEY_TYPES:
            raise ValueError(f"key type {name!r} does not exist; choose of {', '.join(KEY_TYPES)}")
    registration.commands = _names("commands", options.get("commands"))
    has_prefix = registration.prefix != "*"
    registration.hooked = tuple(
        hooked_command(session.execute, name, has_prefix, "hook") for name in registration.commands or ()
    )
    if registration.mode == "sync" and registration.commands is None:
        registration.hooked = writing_commands(session.execute)
    registration.read_value = _flag(options, "readValue", True)


def _stream_options(options: Mapping[str, Any]) -> StreamOptions:
    policy = options.get("onFailedPolicy", "continue")
    if policy not in POLICIES:
        raise ValueError(f"onFailedPolicy {policy!r} does not exist; choose one of {', '.join(POLICIES)}")
    interval = options.get("onFailedRetryInterval", 1)
    if isinstance(interval, bool) or not isinstance(interval, int | float) or interval < 0:
        raise ValueError(f"onFailedRetryInterval wants seconds from 0 on, not {interval!r}")
    return StreamOptions(
        batch=_number("batch", options.get("batch", 1), 1),
        duration=_number("duration", options.get("duration", 0), 0),
        policy=policy,
        retry=float(interval),
        trim=_flag(options, "trimStream", True),
    )


def unknown_options(action: str, reader: str, options: Mapping[str, Any]) -> list[str]:
    """Names that RedisGears would ignore, too."""
    names = (
        RUN_OPTIONS.get(reader, ()) if action == "run" else (*REGISTER_OPTIONS.get(reader, ()), "privileged", *COMMON)
    )
    return [name for name in options if name not in names]


def _number(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} wants a number from {least} on, not {value!r}")
    return value


def _flag(options: Mapping[str, Any], name: str, default: bool) -> bool:
    value = options.get(name)
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{name} wants True or False, not {value!r}")
    return default if value is None else value


def _prefix(session: Session, prefix: Any) -> str:
    if not isinstance(prefix, str):
        raise TypeError(f"prefix or regex argument must be a string, not {type(prefix).__name__}")
    if any(sign in prefix.removesuffix("*") for sign in "*?["):
        session.note(f"prefix {prefix!r} is no pattern: a * at its end stands for any rest, all else for itself")
    return prefix


def _names(what: str, names: Any) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what}: type is not string in {names!r}; give a list of strings")
    return tuple(name.lower() for name in names)
