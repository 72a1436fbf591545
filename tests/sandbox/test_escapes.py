"""Ways out of the box, each judged by its effect outside. At "rlimits_only", the control, each succeeds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

SECRET = "the-secret-of-the-host"
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the boxes are Linux's")


@pytest.fixture
def secret(folder) -> Path:
    """A file that every user of the machine may read and write."""
    path = folder / "secret.txt"
    path.write_text(SECRET)
    path.chmod(0o666)
    return path


@pytest.fixture
def victim():
    """A process of the host, with a secret in its environment, that ends itself after a minute."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"],
        env={"SECRET": SECRET},
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def escapes(level: str) -> bool:
    """Whether code at this level is expected to get out."""
    return level == "rlimits_only"


READS = {
    "open": "open({path!r}).read()",
    "relative": "open('../secret.txt').read()",
    "through_a_link": "os.symlink({path!r}, 'link') or open('link').read()",
    "through_a_linked_folder": "os.symlink('..', 'up') or open('up/secret.txt').read()",
    "through_proc_root": "open('/proc/self/root' + {path!r}).read()",
    "through_the_parent_of_the_box": "open('/proc/%d/root%s' % (os.getppid(), {path!r})).read()",
    "chdir_first": "os.chdir(os.path.dirname({path!r})) or open('secret.txt').read()",
}


@pytest.mark.parametrize("way", READS)
def test_reading_outside(box, level_or_control, secret, way):
    result = box(level_or_control, "import os\nprint(" + READS[way].format(path=str(secret)) + ")")
    assert (SECRET in result.stdout) is escapes(level_or_control), result


def test_listing_outside(box, level_or_control, secret):
    result = box(level_or_control, f"import os; print(os.listdir({str(secret.parent)!r}))")
    assert (secret.name in result.stdout) is escapes(level_or_control), result


def test_reading_the_files_of_the_system(box, level_or_control):
    result = box(level_or_control, "print(open('/etc/passwd').read())")
    assert (":0:0:" in result.stdout) is escapes(level_or_control), result


WRITES = {
    "open": "open({path!r}, 'w').write('changed')",
    "relative": "open('../secret.txt', 'a').write('changed')",
    "through_a_link": "os.symlink({path!r}, 'link'); open('link', 'w').write('changed')",
    "new_file": "open(os.path.dirname({path!r}) + '/new', 'w')",
    "truncate": "os.truncate({path!r}, 0)",
    "truncate_on_reading": "os.open({path!r}, os.O_RDONLY | os.O_TRUNC)",
    "delete": "os.unlink({path!r})",
    "rename_out": "open('mine', 'w'); os.rename('mine', {path!r})",
    "rename_in": "os.rename({path!r}, 'mine')",
    "hard_link_out": "open('mine', 'w'); os.link('mine', os.path.dirname({path!r}) + '/new')",
    "mode": "os.chmod({path!r}, 0o600)",
    "times": "os.utime({path!r}, (1, 1))",
    "attributes": "os.setxattr({path!r}, 'user.note', b'changed')",
}


@pytest.mark.parametrize("way", WRITES)
def test_writing_outside(box, level_or_control, secret, way):
    def state():
        outside = [path for path in secret.parent.iterdir() if path != box.workspace]
        return [
            (path.name, path.read_bytes(), path.stat().st_mode, path.stat().st_mtime, os.listxattr(path))
            for path in sorted(outside)
        ]

    before = state()
    result = box(level_or_control, "import os\n" + WRITES[way].format(path=str(secret)))
    if way == "attributes" and escapes(level_or_control) and "Operation not supported" in result.stderr:
        pytest.skip("this file system has no extended attributes")
    assert (state() != before) is escapes(level_or_control), result


def test_no_folder_but_the_workspace_and_the_temporary_one_can_be_written(box, level):
    result = box(
        level,
        """
        import os, tempfile
        folders = ["/", "/dev", "/dev/shm", "/etc", "/usr", "/var/tmp", "/run", "..", os.path.dirname(os.__file__)]
        for folder in [*folders, os.path.expanduser("~"), tempfile.gettempdir()]:
            try:
                open(os.path.join(folder, "modtools-written"), "w")
                print(folder)
            except OSError:
                pass
        """,
    )
    assert len(result.stdout.splitlines()) == 2, result
    assert (box.workspace / "modtools-written").exists()


def test_the_interpreter_cannot_be_changed(box, level):
    result = box(level, "import os, sys\nfor path in (os.__file__, sys.executable):\n    open(path, 'r+b')")
    assert "Error" in result.stderr
    assert box(level, "import os; print(os.access(os.__file__, os.R_OK))").stdout == "True\n"


