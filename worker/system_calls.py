"""The system calls that a confined worker may make, and the seccomp filter that refuses all others.

Each line below holds name, number on x86-64 and number on ARM (64 bits), as the kernel's headers have them. A call that
takes what belongs to others (a process, a mode, an address) is let through for certain arguments alone. The calls that
change modes, owners, times and attributes of files are not there at all: Landlock does not judge them, and a filter
does not see which file is meant. So it is with flock, by which Redis servers of one machine share files of models.
"""

import errno
import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass

TABLE = """
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69, pwritev 296 70,
preadv2 327 286, pwritev2 328 287, lseek 8 62, close 3 57, close_range 436 436, dup 32 23, dup2 33 -,
dup3 292 24, sendfile 40 71, copy_file_range 326 285, fsync 74 82, fdatasync 75 83, sync_file_range 277 84,
fadvise64 221 223, readahead 187 213, fallocate 285 47, ftruncate 77 46, pipe 22 -, pipe2 293 59,
eventfd 284 -, eventfd2 290 19,
stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44, access 21 -,
faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78, getdents 78 -, getdents64 217 61,
getcwd 79 17, chdir 80 49, fchdir 81 50, umask 95 166, unlink 87 -, unlinkat 263 35, rmdir 84 -, rename 82 -,
renameat 264 38, renameat2 316 276, link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36, getxattr 191 8,
lgetxattr 192 9, fgetxattr 193 10, listxattr 194 11, llistxattr 195 12, flistxattr 196 13,
select 23 -, pselect6 270 72, poll 7 -, ppoll 271 73, epoll_create 213 -, epoll_create1 291 20,
epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441, futex 202 98,
futex_waitv 449 449, restart_syscall 219 128, wait4 61 260, waitid 247 95,
recvfrom 45 207, recvmsg 47 212, recvmmsg 299 243, shutdown 48 210, getsockname 51 204, getpeername 52 205,
setsockopt 54 208, getsockopt 55 209,
brk 12 214, mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233, mincore 27 232,
msync 26 227, mlock 149 228, mlock2 325 284, munlock 150 229, mlockall 151 230, munlockall 152 231,
membarrier 324 283, pkey_mprotect 329 288, pkey_alloc 330 289, pkey_free 331 290, mbind 237 235,
get_mempolicy 239 236, set_mempolicy 238 237,
exit 60 93, exit_group 231 94, gettid 186 178, set_tid_address 218 96, set_robust_list 273 99, rseq 334 293,
sched_yield 24 124, getcpu 309 168, arch_prctl 158 -, rt_sigaction 13 134, rt_sigprocmask 14 135,
rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigsuspend 130 133, rt_sigtimedwait 128 137,
sigaltstack 131 132, signalfd4 289 74, pause 34 -,
getpid 39 172, getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
getresuid 118 148, getresgid 120 150, getgroups 115 158, getpgid 121 155, getpgrp 111 -, getsid 124 156,
capget 125 90, getrusage 98 165, getrlimit 97 163, getpriority 140 141, sched_getaffinity 204 123,
sched_getparam 143 121, sched_getscheduler 145 120, sched_getattr 315 275, sched_get_priority_max 146 125,
sched_get_priority_min 147 126, sched_rr_get_interval 148 127, sysinfo 99 179, uname 63 160, times 100 153,
getrandom 318 278,
clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115, nanosleep 35 101, gettimeofday 96 169,
time 201 -, alarm 37 -, getitimer 36 102, setitimer 38 103, timer_create 222 107, timer_settime 223 110,
timer_gettime 224 108, timer_getoverrun 225 109, timer_delete 226 111, timerfd_create 283 85,
timerfd_settime 286 86, timerfd_gettime 287 87,
"""
BY_ARGUMENT = """
open 2 -, openat 257 56, creat 85 -, mkdir 83 -, mkdirat 258 34, clone 56 220, socket 41 198, connect 42 203,
socketpair 53 199, sendto 44 206, sendmsg 46 211, sendmmsg 307 269, kill 62 129, tgkill 234 131,
prlimit64 302 261, setpriority 141 140, sched_setaffinity 203 122, fcntl 72 25, ioctl 16 29, prctl 157 167,
"""
FALLIBLE = 424  # calls from here on came after Linux 5.0, under one number everywhere; libraries do without them
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # audit architecture, column in the tables
X32 = 0x40000000  # its calls have numbers of their own

ALLOW, DENY, NO_SYSCALL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
LOAD, EQUAL, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in seccomp_data
WHOLE = 0xFFFFFFFF

CLONE_THREAD, NAMESPACES = 0x00010000, 0x7E020080  # CLONE_NEW…
SETUID_SETGID = 0o6000  # of a mode
MSG_FASTOPEN = 0x20000000  # connects
SOCK_TYPES = 0xF
# of fcntl; not the owners, signals, leases and notes, which reach other processes
FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1034)
# of ioctl: TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX
DESCRIPTORS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
GPU_KINDS = (0x4600, 0x4B00, 0x6400)  # nvidia, kfd, dri
UVM = (0x30000001, 0x30000002)  # nvidia's memory; its other requests are below 256
# of prctl: dumpable?, name, capabilities?, no_new_privs?, huge pages, names of memory
PRCTL = (3, 15, 16, 23, 39, 41, 42, 0x53564D41)
PR_SET_PDEATHSIG = 1

