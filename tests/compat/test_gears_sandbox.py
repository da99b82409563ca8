"""A function of a real node against the machine: what it may do is in INFO, and what it may not fails."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from shardqa import topology
from shardqa.cluster import doctor, redis_server
from tests.compat.scripts import send
from tests.nodes import Node, wait_until

ROOT = Path(__file__).parents[2]
TRY = """
def attempt(_):
    import os, socket, subprocess
    try:
        {code}
    except OSError as error:
        return 'refused'
    return 'done'
GB('PythonReader').map(attempt).run(lambda: [1], mode='async_local')
"""


def attempt(client: Redis, code: str, helpers: str = "") -> str:
    results, errors = send(client, "RG.PYEXECUTE", helpers + TRY.format(code=code))
    assert errors == []
    return str(results[0])


def in_force(client: Redis) -> str:
    return str(wait_until(lambda: client.info("shardqa").get("shardqa_sandbox"), "the worker tells INFO"))


def by_doctor(client: Redis) -> dict[str, tuple[str, str]]:
    """Gives verdict and finding of `shardqa doctor` on a node's worker, by check."""
    nothing = frozenset[int](), frozenset[str]()
    place = topology.Node("", "", 0, "master", None, (), *nothing, connected=True)
    return {finding.check: (finding.verdict, finding.found) for finding in doctor._worker(place, client)}


