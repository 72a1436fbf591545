"""A filter of system calls: the small program the kernel asks before every call of a boxed process.

The filter is a list of refusals, the second wall behind namespaces or Landlock: it takes away what neither
covers, or what a bug in the kernel has been reached through before. Its language is classic BPF, with
one accumulator that is loaded from `struct seccomp_data { int nr; u32 arch; u64 ip; u64 args[6]; }`.
Source: seccomp(2); the numbers are those of Linux's asm/unistd.h.
"""

from __future__ import annotations

import errno
import struct

from modtools.errors import MissingPieceError

# Each group: {name: (number on x86_64, number on aarch64)}; None where the architecture has no such call.
# Sockets (name spaces do not cover all families: AF_VSOCK reaches the host of a virtual machine), other processes'
# memory and descriptors, mounts, name spaces, handles, and the kernel's widest interfaces.
ALWAYS = {
    "socket": (41, 198), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "fanotify_init": (300, 262), "syslog": (103, 116),
}  # fmt: skip
# What a box without name spaces needs on top: no shared memory or queues, no attributes on others'
# files, no way out of the process group in which everything is ended, no hand on the scheduling of others.
WITHOUT_NAMESPACES = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semctl": (66, 191), "semop": (65, 193), "semtimedop": (220, 192), "msgget": (68, 186), "msgctl": (71, 187),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "mq_open": (240, 180), "mq_unlink": (241, 181), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "inotify_init": (253, None), "inotify_init1": (294, 26), "setsid": (112, 157),
    "setpgid": (109, 154), "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
# A box that keeps its owner's uid could open the owner's files to others; Landlock does not cover that.
METADATA = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "utimensat": (280, 88), "futimesat": (261, None),
}  # fmt: skip
TRUNCATE = {"truncate": (76, 45)}  # covered by Landlock from version 3 on

CLONE, CLONE3, SOCKETPAIR, PRLIMIT = (56, 220), (435, 435), (53, 199), (302, 261)  # refused for some arguments
CLONE_NEW = 0x7E020000  # the flags CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
NEWEST = 450  # calls after set_mempolicy_home_node (Linux 5.17) are answered as an older kernel would
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH_*

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_BITS, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
KILL_PROCESS, REFUSE, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction; a jump skips that many instructions."""
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(number: int, error: int = errno.EPERM) -> bytes:
    return _step(JUMP_EQUAL, number, 0, 1) + _step(RETURN, REFUSE | error)


def _refuse_if(number: int, argument: int, jump: int, value: int, on_match: bool) -> bytes:
    """Refuse the call where its argument (0 to 5, low 32 bits) matches, or where it does not."""
    test = _step(jump, value, *((0, 1) if on_match else (1, 0)))
    return b"".join([
        _step(JUMP_EQUAL, number, 0, 4), _step(LOAD, 16 + 8 * argument), test,
        _step(RETURN, REFUSE | errno.EPERM), _step(LOAD, 0),
    ])  # fmt: skip


def program(machine: str, *groups: dict[str, tuple[int | None, int]]) -> bytes:
    """Assemble a filter that refuses the groups' calls, new name spaces and other processes' limits.

    Args:
        machine: "x86_64" or "aarch64", as platform.machine() says; MissingPieceError otherwise.
        groups: of the above.
    """
    if machine not in ARCHITECTURES:
        raise MissingPieceError(f"the filter of system calls knows {' and '.join(ARCHITECTURES)}, not {machine}")
    column, architecture = ARCHITECTURES[machine]
    steps = [
        _step(LOAD, 4), _step(JUMP_EQUAL, architecture, 1, 0), _step(RETURN, KILL_PROCESS),
        _step(LOAD, 0), _step(JUMP_GREATER, NEWEST, 0, 1), _step(RETURN, REFUSE | errno.ENOSYS),
        _refuse(CLONE3[column], errno.ENOSYS),  # its flags lie in memory, out of sight; libc falls back to clone
        _refuse_if(CLONE[column], 0, JUMP_BITS, CLONE_NEW, on_match=True),
        # A connected pair of AF_UNIX (1) streams (1) reaches nobody else, and asyncio needs one.
        _refuse_if(SOCKETPAIR[column], 0, JUMP_EQUAL, 1, on_match=False),
        _refuse_if(SOCKETPAIR[column], 1, JUMP_BITS, 0b1110, on_match=True),
        _refuse_if(PRLIMIT[column], 0, JUMP_EQUAL, 0, on_match=False),  # of oneself (0) only
    ]  # fmt: skip
    numbers = [number[column] for group in groups for number in group.values()]
    steps += [_refuse(number) for number in numbers if number is not None]
    return b"".join([*steps, _step(RETURN, ALLOW)])
