"""The first program inside a box: it gives up every right and then becomes the interpreter that was asked for.

This file runs by itself in a fresh interpreter (`python -I -S -c`), so it imports the standard library only, and
all of it here, for later it may be out of reach. `boot(job)` is called at its end by modtools/sandbox/order.py.
Sources: prctl(2), capset(2), landlock(7), seccomp(2), setrlimit(2).
"""

import _signal as signal  # the built-in part: the enumerations around it cost 5 ms a run
import ctypes
import os
import resource
import struct
import sys

SET_DEATH_SIGNAL, SET_NO_NEW_PRIVILEGES, SET_SECCOMP, SET_SUBREAPER = 1, 38, 22, 36
SECCOMP_FILTER = 2
CAPABILITY_VERSION = 0x20080522
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
LANDLOCK_PATH_BENEATH = 1
LINUX = sys.platform == "linux"


def boot(job):
    """Confine this process as the job says, then become the interpreter with the arguments in sys.argv.

    Job: supervised, parent_pid, folder, limits {name: (soft, hard)}, uid or None, landlock (attributes,
    [(path, rights)]) or None, seccomp (program) or None, report_fd, executable, environment, alias (folder,
    [library folders]) or None. On report_fd the parent reads "ready" when all was done, or else what went wrong.
    """
    try:
        starter = supervise(job["parent_pid"]) if job["supervised"] else os.getppid()
        executable, environment = job["executable"], job["environment"]
        if job["alias"]:
            executable, environment = reach_by_descriptor(*job["alias"], executable, environment)
        ruleset = open_ruleset(*job["landlock"]) if job["landlock"] else None
        for name, (soft, hard) in job["limits"].items():
            limit = getattr(resource, name)
            most = resource.getrlimit(limit)[1]
            if most != resource.RLIM_INFINITY:
                soft, hard = min(soft, most), min(hard, most)
            resource.setrlimit(limit, (soft, hard))
        if job["uid"] is not None:
            os.setgroups([])
            os.setresgid(job["uid"], job["uid"], job["uid"])
            os.setresuid(job["uid"], job["uid"], job["uid"])
        os.chdir(job["folder"])
        if LINUX:
            control(SET_DEATH_SIGNAL, signal.SIGKILL)  # after the change of uid, which would clear it
        if os.getppid() != starter:
            os._exit(1)  # it died before we could be told
        if job["seccomp"]:
            system_call("capset", struct.pack("II", CAPABILITY_VERSION, 0), bytes(24))  # none of any kind
            control(SET_NO_NEW_PRIVILEGES, 1)
            if ruleset is not None:
                system_call("syscall", LANDLOCK_RESTRICT, ruleset, 0)
            restrict_calls(job["seccomp"])
        os.set_inheritable(job["report_fd"], False)
        os.write(job["report_fd"], b"ready")
        os.execve(executable, [executable, "-I", "-B", "-X", "utf8", *sys.argv[1:]], environment)
    except BaseException as error:
        os.write(job["report_fd"], f"{type(error).__name__}: {error}".encode())
        os._exit(1)


def supervise(parent_pid):
    """Fork: the child returns and is boxed; this process waits, ends all that is left, and exits likewise.

    It stands outside the box, so it outlives what happens in there, and it dies with the parent. Everything in
    the box stays in one process group (a box may not leave it), so one signal reaches all. The child gets this
    process's id.
    """
    supervisor, child = os.getpid(), 0  # a signal to 0 reaches ourselves, which is right until there is a child
    signal.signal(signal.SIGTERM, lambda *_: end(child))
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        return supervisor
    if LINUX:
        control(SET_SUBREAPER, 1)  # orphans of the box become ours, so that we can wait for them
        control(SET_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent_pid:
        end(child)
    status = None
    try:
        while True:
            pid, ended = os.wait()
            if pid == child:
                status = os.waitstatus_to_exitcode(ended)
                end(child)
    except ChildProcessError:  # nobody is left
        os._exit(status if status >= 0 else 128 - status)


def end(child):
    """Kill the first process of the box (it may not have its group yet) and its group."""
    for kill in (os.kill, os.killpg):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass


def reach_by_descriptor(folder, libraries, executable, environment):
    """Name the interpreter through its open folder, for a user who may not pass through that folder's parents.

    The other processes of the box find it under the same name, for they may look into this one.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    os.set_inheritable(descriptor, True)
    alias = f"/proc/{os.getpid()}/fd/{descriptor}"
    paths = {"PATH": alias + environment["PATH"].removeprefix(folder)}
    if libraries:
        paths["LD_LIBRARY_PATH"] = ":".join(alias + library.removeprefix(folder) for library in libraries)
    return alias + executable.removeprefix(folder), environment | paths


def control(option, *arguments):
    """prctl(2)."""
    system_call("prctl", option, *arguments, *[0] * (4 - len(arguments)))


def open_ruleset(attributes, rules):
    """A Landlock rule set, made while its paths can still be reached; it binds nobody yet."""
    ruleset = system_call("syscall", LANDLOCK_CREATE, attributes, len(attributes), 0)
    for path, rights in rules:
        descriptor = os.open(path, os.O_PATH)
        system_call("syscall", LANDLOCK_ADD, ruleset, LANDLOCK_PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
        os.close(descriptor)
    os.set_inheritable(ruleset, False)
    return ruleset


def restrict_calls(program):
    """Seccomp: hand the kernel the filter, 8 bytes an instruction."""
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    control(SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(Program(len(program) // 8, ctypes.addressof(code))))


def system_call(function, *arguments):
    """Call libc's function; integers go as long, bytes as a pointer. Raises OSError where it returns -1."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = getattr(libc, function)(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result == -1:
        raise OSError(ctypes.get_errno(), f"{function}{arguments[:2]}: {os.strerror(ctypes.get_errno())}")
    return result