LIBC = """
def call(name, *arguments):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
def limit(who, which, value):
    import resource
    resource.prlimit(who, which, (value, value))
"""
OTHERS = [  # of Redis as a process
    "limit({redis}, 0, 1)",  # RLIMIT_CPU
    "limit({redis}, 7, 10)",  # RLIMIT_NOFILE
    "limit(0, 7, 10)",
    "os.setpriority(os.PRIO_PROCESS, {redis}, 19)",
    "os.setpriority(os.PRIO_PGRP, 0, 19)",
    "os.setpriority(os.PRIO_USER, 0, 19)",
    "os.sched_setaffinity({redis}, (0,))",
    "os.sched_setscheduler({redis}, os.SCHED_IDLE, os.sched_param(0))",
    "os.sched_setparam({redis}, os.sched_param(0))",
    "os.pidfd_open({redis})",
    "os.kill({redis}, 9)",
    "os.kill(0, 0)",
    "os.kill(-1, 0)",
    "os.killpg(os.getpgid({redis}), 0)",
    "open('/proc/{redis}/mem', 'rb')",
    "open('/proc/{redis}/environ', 'rb')",
    "os.readlink('/proc/{redis}/fd/0')",
    "os.listdir('/proc/{redis}/cwd')",
    "open('/proc/{redis}/maps').read()",
    "open('/proc/{redis}/oom_score_adj', 'w')",
    "open('/proc/self/oom_score_adj', 'w')",
    "open('/proc/sys/kernel/core_pattern', 'w')",
    "call('ptrace', 16, {redis}, 0, 0)",
    "call('process_vm_readv', {redis}, 0, 0, 0, 0, 0)",
    "call('process_vm_writev', {redis}, 0, 0, 0, 0, 0)",
    "import fcntl; a, b = socket.socketpair(); fcntl.fcntl(a, fcntl.F_SETOWN, {redis})",
    "import fcntl; a, b = socket.socketpair(); fcntl.fcntl(a, 10, 9)",  # F_SETSIG
]
FILES = [
    "open('/etc/shadow')",
    "os.listdir('/root')",
    "os.listdir('/')",
    "open('/var/tmp/shardqa-sandbox-test', 'w')",
    "os.unlink('/etc/hosts')",
    "open({folder!r} + '/appendonlydir/stolen', 'w')",
    "os.listdir({folder!r})",
    "os.chmod({file!r}, 0o666)",
    "os.chmod({file!r}, 0o666, follow_symlinks=False)",
    "os.fchmod(os.open({file!r}, os.O_RDONLY), 0o666)",
    "os.chmod('/proc/self/fd/%d' % os.open({file!r}, os.O_PATH), 0o666)",
    "os.chown({file!r}, 1, 1)",
    "os.lchown({file!r}, 1, 1)",
    "os.fchown(os.open({file!r}, os.O_RDONLY), 1, 1)",
    "os.utime({file!r}, (1, 1))",
    "os.utime(os.open({file!r}, os.O_RDONLY), (1, 1))",
    "os.setxattr({file!r}, 'user.a', b'b')",
    "os.setxattr(os.open({file!r}, os.O_RDONLY), 'user.a', b'b')",
    "os.removexattr({file!r}, 'user.kept')",
    "import fcntl; fcntl.ioctl(os.open({file!r}, os.O_RDONLY), 0x40086602, bytes(8))",  # FS_IOC_SETFLAGS
    "import fcntl; fcntl.flock(os.open({file!r}, os.O_RDONLY), fcntl.LOCK_EX)",
    "os.truncate({file!r}, 0)",
    "os.open({file!r}, os.O_RDONLY | os.O_TRUNC)",
    "open({file!r}, 'a')",
    "os.unlink({file!r})",
    "os.rename({file!r}, {writable!r} + '/moved')",
    "os.link({file!r}, {writable!r} + '/linked')",
    "os.link({writable!r} + '/own', {file!r} + '-linked')",
    "os.rename({writable!r} + '/own', {file!r})",
    "os.symlink('/etc', {file!r} + '-link')",
    "os.mkfifo({writable!r} + '/pipe')",
    "os.open({writable!r} + '/setuid', os.O_CREAT | os.O_WRONLY, 0o4755)",
    "os.symlink({secret!r}, {writable!r} + '/way'); open({writable!r} + '/way')",
]
MACHINE = [
    "socket.create_connection(('127.0.0.1', {port}))",
    "socket.socket().bind(('127.0.0.1', 0))",
    "socket.socket().listen()",
    "subprocess.run(['true'])",
    "os.fork()",
    *(f"socket.socket({family}, {kind})" for family, kind in ((1, 1), (1, 2), (16, 3), (17, 3), (38, 5), (40, 1))),
    "call('unshare', 0x10000000)",
    "call('setns', 0, 0)",
    "call('personality', 0x40000)",
    "call('mount', b'none', b'/', b'tmpfs', 0, 0)",
    "call('chroot', b'/')",
    "call('shmget', 0, 4096, 0o1600)",
    "call('semget', 0, 1, 0o1600)",
    "call('msgget', 0, 0o1600)",
    "call('inotify_init')",
    "call('sethostname', b'x', 1)",
    "call('prctl', 62, 1, {redis}, 0, 0)",  # PR_SCHED_CORE
    "os.memfd_create('program')",
    "import fcntl; fcntl.ioctl(0, 0x5412, b'x')",  # TIOCSTI
    "os.execve('/bin/true', ['true'], dict())",
    "os.posix_spawn('/bin/true', ['true'], dict())",
    "import mmap; os.pread(os.open('/dev/mem', os.O_RDONLY), 1, 0)",
]


