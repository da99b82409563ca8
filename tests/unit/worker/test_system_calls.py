"""The filter of system calls, as the kernel would run it, on either machine; the numbers, as its headers have them."""

import os
import platform
import re
import signal
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from shardqa.worker import system_calls
from shardqa.worker.system_calls import ALLOW, BY_ARGUMENT, DENY, MACHINES, NO_SYSCALL, TABLE, Line, numbers

HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}
PID = 77
Verdict = Callable[..., int]
HOLDS: dict[int, Callable[[int, int], bool]] = {
    system_calls.EQUAL: lambda loaded, operand: loaded == operand,
    system_calls.AT_LEAST: lambda loaded, operand: loaded >= operand,
}


def verdict(program: list[Line], architecture: int, number: int, *arguments: int) -> int:
    """Judges a system call as the kernel would: classic BPF over seccomp_data."""
    data = struct.pack("<iIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    at = loaded = 0
    while True:
        code, yes, no, operand = program[at]
        at += 1
        if code == system_calls.LOAD:
            (loaded,) = struct.unpack_from("<I", data, operand)
        elif code == system_calls.AND:
            loaded &= operand
        elif code == system_calls.RETURN:
            return operand
        else:
            at += yes if HOLDS[code](loaded, operand) else no


def judge(machine: str, any_network: bool = False) -> Verdict:
    architecture, column = MACHINES[machine]
    return partial(verdict, system_calls.filter_program(architecture, column, PID, any_network), architecture)


def of_the_kernel(machine: str) -> dict[str, int]:
    """All system calls by name; skips where their header is not installed."""
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(f"{header} is not there (Debian: linux-libc-dev)")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", header.read_text(), re.MULTILINE)
    named = {name: int(number) for name, number in found}
    return {"newfstatat" if name == "fstatat" else name: number for name, number in named.items()}


@pytest.mark.parametrize("any_network", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_is_well_formed(machine: str, any_network: bool) -> None:
    architecture, column = MACHINES[machine]
    program = system_calls.filter_program(architecture, column, PID, any_network)
    assert len(program) < 4096  # the kernel's bound
    for place, (code, yes, no, _) in enumerate(program):
        if code & 7 == 5:  # jumps stay inside
            assert max(yes, no) < 256
            assert place + 1 + max(yes, no) < len(program)


@pytest.mark.parametrize("machine", MACHINES)
def test_each_number_is_the_kernels(machine: str) -> None:
    kernel, ours = of_the_kernel(machine), numbers(TABLE + "," + BY_ARGUMENT, MACHINES[machine][1])
    assert {name: kernel.get(name) for name in ours} == ours


@pytest.mark.parametrize("machine", MACHINES)
def test_what_the_table_does_not_name_is_refused(machine: str) -> None:
    made, column = judge(machine), MACHINES[machine][1]
    let_through = {number for number in range(600) if made(number) == ALLOW}
    assert let_through - set(numbers(BY_ARGUMENT, column).values()) == set(numbers(TABLE, column).values())


REACHING = (
    "ch(mod|own) utime (set|remove)xattr setattr ^truncate mknod flock ptrace process_ kcmp pidfd io(prio|perm|pl) "
    "setscheduler sched_setattr setpgid setsid ^(sem|shm|msg|mq) memfd splice userfault io_uring notify seccomp "
    "personality move_ mount fs(open|pick|config) root unshare setns handle_at quota swap clone3 exec fork perf_ key "
    "bpf module kexec reboot adjtime settimeofday clock_settime hostname set[gu]id capset setrlimit listen accept bind"
).replace(" ", "|")


def test_what_reaches_others_is_not_in_the_table() -> None:
    named = {name for machine in MACHINES for name in numbers(TABLE + "," + BY_ARGUMENT, MACHINES[machine][1])}
    memory = {"mbind", "pkey_mprotect", "pkey_alloc", "pkey_free"}
    assert {name for name in named if re.search(REACHING, name)} == memory


FASTOPEN, WRITE_CUT, READ_CUT = system_calls.MSG_FASTOPEN, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC
JUDGED = [
    ("prlimit64", (0, 7, 0, 1), ALLOW),
    ("prlimit64", (PID, 7, 0, 1), ALLOW),
    ("prlimit64", (PID + 1, 7, 0, 1), DENY),
    ("prlimit64", (0, 7, 1, 0), DENY),
    ("prlimit64", (0, 7, 1 << 32, 0), DENY),
    ("setpriority", (os.PRIO_PROCESS, 0), ALLOW),
    ("setpriority", (os.PRIO_PROCESS, PID + 1), DENY),
    ("setpriority", (os.PRIO_PGRP, 0), DENY),
    ("setpriority", (os.PRIO_USER, 0), DENY),
    ("sched_setaffinity", (0,), ALLOW),
    ("sched_setaffinity", (PID + 1,), DENY),
    ("kill", (PID, 9), ALLOW),
    ("kill", (PID + 1, 0), DENY),
    ("kill", (0, 9), DENY),
    ("kill", (0xFFFFFFFF, 9), DENY),
    ("tgkill", (PID, 1, 9), ALLOW),
    ("tgkill", (PID + 1, 1, 9), DENY),
    ("clone", (0x3D0F00,), ALLOW),  # of a thread
    ("clone", (17,), DENY),
    ("clone", (0x3D0F00 | 0x10000000,), DENY),
    ("openat", (0, 0, os.O_RDONLY, 0o644), ALLOW),
    ("openat", (0, 0, WRITE_CUT | os.O_CREAT, 0o644), ALLOW),
    ("openat", (0, 0, READ_CUT, 0), DENY),
    ("openat", (0, 0, os.O_WRONLY | os.O_CREAT, 0o4755), DENY),
    ("mkdirat", (0, 0, 0o2755), DENY),
    ("socketpair", (socket.AF_UNIX,), ALLOW),
    ("socketpair", (16,), DENY),
    ("sendto", (3, 1, 1, 0, 0), ALLOW),
    ("sendto", (3, 1, 1, 0, 1 << 40), DENY),
    ("sendto", (3, 1, 1, FASTOPEN, 0), DENY),
    ("sendmsg", (3, 1, FASTOPEN), DENY),
    ("sendmmsg", (3, 1, 1, FASTOPEN), DENY),
    ("fcntl", (3, 1030), ALLOW),  # F_DUPFD_CLOEXEC
    ("fcntl", (3, 8), DENY),  # F_SETOWN
    ("fcntl", (3, 10), DENY),  # F_SETSIG
    ("fcntl", (3, 15), DENY),  # F_SETOWN_EX
    ("fcntl", (3, 1024), DENY),  # F_SETLEASE
    ("ioctl", (0, 0x5401), ALLOW),  # TCGETS
    ("ioctl", (0, 0xC020462A), ALLOW),  # of nvidia
    ("ioctl", (0, 0x5412), DENY),  # TIOCSTI
    ("ioctl", (0, 0x40086602), DENY),  # FS_IOC_SETFLAGS
    ("ioctl", (0, 0x8901), DENY),  # FIOSETOWN
    ("prctl", (15,), ALLOW),  # PR_SET_NAME
    ("prctl", (1, signal.SIGKILL), ALLOW),  # PR_SET_PDEATHSIG
    ("prctl", (1, 0), DENY),
    ("prctl", (22,), DENY),  # PR_SET_SECCOMP
    ("prctl", (62,), DENY),  # PR_SCHED_CORE
    ("socket", (socket.AF_INET, socket.SOCK_STREAM), DENY),
    ("connect", (3,), DENY),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "judgement"), JUDGED)
def test_arguments_decide(machine: str, name: str, arguments: tuple[int, ...], judgement: int) -> None:
    assert judge(machine)(numbers(BY_ARGUMENT, MACHINES[machine][1])[name], *arguments) == judgement


@pytest.mark.parametrize("machine", MACHINES)
def test_any_network_is_tcp(machine: str) -> None:
    made, called = judge(machine, any_network=True), numbers(BY_ARGUMENT, MACHINES[machine][1])
    tcp = (socket.SOCK_STREAM, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    assert {made(called["socket"], family, kind) for family in (2, 10) for kind in tcp} == {ALLOW}
    assert {made(called["socket"], *kind) for kind in ((1, 1), (2, 2), (2, 3), (16, 3), (38, 5), (40, 1))} == {DENY}
    assert made(called["connect"]) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_newer_calls_are_absent_and_those_of_other_machines_refused(machine: str) -> None:
    """Libraries then take the older call, as on an older kernel."""
    made, (architecture, column) = judge(machine), MACHINES[machine]
    assert {made(number) for number in (425, 435, 437, 452, 469, 599)} == {NO_SYSCALL}
    assert made(system_calls.X32 | 1) == DENY
    assert verdict(system_calls.filter_program(architecture, column, PID, False), architecture ^ 1, 0) == DENY


def test_this_machine_has_a_table() -> None:
    assert platform.uname().machine in MACHINES