Line = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


@dataclass(frozen=True, slots=True)
class Bits:
    """A condition on one argument: its bits below `mask` are one of `values`."""

    argument: int
    values: tuple[int, ...]
    mask: int = WHOLE
    high: bool = False  # the upper half of 64 bits

    def lines(self, behind: int) -> list[Line]:
        """Falls through where it holds, else jumps over `behind` lines more."""
        mask_lines: list[Line] = [] if self.mask == WHOLE else [(AND, 0, 0, self.mask)]
        *first, last = self.values
        comparisons = [(EQUAL, len(first) - n, 0, value) for n, value in enumerate(first)]
        offset = ARGUMENTS + 8 * self.argument + 4 * self.high
        return [(LOAD, 0, 0, offset), *mask_lines, *comparisons, (EQUAL, 0, behind, last)]


Rules = dict[str, tuple[tuple[Bits, ...], ...]]  # by call: ways to be let through, each of conditions that all hold


def rules(pid: int, any_network: bool) -> Rules:
    """Lists what the process `pid` may call."""
    own_threads, none = Bits(0, (CLONE_THREAD,), CLONE_THREAD | NAMESPACES), (0,)
    tcp = (Bits(0, (socket.AF_INET, socket.AF_INET6)), Bits(1, (socket.SOCK_STREAM,), SOCK_TYPES))
    nowhere = (Bits(4, none), Bits(4, none, high=True), Bits(3, none, MSG_FASTOPEN))
    reads_only = (Bits(0, (0, pid)), Bits(2, none), Bits(2, none, high=True))
    requests = Bits(1, (*DESCRIPTORS, *UVM)), Bits(1, GPU_KINDS, 0xFF00), Bits(1, none, 0xFFFFFF00)
    return {
        "open": (_opened(1),),
        "openat": (_opened(2),),
        "creat": ((_mode(1),),),
        "mkdir": ((_mode(1),),),
        "mkdirat": ((_mode(2),),),
        "clone": ((own_threads,),),
        "socket": (tcp,) if any_network else (),
        "connect": ((),) if any_network else (),
        "socketpair": ((Bits(0, (socket.AF_UNIX,)),),),
        "sendto": (nowhere,),
        "sendmsg": ((Bits(2, none, MSG_FASTOPEN),),),
        "sendmmsg": ((Bits(3, none, MSG_FASTOPEN),),),
        "kill": ((Bits(0, (pid,)),),),
        "tgkill": ((Bits(0, (pid,)),),),
        "prlimit64": (reads_only,),
        "setpriority": ((Bits(0, (os.PRIO_PROCESS,)), Bits(1, none)),),
        "sched_setaffinity": ((Bits(0, none),),),
        "fcntl": ((Bits(1, FCNTL),),),
        "ioctl": tuple((request,) for request in requests),
        "prctl": ((Bits(0, PRCTL),), (Bits(0, (PR_SET_PDEATHSIG,)), Bits(1, (signal.SIGKILL,)))),
    }


def _mode(argument: int) -> Bits:
    return Bits(argument, (0,), SETUID_SETGID)


def _opened(flags: int) -> tuple[Bits, ...]:
    """Lets a file be opened, but none cut short that is only read: Landlock judges that from its version 3 on."""
    reading, cut = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_ACCMODE), os.O_TRUNC
    writing = (os.O_WRONLY | cut, os.O_RDWR | cut, os.O_ACCMODE | cut)
    return Bits(flags, (*reading, *writing), os.O_ACCMODE | cut), _mode(flags + 1)


def numbers(table: str, column: int) -> dict[str, int]:
    """Returns the numbers of the calls that this machine has."""
    entries = (entry.split() for entry in table.split(","))
    return {words[0]: int(words[1 + column]) for words in entries if words and words[1 + column] != "-"}


def filter_program(architecture: int, column: int, pid: int, any_network: bool) -> list[Line]:
    """Writes the filter in classic BPF; each call is a block that falls through to the next."""
    ways = rules(pid, any_network)
    program: list[Line] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, DENY),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, X32),
        (RETURN, 0, 0, DENY),
    ]
    for number in numbers(TABLE, column).values():
        program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    for name, number in numbers(BY_ARGUMENT, column).items():
        block = [line for way in ways[name] for line in _way(way)]
        program += [(EQUAL, 0, len(block) + 1, number), *block, (RETURN, 0, 0, DENY)]
    return [*program, (AT_LEAST, 0, 1, FALLIBLE), (RETURN, 0, 0, NO_SYSCALL), (RETURN, 0, 0, DENY)]


def _way(conditions: tuple[Bits, ...]) -> Iterator[Line]:
    """Returns where all hold, else falls through to what follows it."""
    block: list[Line] = [(RETURN, 0, 0, ALLOW)]
    for bits in reversed(conditions):
        block = [*bits.lines(len(block)), *block]
    yield from block