def test_a_function_touches_no_other_process_no_other_file_and_not_the_machine(
    start_node: Callable[..., Node], tmp_path: Path
) -> None:
    readable, writable, secret = (tmp_path / name for name in ("readable", "writable", "secret"))
    for folder in (readable, writable):
        folder.mkdir()
    file = readable / "file"
    for path in (file, secret, writable / "own"):
        path.write_text("kept")
    file.chmod(0o600)
    with suppress(OSError):  # not every file system has them
        os.setxattr(file, "user.kept", b"yes")
    before = file.stat()
    node = start_node(module_arguments=("READABLE", str(readable), "WRITABLE", str(writable)))
    with node.client(decode_responses=True) as client:
        if "missing" in in_force(client):
            pytest.skip(f"this kernel lacks a wall: {in_force(client)}")
        names = {"redis": client.info("server")["process_id"], "file": str(file)}
        names |= {"writable": str(writable), "secret": str(secret), "folder": str(node.folder), "port": node.port}
        limits = Path(f"/proc/{names['redis']}/limits").read_text()
        codes = [code.format(**names) for code in (*OTHERS, *FILES, *MACHINE)]
        assert [code for code in codes if attempt(client, code, LIBC) != "refused"] == []
        assert Path(f"/proc/{names['redis']}/limits").read_text() == limits
        assert client.ping()
    after = file.stat()
    assert (after.st_mode, after.st_mtime, after.st_ctime) == (before.st_mode, before.st_mtime, before.st_ctime)


STANDARD = """
def use(folder):
    import asyncio, concurrent.futures, logging.handlers, mmap, os, pathlib, shutil, socket, sqlite3, tarfile, tempfile
    import zipfile, zoneinfo
    os.chdir(folder)
    socket.socketpair(), mmap.mmap(-1, 4096), open('/proc/cpuinfo').read(), zoneinfo.ZoneInfo('UTC')
    open('/dev/null', 'w').write(str(os.urandom(8)))
    pathlib.Path('a').write_text('hello')
    pathlib.Path('a').touch()
    shutil.copy('a', 'b')
    shutil.copy2('a', 'c')
    shutil.copytree('.', tempfile.mkdtemp(dir=folder), dirs_exist_ok=True, ignore=shutil.ignore_patterns('tmp*'))
    with zipfile.ZipFile('a.zip', 'w') as file:
        file.write('a')
    with zipfile.ZipFile('a.zip') as file:
        file.extractall('unzipped')
    with tarfile.open('a.tar.gz', 'w:gz') as file:
        file.add('a')
    with tarfile.open('a.tar.gz') as file:
        file.extractall('untarred')
    with tempfile.TemporaryDirectory(dir=folder) as made:
        pathlib.Path(made, 'x').mkdir()
    with sqlite3.connect('base') as base:
        base.execute('CREATE TABLE t (a)')
    logging.handlers.RotatingFileHandler('log', backupCount=1).doRollover()
    asyncio.run(asyncio.sleep(0))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [*pool.map(os.path.getsize, ['a', 'b', 'c', 'unzipped/a', 'untarred/a']), os.path.exists(made)]
"""


def test_the_standard_library_works_in_a_folder_that_is_opened_to_functions(
    start_node: Callable[..., Node], tmp_path: Path
) -> None:
    """Copies have the modes and times of new files."""
    node = start_node(module_arguments=("WRITABLE", str(tmp_path)))
    with node.client(decode_responses=True) as client:
        run = f"GB('PythonReader').map(use).run(lambda: [{str(tmp_path)!r}], mode='async_local')"
        assert send(client, "RG.PYEXECUTE", STANDARD + run) == [["[5, 5, 5, 5, 5, False]"], []]
    assert (tmp_path / "a").read_text() == "hello"


def test_a_node_without_a_sandbox_says_so(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("SANDBOX", "no"))
    with node.client(decode_responses=True) as client:
        assert in_force(client) == "off"
        assert by_doctor(client)["sandbox"] == ("warning", "off")
        assert attempt(client, "subprocess.run(['true'])") == "done"


def test_the_network_can_be_opened_to_functions(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("SANDBOX", "network"))
    with node.client(decode_responses=True) as client:
        assert "network:any" in in_force(client)
        assert "network:any" in by_doctor(client)["sandbox"][1]
        assert attempt(client, f"socket.create_connection(('127.0.0.1', {node.port}))") == "done"