ADDRESSES = {
    "tcp": (socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1"),
    "udp": (socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
    "unix_stream": (socket.AF_UNIX, socket.SOCK_STREAM, "file"),
    "unix_datagram": (socket.AF_UNIX, socket.SOCK_DGRAM, "file"),
    "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, "abstract"),
}


@pytest.mark.parametrize("kind", ADDRESSES)
def test_reaching_a_socket_of_the_host(box, folder, level_or_control, kind):
    family, type_, host = ADDRESSES[kind]
    address = {"file": str(folder / "socket"), "abstract": f"\0{box.marker}"}.get(host, (host, 0))
    with socket.socket(family, type_) as listener:
        listener.bind(address)
        if host == "file":
            os.chmod(address, 0o777)
        if type_ == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        code = f"import socket\ns = socket.socket({int(family)}, {int(type_)})\n"
        result = box(level_or_control, code + f"s.connect({listener.getsockname()!r})\ns.send(b'out')")
        try:
            reached = bool(listener.accept() if type_ == socket.SOCK_STREAM else listener.recv(9))
        except BlockingIOError:
            reached = False
    assert reached is escapes(level_or_control), result


def test_making_a_socket_of_any_family(box, level_or_control):
    """Some families, such as the one between a virtual machine and its host, pass by network name spaces."""
    code = """
        import socket
        for family in range(64):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
                try:
                    print(socket.socket(family, kind))
                except OSError:
                    pass
    """
    result = box(level_or_control, code)
    assert bool(result.stdout) is escapes(level_or_control), result


def test_a_connected_pair_cannot_be_turned_to_a_socket_of_the_host(box, folder, level_or_control):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(folder / "socket"))
        os.chmod(folder / "socket", 0o777)
        listener.setblocking(False)
        code = "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        result = box(level_or_control, code + f"a.sendto(b'out', {str(folder / 'socket')!r})")
        try:
            reached = bool(listener.recv(9))
        except BlockingIOError:
            reached = False
    assert reached is escapes(level_or_control), result


def test_starting_another_program(box, folder, level_or_control):
    programs = [
        ["/bin/sh", "-c", ": > ran"],
        ["/usr/bin/env", "touch", "ran"],
        ["/lib64/ld-linux-x86-64.so.2", "/bin/sh", "-c", ": > ran"],
        ["curl", "--output", "ran", "file:///etc/passwd"],
    ]
    code = f"""
        import subprocess
        for program in {programs}:
            try:
                subprocess.run(program)
            except OSError:
                pass
    """
    result = box(level_or_control, code)
    assert (box.workspace / "ran").exists() is escapes(level_or_control), result


def test_reading_the_environment_of_other_processes(box, level_or_control, victim):
    code = """
        import glob
        for path in ["/proc/%d/environ", "/proc/1/environ", *glob.glob("/proc/[0-9]*/environ")]:
            try:
                print(open(path).read())
            except OSError:
                pass
    """
    result = box(level_or_control, code.replace("%d", str(victim.pid)), output_bytes=2**22)
    assert (SECRET in result.stdout) is escapes(level_or_control), result.stderr


def test_reading_the_memory_of_other_processes(box, level_or_control):
    yama = Path("/proc/sys/kernel/yama/ptrace_scope")
    if escapes(level_or_control) and yama.exists() and yama.read_text() != "0\n":
        pytest.skip("this kernel lets nobody read a parent's memory")
    private = bytearray(SECRET.encode())  # in the memory of this very process, the parent of the box
    import ctypes

    address = ctypes.addressof(ctypes.c_char.from_buffer(private))
    code = f"""
        import ctypes, os
        size, pid, address = {len(private)}, {os.getpid()}, {address}
        try:
            with open(f"/proc/{{pid}}/mem", "rb", 0) as memory:
                memory.seek(address)
                print(memory.read(size))
        except OSError as error:
            print(error)
        class Part(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
        seen = ctypes.create_string_buffer(size)
        there, here = Part(address, size), Part(ctypes.addressof(seen), size)
        ctypes.CDLL(None).process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        print(seen.raw)
    """
    result = box(level_or_control, code)
    assert (SECRET in result.stdout) is escapes(level_or_control), result


def test_signalling_a_process_of_the_host(box, level_or_control, victim):
    box(level_or_control, f"import os, signal; os.kill({victim.pid}, signal.SIGKILL)")
    if escapes(level_or_control):
        assert victim.wait(10) == -signal.SIGKILL
    assert (victim.poll() is not None) is escapes(level_or_control)


def test_limiting_a_process_of_the_host(box, level_or_control, victim):
    import resource

    before = resource.prlimit(victim.pid, resource.RLIMIT_NOFILE)
    box(level_or_control, f"import resource; resource.prlimit({victim.pid}, resource.RLIMIT_NOFILE, (9, 9))")
    assert (resource.prlimit(victim.pid, resource.RLIMIT_NOFILE) != before) is escapes(level_or_control)


def test_the_environment_of_the_parent_is_not_visible(box, level_or_control, monkeypatch):
    monkeypatch.setenv("MODTOOLS_TEST_SECRET", SECRET)
    result = box(level_or_control, "import os; print(dict(os.environ))")
    assert "HOME" in result.stdout and SECRET not in result.stdout


def test_the_descriptors_of_the_parent_are_not_visible(box, level_or_control, secret):
    descriptors = [os.open(secret, os.O_RDWR) for _ in range(9)]
    try:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)
        code = """
            import os
            for descriptor in range(256):
                try:
                    print(os.fstat(descriptor).st_ino, os.pread(descriptor, 99, 0))
                except OSError:
                    pass
        """
        result = box(level_or_control, code)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    assert result.exit_code == 0 and str(secret.stat().st_ino) not in result.stdout and SECRET not in result.stdout


