"""What a box does for honest code, and the state it leaves the workspace in."""

from __future__ import annotations

import os
import shutil
import threading
import tracemalloc

import pytest

from modtools.errors import UsageError
from modtools.sandbox import run


def test_output_exit_code_and_level_are_returned(box, level_or_control):
    result = box(level_or_control, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert (result.ended_by, result.truncated, result.level) == ("exit", False, level_or_control)


def test_standard_input_reaches_the_code(box, level_or_control):
    result = box(level_or_control, "import sys; print(len(sys.stdin.buffer.read()))", stdin=bytes(300_000))
    assert result.stdout == "300000\n"


def test_output_that_is_not_utf8_is_replaced_and_utf8_is_kept(box, level_or_control):
    result = box(level_or_control, r"import os; print('é', flush=True); os.write(1, b'\xff')")
    assert result.stdout == "é\n\ufffd"


def test_files_are_read_and_written_in_the_workspace(box, level_or_control):
    (box.workspace / "in.txt").write_text("given")
    result = box(level_or_control, "open('out.txt', 'w').write(open('in.txt').read() + ' and returned')")
    assert result.exit_code == 0, result.stderr
    assert (box.workspace / "out.txt").read_text() == "given and returned"
    assert (box.workspace / "out.txt").stat().st_uid == os.geteuid()


def test_unittest_finds_the_tests_of_the_workspace(workspace, level_or_control):
    for name, text in {
        "shop/__init__.py": "",
        "shop/price.py": "def total(a, b):\n    return a + b\n",
        "tests/__init__.py": "",
        "tests/test_price.py": (
            "import unittest\nfrom shop.price import total\n"
            "class T(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total(1, 2), 3)\n"
        ),
    }.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    arguments = ["-m", "unittest", "discover", "-s", "tests", "-t", "."]
    passing = run(arguments, workspace, level=level_or_control)
    assert passing.exit_code == 0 and "Ran 1 test" in passing.stderr, passing
    (workspace / "shop/price.py").write_text("def total(a, b):\n    return a - b\n")
    failing = run(arguments, workspace, level=level_or_control)
    assert failing.exit_code == 1 and "AssertionError: -1 != 3" in failing.stderr, failing


def test_the_standard_library_threads_asyncio_and_child_processes_work(box, level):
    result = box(
        level,
        """
        import asyncio, ctypes, decimal, hashlib, os, sqlite3, ssl, subprocess, sys, tempfile, threading, zlib
        thread = threading.Thread(target=print, args=["thread"]); thread.start(); thread.join()
        async def answer(): return 42
        print(asyncio.run(answer()))
        child = subprocess.run([sys.executable, "-c", "print(6)"], capture_output=True, stdin=subprocess.DEVNULL)
        print(child.stdout)
        with tempfile.NamedTemporaryFile() as file, open(os.devnull, "w") as null:
            print(file.write(b"abc"), null.write("abc"))
        """,
    )
    assert result.stdout.splitlines() == ["thread", "42", "b'6\\n'", "3 3"], result.stderr


def test_packages_of_the_host_are_not_importable(box, level):
    assert "Error" in box(level, "import pytest").stderr


def test_read_only_paths_can_be_read_and_not_written(box, folder, level):
    data = folder / "data"
    data.mkdir()
    (data / "rows.csv").write_text("1,2")
    code = f"print(open({str(data / 'rows.csv')!r}).read()); open({str(data / 'rows.csv')!r}, 'w')"
    result = box(level, code, read_only=[data])
    assert result.stdout == "1,2\n" and result.exit_code == 1
    assert (data / "rows.csv").read_text() == "1,2"


def test_temporary_files_are_gone_after_the_run(box, level):
    first = box(level, "import tempfile; print(tempfile.mkdtemp())")
    assert first.exit_code == 0
    assert box(level, f"import os; print(os.path.exists({first.stdout.strip()!r}))").stdout == "False\n"


def test_closed_modes_do_not_stop_the_next_run_nor_the_deletion(box, level):
    hostile = "import os; os.makedirs('a/b'); open('a/b/c', 'w').write('kept'); os.chmod('a/b/c', 0); os.chmod('a', 0)"
    first = box(level, hostile + "; os.chmod('.', 0)")
    if first.exit_code:  # a box that keeps its owner's uid refuses every chmod
        assert "PermissionError" in first.stderr
    assert (box.workspace / "a/b/c").read_text() == "kept"
    assert box(level, "print(open('a/b/c').read())").stdout == "kept\n"
    shutil.rmtree(box.workspace)


def test_folders_nested_too_deep_for_deletion_are_moved_up(box, level):
    result = box(level, "import os\nfor _ in range(1100):\n    os.mkdir('deep'); os.chdir('deep')\nopen('end', 'w')")
    assert result.exit_code == 0, result.stderr
    assert len(list(box.workspace.rglob("end"))) == 1
    shutil.rmtree(box.workspace)


def test_a_fifo_does_not_wait_for_the_reader_of_the_workspace(box, level):
    box(level, "import os; open('real', 'w'); os.mkfifo('fifo')")
    assert os.listdir(box.workspace) == ["real"]


def test_an_endless_loop_ends_by_its_processor_time(box, level_or_control):
    result = box(level_or_control, "while True: pass", cpu_s=1, wall_s=60)
    assert (result.ended_by, result.exit_code) == ("cpu_time", 128 + 24)


def test_a_sleeper_that_closed_its_output_ends_by_wall_time(box, level_or_control):
    result = box(level_or_control, "import os, time; os.close(1); os.close(2); time.sleep(600)", wall_s=1.0)
    assert (result.ended_by, result.exit_code) == ("wall_time", 128 + 9)
    assert box.processes() == []


def test_a_gigabyte_of_output_is_cut_and_never_held(box, level_or_control):
    tracemalloc.start()
    try:
        result = box(
            level_or_control,
            "import sys\nfor _ in range(1024): sys.stdout.write('x' * 2**20)\nopen('end', 'w')",
            output_bytes=50_000,
        )
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (result.ended_by, result.truncated, result.stdout) == ("output", True, "x" * 50_000)
    assert peak_bytes < 2**22
    assert not (box.workspace / "end").exists()


def test_a_memory_hog_is_refused_its_memory(box, level_or_control):
    result = box(level_or_control, "x = bytearray(2**30); print(len(x))")
    assert (result.ended_by, result.stdout) == ("memory", "")


def test_a_huge_file_is_refused(box, level_or_control):
    box(level_or_control, "with open('huge', 'wb', 0) as f:\n    while True: f.write(bytes(2**16))", file_bytes=2**20)
    assert (box.workspace / "huge").stat().st_size <= 2**20


def test_runs_overlap_in_threads(folder, level):
    outputs = {}

    def one(name):
        (folder / name).mkdir()
        outputs[name] = run(["-c", f"print({name!r})"], folder / name, level=level).stdout

    threads = [threading.Thread(target=one, args=[str(number)]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {str(number): f"{number}\n" for number in range(6)}


def test_no_descriptor_is_left_open(box, level):
    box(level, "pass")
    before = os.listdir("/proc/self/fd")
    box(level, "pass")
    assert os.listdir("/proc/self/fd") == before


def test_wrong_use_is_said(workspace):
    with pytest.raises(UsageError, match="expected one of bubblewrap, landlock, rlimits_only"):
        run(["-c", ""], workspace, level="none")
    with pytest.raises(UsageError, match="expected an existing folder"):
        run(["-c", ""], workspace / "missing", level="rlimits_only")


@pytest.mark.parametrize("code", ["#" * 2**18, "print(1)\0", "print('\ud800')"])
def test_code_that_cannot_be_an_argument_is_said(workspace, level_or_control, code):
    with pytest.raises(UsageError, match="write it to a file of the workspace"):
        run(["-c", code], workspace, level=level_or_control)