def test_a_function_that_needs_more_memory_than_there_may_be_fails_alone(start_node: Callable[..., Node]) -> None:
    node = start_node(module_arguments=("MEMORY", "1024"))
    with node.client(decode_responses=True) as client:
        pid = client.info("shardqa")["shardqa_worker_pid"]
        big = "GB('PythonReader').map(lambda n: len(bytearray(n << 20))).run(lambda: [2000], mode='async_local')"
        error = "OOM the function needed more memory than the worker may have (1024 MB, the module's argument MEMORY)"
        assert send(client, "RG.PYEXECUTE", big) == [[], [error]]
        assert send(client, "RG.PYEXECUTE", big.replace("2000", "2")) == [["2097152"], []]
        info = client.info("shardqa")
        assert (info["shardqa_worker_pid"], info["shardqa_memory_limit_mb"]) == (pid, 1024)
        assert "memory:1024MB" in info["shardqa_sandbox"]
        assert 0 < wait_until(lambda: client.info("shardqa").get("shardqa_allocated_mb")) < 1024
        verdict, finding = by_doctor(client)["worker's memory"]
        assert (verdict, finding.partition(" ")[2]) == ("ok", "of 1024 MB")
        assert by_doctor(client)["sandbox"] == ("ok", in_force(client))


@pytest.fixture
def readable_python() -> Iterator[Path]:
    """An interpreter that every user may read and that has this one's packages; skips where there is none."""
    python = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(p)), "")
    version = [python, "-c", f"import sys; print(sys.version_info[:2] == {sys.version_info[:2]})"]
    if not python or subprocess.run(version, capture_output=True, text=True, check=True).stdout != "True\n":
        pytest.skip("this Python lies where other users may not read, and the system has no other of its version")
    with tempfile.TemporaryDirectory(prefix="shardqa-python-") as folder:  # pytest's own are closed to other users
        os.chmod(folder, 0o755)
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
        (packages,) = (Path(folder) / "lib").glob("python*/site-packages")
        (packages / "async_timeout.py").write_text("from asyncio import timeout")  # redis-py's need before 3.11.3
        paths = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "shardqa-tests.pth").write_text("\n".join([*paths, str(ROOT / "src")]))
        yield Path(folder) / "bin" / "python"


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts a Redis that may change users")
def test_a_worker_has_a_user_of_its_own(start_node: Callable[..., Node], readable_python: Path) -> None:
    node = start_node(module_arguments=("USER", "nobody"), python=readable_python)
    with node.client(decode_responses=True) as client:
        nobody = pwd.getpwnam("nobody")
        assert f"user:{nobody.pw_uid}" in in_force(client)
        pid = int(client.info("shardqa")["shardqa_worker_pid"])
        status = Path(f"/proc/{pid}/status").read_text()
        assert f"Uid:\t{nobody.pw_uid}\t{nobody.pw_uid}\t{nobody.pw_uid}" in status
        assert f"Gid:\t{nobody.pw_gid}" in status
        assert re.search(r"Groups:\s*\n.*CapEff:\t0+\n", status, re.DOTALL)
        assert attempt(client, "os.setresuid(0, 0, 0)") == "refused"
        assert client.execute_command("RG.PYEXECUTE", "GB('PythonReader').run(lambda: [1])") == [["1"], []]
        os.kill(pid, signal.SIGSTOP)  # what Redis can't kill would stay
        wait_until(lambda: client.info("shardqa")["shardqa_worker_pid"] not in (0, pid), "a new worker")


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv to be another user")
def test_a_redis_that_may_not_change_users_says_so(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", module_arguments=("USER", "nobody"))
    node.launch()
    node.stop()
    (node.folder / "redis.log").unlink(missing_ok=True)
    command = ["setpriv", "--bounding-set=-setuid", "--inh-caps=-setuid", str(redis_server.find_server())]
    command.append(str(node.folder / redis_server.CONFIG))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=node.folder)
    assert "left out, or Redis must run as root (it lacks CAP_SETUID, CAP_SETGID or CAP_KILL)" in done.stdout
    assert done.returncode != 0