def test_the_box_has_no_privileges_and_gets_none(box, level):
    result = box(
        level,
        """
        import ctypes, os
        libc = ctypes.CDLL(None)
        header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        libc.capget(header, sets)
        print(os.getuid() != 0, os.geteuid() != 0, os.getgid() != 0, 0 not in os.getgroups(), list(sets))
        print(libc.prctl(39, 0, 0, 0, 0))
        for call in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.chroot(".")):
            try:
                print(call())
            except OSError:
                print("refused")
        print(libc.unshare(0x10000000), libc.mount(b"none", b".", b"tmpfs", 0, None), libc.ptrace(0, 0, 0, 0))
        """,
    )
    assert result.stdout.splitlines() == [
        "True True True True [0, 0, 0, 0, 0, 0]",
        "1",
        *["refused"] * 4,
        "-1 -1 -1",
    ], result


def test_the_number_of_processes_is_bounded(box, level):
    code = """
        import os, time
        started = 0
        for _ in range(100):
            try:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                started += 1
            except OSError:
                pass
        print(started)
    """
    result = box(level, code, processes=8)
    assert 1 <= int(result.stdout) <= 8, result
    assert box.processes() == []


def test_a_fork_bomb_is_contained_and_ended(box, level):
    result = box(level, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", wall_s=1.0)
    assert result.ended_by == "wall_time"
    assert box.processes() == []


def test_a_background_child_ends_with_the_run(box, level):
    code = """
        import os, time
        read, write = os.pipe()
        if os.fork() == 0:
            for leave in (os.setsid, os.setpgrp):
                try: leave()
                except OSError: pass
            if os.fork() == 0:
                for descriptor in (0, 1, 2):
                    os.close(descriptor)
                open("early", "w")
                os.write(write, b"x")
                time.sleep(1)
                open("late", "w")
                time.sleep(600)
            os._exit(0)
        os.read(read, 1)
    """
    result = box(level, code)
    assert (result.exit_code, result.ended_by) == (0, "exit"), result
    assert box.processes() == []
    time.sleep(1.2)
    assert (box.workspace / "early").exists() and not (box.workspace / "late").exists()


def test_the_box_dies_with_its_parent(box, level_or_control):
    code = f"""
        import os, time
        if os.fork() == 0:
            open("started-child", "w")
        open("started", "w")
        time.sleep(600) # {box.marker}
    """
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from modtools.sandbox import Limits, run\n"
            "run(['-c', sys.argv[1]], Path(sys.argv[2]), level=sys.argv[3], limits=Limits(wall_s=600))",
            textwrap.dedent(code),
            box.workspace,
            level_or_control,
        ],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(box.workspace.parent)},  # what a killed parent leaves behind goes with the test
    )
    assert eventually(lambda: {"started", "started-child"} <= set(os.listdir(box.workspace)))
    assert len(box.processes()) > 1
    parent.kill()
    parent.wait()
    assert eventually(lambda: box.processes() == []), box.processes()


def eventually(condition) -> bool:
    """Whether it comes true within half a minute."""
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False
