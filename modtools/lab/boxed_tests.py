"""The program that runs unit tests inside a box and reports, test by test, to modtools.lab.verify.

This file runs by itself (`python -I -B -c`), so it imports the standard library only. On standard input it
reads JSON: nonce, package, tests {path: source}. On standard output it prints one line of JSON: nonce,
results {"path::Class.method": "" where passed, else the reason}, broken {path: why no test of it could run}.

The package is imported here, so the tests are kept out of its reach as far as that goes: their sources never
lie in a file, its output goes nowhere, and after each test everything in unittest and builtins must be what it
was. Each test file imports the package anew, so what one module does to another on import does not last.
"""

import builtins
import json
import os
import sys
import unittest
from types import FunctionType


def main():
    """Read the job, run every test, report, and end without giving the package another turn."""
    job = json.load(sys.stdin.buffer)
    write, leave = os.write, os._exit  # before the package can put others in their place
    report, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.path.insert(0, os.getcwd())
    unittest.TestCase.assertEqual = refusing_impostors(unittest.TestCase.assertEqual)
    before = state()
    results, broken = {}, {}
    for path, source in job["tests"].items():
        for name in [name for name in sys.modules if name.split(".")[0] == job["package"]]:
            del sys.modules[name]
        namespace = {"__name__": path.removesuffix(".py").replace("/", ".")}
        try:
            exec(compile(source, path, "exec"), namespace)
        except BaseException as error:  # SystemExit too: the package must not end the run
            broken[path] = f"{type(error).__name__}: {error}"[:300]
            continue
        classes = [value for value in namespace.values() if isinstance(value, type)]
        for case in [each for each in classes if issubclass(each, unittest.TestCase)]:
            for method in unittest.TestLoader().getTestCaseNames(case):
                reason = run(case(method))
                untouched = state() == before
                results[f"{path}::{case.__name__}.{method}"] = reason if untouched else "unittest was tampered with"
    parts = [("nonce", quoted(job["nonce"])), ("results", listed(results)), ("broken", listed(broken))]
    write(report, ("{" + ", ".join(f"{quoted(name)}: {text}" for name, text in parts) + "}\n").encode())
    leave(0)


def listed(texts):
    """A dictionary of texts as JSON, by means that the package cannot patch as it could the json module."""
    return "{" + ", ".join(f"{quoted(key)}: {quoted(value)}" for key, value in texts.items()) + "}"


def quoted(text):
    """A text as JSON."""
    plain = [char if " " <= char <= "~" and char not in '"\\' else "".join(escaped(char)) for char in text]
    return '"' + "".join(plain) + '"'


def escaped(char):
    """JSON escapes of a character: one, or a surrogate pair."""
    units = char.encode("utf-16-be", "surrogatepass")
    return [f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)]


def run(test):
    """Why a test did not pass, "" where it did. A skipped test did not."""
    result = unittest.TestResult()
    try:
        test.run(result)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300]
    for _, trace in result.failures + result.errors:
        lines = [line for line in trace.splitlines() if line and line[0] != " "]
        return "".join(lines[1:2])[:300] or "failed"  # the line behind "Traceback ..."
    undecided = result.skipped or result.expectedFailures or result.unexpectedSuccesses or result.testsRun != 1
    return "skipped" if undecided else ""


def refusing_impostors(assert_equal):
    """assertEqual that also fails for a value which equals anything."""

    def equals_anything(value):
        if type(value) in (list, tuple):
            return any(map(equals_anything, value))
        return any(map(equals_anything, value.values())) if type(value) is dict else value == object()

    def wrapped(self, first, second, msg=None):
        if equals_anything(first):
            self.fail(f"a {type(first).__name__} that equals anything")
        assert_equal(self, first, second, msg)

    return wrapped


def state():
    """What the tests rest on, by identity: every name in builtins and unittest, and the code behind functions."""
    modules = [builtins, unittest, unittest.case, unittest.loader, unittest.result, json, json.encoder, os]
    classes = [unittest.TestCase, unittest.TestResult, unittest.TestLoader, unittest.case._Outcome]
    return {
        (owner.__name__, name): (id(value), id(value.__code__) if isinstance(value, FunctionType) else None)
        for owner in modules + classes
        for name, value in vars(owner).items()
        if name != "__warningregistry__"
    }


if __name__ == "__main__":
    main()
