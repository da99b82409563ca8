"""The walls around the worker, which may read its own code and models, compute, and talk over TCP. Closed before any
thread or function begins, and for good.

Functions are code that somebody brought, in a process with Redis' uid: unconfined it could start programs, change the
append only file or read redis.conf. Each wall is put up where the kernel has it, and named in INFO
(`shardqa_sandbox`); one that is missing is named there as well, and the worker goes on.

* no_new_privs: no program regains rights that this process lost.
* landlock (Linux 5.13): files are read below the interpreter's, the package's and the system's libraries, below /proc
  and /sys, and below READABLE; written below WRITABLE alone. From 6.7 on no TCP port can be listened on, from 6.12 on
  no signal and no abstract socket reaches another process.
* seccomp: the system calls of system_calls.py and no others: no new process or program, no listening, no signal, limit
  or priority of another process, no mode, owner, time or attribute of a file.
* network: no socket and no connection; those to other nodes come from the module (peer_sockets.py). It stands by
  seccomp and by Landlock, each by itself. With SANDBOX network: TCP to anywhere, and names of hosts over TCP.
* capabilities: root's are given up; with them it could read the memory of any process.
* limits: no core files, which would hold documents.
* user: with USER another one than Redis', changed to before all else; a worker that can't does not go on.
* memory: with MEMORY a bound on what is allocated (RLIMIT_DATA: files that are mapped don't count). What needs more
  fails with MemoryError, and the rest goes on.

pip can't run in here: it runs in a process of its own (installer.py), and what it installed is read.
"""

import ctypes
import glob
import os
import platform
import resource
import shutil
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path

from shardqa.worker import system_calls

VARIABLE, READABLE, WRITABLE = "SHARDQA_SANDBOX", "SHARDQA_READABLE", "SHARDQA_WRITABLE"
NETWORK, USER, MEMORY = "SHARDQA_NETWORK", "SHARDQA_USER", "SHARDQA_MEMORY"
PACKAGES = "shardqa-packages"  # what scripts required, beside the node's data
FILES = 4096  # descriptors that may be open at once
OOM_SCORE = 500  # of 1000: the kernel takes the worker before Redis

SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share", "/proc", "/sys", "/opt/cuda")
ETC = ["ld.so.cache", "localtime", "timezone", "hosts", "resolv.conf", "nsswitch.conf", "host.conf", "gai.conf"]
ETC += ["passwd", "group", "os-release", "mime.types", "ssl/certs"]
# of libraries: /etc as a whole would show redis.conf and its passwords
SETTINGS = (*(f"/etc/{name}" for name in ETC), "/dev/urandom", "/dev/random", "/dev/zero")
PROGRAMS = ("/usr", "/bin", "/lib", "/lib64")  # that a build may run
BUILD_SETTINGS = ("/etc/pip.conf", "/etc/debian_version", "/etc/ca-certificates", "/etc/alternatives")  # and read
DEVICES = ("/dev/null", "/dev/nvidia*", "/dev/dri", "/dev/kfd")  # written, too

PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
CAPABILITIES_VERSION = 0x20080522  # of capset(2)
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

# ---- landlock(7)

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, the same everywhere
PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE = 1 << 14
ALL_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1}  # by version; from 3 on with TRUNCATE
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
BIND_TCP, CONNECT_TCP = 1, 2
NETWORK_SINCE = 4  # landlock's version that knows TCP
SCOPES = 3  # abstract sockets and signals


class Missing(Exception):
    """The kernel does not have it, or refuses."""


