"""Which levels are found, for whom, and what is said where there are none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from modtools.errors import MissingPieceError, UsageError
from modtools.sandbox import LEVELS, available_levels, run, strongest_level
from modtools.sandbox.interpreter import base_executable, find_interpreter
from modtools.sandbox.seccomp import ALWAYS, program

ROOT = Path(__file__).parents[2]
NOBODY = 65534


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_strongest_level_is_the_first_that_can_be_started():
    reasons = available_levels()
    assert list(reasons) == list(LEVELS)
    usable = [level for level in LEVELS if not reasons[level]]
    assert strongest_level(allow_rlimits_only=True) == usable[0]
    if usable[0] != "rlimits_only":
        assert strongest_level() == usable[0]


@pytest.mark.skipif(sys.platform != "linux", reason="a search path without bwrap is of use on Linux only")
def test_without_a_program_or_kernel_support_the_reasons_and_the_remedy_are_said():
    code = """
        import os
        os.environ["PATH"] = "/nowhere"
        from modtools.errors import MissingPieceError
        from modtools.sandbox import available_levels, landlock, strongest_level
        print(available_levels()["bubblewrap"])
        if available_levels()["landlock"]:
            try:
                strongest_level()
            except MissingPieceError as error:
                print(error)
            print(strongest_level(allow_rlimits_only=True))
        else:
            print(strongest_level())
    """
    lines = python(code).splitlines()
    assert "apt install bubblewrap" in lines[0]
    assert lines[1:] == ["landlock"] or ("not a sandbox" in lines[1] and lines[2] == "rlimits_only")


def test_the_package_is_importable_without_the_modules_of_posix():
    code = """
        import sys
        for name in ("resource", "pwd", "grp", "fcntl", "termios"):
            sys.modules[name] = None
        import modtools.sandbox
        print(modtools.sandbox.LEVELS[0])
    """
    assert python(code) == "bubblewrap\n"


def test_a_processor_without_a_filter_is_refused():
    with pytest.raises(MissingPieceError, match="x86_64 and aarch64, not riscv64"):
        program("riscv64", ALWAYS)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's loader")
def test_the_allow_list_names_files_and_no_system_folder():
    interpreter = find_interpreter()
    assert interpreter.executable == base_executable() and (interpreter.stdlib / "os.py").is_file()
    assert any(path.name.startswith(("ld-", "ld6")) for path in interpreter.libraries)
    assert all(path.is_file() for path in interpreter.libraries)


@pytest.mark.skipif(sys.platform != "linux", reason="the boxes are Linux's")
def test_landlock_says_which_folder_keeps_its_user_out(folder, level):
    closed = folder / "closed"
    (closed / "workspace").mkdir(parents=True)
    closed.chmod(0o700)
    if level == "landlock" and os.geteuid() == 0:
        with pytest.raises(UsageError, match=f"cannot pass through {closed}"):
            run(["-c", "print(1)"], closed / "workspace", level=level)
    else:
        assert run(["-c", "print(1)"], closed / "workspace", level=level).stdout == "1\n"


AS_NOBODY = """
import json, os, socket, sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
from modtools.sandbox import available_levels, run

code = '''
import os, socket, time
open("mine", "w").write("written")
def ways():
    yield "read", lambda: open("../secret.txt").read()
    yield "write", lambda: open("../secret.txt", "a")
    yield "mode", lambda: os.chmod("../secret.txt", 0o777)
    yield "signal", lambda: os.kill(%d, 0)
    yield "network", lambda: socket.create_connection(("127.0.0.1", %d), 1)
for name, way in ways():
    try:
        way()
        print("escaped by", name)
    except OSError:
        pass
started = 0
try:
    for _ in range(100):
        if os.fork() == 0:
            time.sleep(60)
        started += 1
except OSError:
    print("processes bounded")
'''
with socket.create_server(("127.0.0.1", 0)) as server:
    code %= os.getpid(), server.getsockname()[1]
    results = {}
    for level, reason in available_levels().items():
        (folder / level).mkdir()
        results[level] = reason or run(["-c", code], folder / level, level=level).stdout.splitlines()
print(json.dumps(results))
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="changes from root to another user")
def test_a_user_without_privileges_gets_the_same_walls(folder):
    def as_nobody(*command):
        return subprocess.run(
            command, user=NOBODY, group=NOBODY, extra_groups=[], env={}, cwd="/", capture_output=True, text=True
        )

    for interpreter in (str(base_executable()), "/usr/bin/python3"):
        try:
            if as_nobody(interpreter, "-c", "import sys; assert sys.version_info >= (3, 11)").returncode == 0:
                break
        except OSError:
            pass  # missing, or in a folder that is closed to others
    else:
        pytest.skip("no Python 3.11 that every user of this machine may start")
    shutil.copytree(ROOT / "modtools/sandbox", folder / "modtools/sandbox")
    shutil.copy(ROOT / "modtools/errors.py", folder / "modtools")
    (folder / "secret.txt").write_text("secret")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    done = as_nobody(interpreter, "-c", AS_NOBODY, str(folder))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results.pop("rlimits_only") == [f"escaped by {way}" for way in "read write mode signal network".split()] + [
        "processes bounded"
    ]
    for level, result in results.items():
        if isinstance(result, str):
            print(f"{level} cannot be started by an unprivileged user here: {result}")
        else:
            assert result == ["processes bounded"], level