def confine(environment: Mapping[str, str]) -> str:
    """Puts up what walls there are, in a process of one thread; returns what is in force, as INFO shows it.

    Raises OSError where the process can't become the user that it shall run as.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _prefer_for_oom()
    limits = [wall for wall in (_user(libc, environment.get(USER, "")), _memory(environment.get(MEMORY, ""))) if wall]
    if environment.get(VARIABLE, "yes") == "no":
        return " ".join(["off", *limits])
    walls: list[str] = []
    any_network = environment.get(NETWORK) == "any"
    if any_network:
        _ask_for_names_over_tcp()
    steps: tuple[tuple[str, Callable[[], str]], ...] = (
        ("no_new_privs", lambda: _no_new_privs(libc)),
        ("capabilities", lambda: _no_capabilities(libc)),
        (
            "landlock",
            lambda: _landlock(libc, _split(environment, READABLE), _split(environment, WRITABLE), any_network),
        ),
        ("limits", _limits),
        ("seccomp", lambda: _seccomp(libc, any_network)),
        ("network", lambda: _network(walls, any_network)),
    )
    for name, close in steps:
        try:
            walls.append(f"{name}{close()}")
        except Missing as error:
            walls.append(f"{name}:missing({error})")
            print(f"sandbox: {name} is not in force: {error}", file=sys.stderr)
    return " ".join([*walls, *limits])


def _ask_for_names_over_tcp() -> None:
    """Keeps glibc from asking the servers of /etc/resolv.conf by datagrams, which no wall lets through."""
    os.environ["RES_OPTIONS"] = f"{os.environ.get('RES_OPTIONS', '')} use-vc".strip()


def _prefer_for_oom() -> None:
    try:
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    except OSError as error:  # not every container has it; Redis then shares the risk
        print(f"sandbox: oom_score_adj can't be set: {error}", file=sys.stderr)


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def become_user(ids: str) -> None:
    """`uid:gid`; empty: stays who it is. Raises OSError."""
    _user(libc(), ids)


def _user(libc: ctypes.CDLL, ids: str) -> str:
    if not ids:
        return ""
    user, group = map(int, ids.split(":"))
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # else /proc/self belongs to root from here on
    return f"user:{user}"


def _memory(megabytes: str) -> str:
    if megabytes in ("", "0"):
        return ""
    limit = int(megabytes) << 20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    return f"memory:{megabytes}MB"


def _network(walls: list[str], any_network: bool) -> str:
    """Says how open the walls before it left the network."""
    if any_network:
        return ":any"
    versions = [int(wall.removeprefix("landlock")) for wall in walls if wall.removeprefix("landlock").isdigit()]
    if "seccomp" not in walls and not any(version >= NETWORK_SINCE for version in versions):
        raise Missing(f"needs_seccomp_or_landlock_{NETWORK_SINCE}")
    return ":peers"


def _split(environment: Mapping[str, str], name: str) -> list[str]:
    return [path for path in environment.get(name, "").split(":") if path]


def _no_new_privs(libc: ctypes.CDLL) -> str:
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise Missing(os.strerror(ctypes.get_errno()).replace(" ", "_"))
    return ""


def _no_capabilities(libc: ctypes.CDLL) -> str:
    header, none = struct.pack("<Ii", CAPABILITIES_VERSION, 0), bytes(24)
    if libc.capset(header, none) != 0:
        raise Missing(os.strerror(ctypes.get_errno()).replace(" ", "_"))
    return ""


def _limits() -> str:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return ""


# ---- files


def own_folders() -> list[str]:
    """Returns the folders of the interpreter and packages; a checkout's package is links to other folders."""
    import shardqa

    folders = {sys.prefix, sys.base_prefix, *sys.path}
    for folder in shardqa.__path__:
        folders |= {folder, *(str(entry.resolve()) for entry in Path(folder).iterdir() if entry.is_symlink())}
    return sorted(os.path.realpath(folder) for folder in folders if folder)


def _landlock(
    libc: ctypes.CDLL, readable: list[str], writable: list[str], any_network: bool, programs: Sequence[str] = ()
) -> str:
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        raise Missing(os.strerror(ctypes.get_errno()).replace(" ", "_"))
    files = ALL_FILES.get(version, ALL_FILES[2] | TRUNCATE)
    tcp = BIND_TCP if any_network else BIND_TCP | CONNECT_TCP
    size = 8 if version < NETWORK_SINCE else 16 if version < 6 else 24
    attributes = struct.pack("<QQQ", files, tcp, SCOPES)[:size]
    ruleset = libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        raise Missing(os.strerror(ctypes.get_errno()).replace(" ", "_"))
    try:
        reading, all_but_programs = READ_FILE | READ_DIR, files & ~EXECUTE
        devices = [path for pattern in DEVICES for path in glob.glob(pattern)]
        _allow(libc, ruleset, [*own_folders(), *SYSTEM, *SETTINGS, *readable, PACKAGES], reading)
        _allow(libc, ruleset, [*writable, *devices], all_but_programs)
        _allow(libc, ruleset, [*programs, *(own_folders() + writable if programs else ())], reading | EXECUTE)
        if libc.syscall(RESTRICT_SELF, ruleset, 0) != 0:
            raise Missing(os.strerror(ctypes.get_errno()).replace(" ", "_"))
    finally:
        os.close(ruleset)
    return str(version)


def _allow(libc: ctypes.CDLL, ruleset: int, paths: Iterable[str], access: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # most systems lack some of these
        try:
            mine = access if os.path.isdir(path) else access & OF_A_FILE
            rule = struct.pack("<Qi", mine, descriptor)
            if libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0) != 0:
                raise Missing(f"{path}:_{os.strerror(ctypes.get_errno())}".replace(" ", "_"))
        finally:
            os.close(descriptor)


def confine_build(folder: str, source: str) -> None:
    """The walls of pip where it builds packages, whose setup is code: it may run programs, read `source` and the
    libraries, write to `folder` alone, and connect by TCP. Raises Missing where the kernel has no Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    _no_new_privs(libc)
    _no_capabilities(libc)
    _landlock(libc, [*BUILD_SETTINGS, source], [folder], True, PROGRAMS)


def has_landlock() -> bool:
    return int(libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)) >= 1


# ---- system calls


def _seccomp(libc: ctypes.CDLL, any_network: bool) -> str:
    machine = system_calls.MACHINES.get(platform.uname().machine)
    if machine is None or sys.byteorder != "little":
        raise Missing(f"no_table_of_system_calls_for_{platform.uname().machine}")
    program = system_calls.filter_program(*machine, os.getpid(), any_network)
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in program))
    whole = struct.pack("@HxxxxxxP", len(program), ctypes.addressof(code))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whole, 0, 0) != 0:
        raise Missing(os.strerror(ctypes.get_errno()).replace(" ", "_"))
    for name in ("copymode", "copystat"):
        setattr(shutil, name, _without_complaint(getattr(shutil, name)))
    return ""


def _without_complaint(copy: Callable[..., None]) -> Callable[..., None]:
    """Lets shutil.copy and its like go on: their copies have the modes and times of new files, as all in here have."""

    @wraps(copy)
    def tried(*arguments: object, **options: object) -> None:
        with suppress(PermissionError):
            copy(*arguments, **options)

    return tried
