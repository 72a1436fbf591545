"""The audit's chain: whatever is changed, taken out or put in is found, and where."""

from __future__ import annotations

import json

import pytest

from modtools.contract import ToolResult, digest
from modtools.errors import RecordError, UsageError
from modtools.pipeline import AuditLog, verify_audit
from pipeline.tools import call, make_pipeline, make_tool, run


@pytest.fixture
def folder(tmp_path):
    """An audit of three requests: nine lines, three replies and one large result as artefacts."""
    tool = make_tool(lambda operation, context: ToolResult("much", "x" * 20_000 * (operation.arguments.get("x") == 2)))
    pipeline = make_pipeline(tool, audit=AuditLog(tmp_path))
    for number in (1, 2, 3):
        run(pipeline, f"r{number}", call(x=number))
    return tmp_path


def lines(folder):
    return (folder / "audit.jsonl").read_bytes().splitlines(keepends=True)


def test_an_untouched_audit_is_whole(folder):
    found = verify_audit(folder)
    assert (found.records, found.broken_at, found.open) == (9, None, ())
    assert found.head == digest(lines(folder)[-1].rstrip(b"\n")) == AuditLog(folder).ledger.head


@pytest.mark.parametrize("number", range(1, 10))
def test_a_changed_line_is_found_at_the_line_that_follows_it(folder, number):
    changed = lines(folder)
    changed[number - 1] = changed[number - 1].replace(b'"time":1', b'"time":2')
    (folder / "audit.jsonl").write_bytes(b"".join(changed))
    found = verify_audit(folder)
    # Nothing follows the last line: that it was changed shows only beside a head that was kept elsewhere.
    assert found.broken_at == (number + 1 if number < 9 else None)


@pytest.mark.parametrize("number", range(1, 9))
def test_a_line_taken_out_put_in_twice_or_moved_is_found(folder, number):
    all_lines = lines(folder)
    line = all_lines[number - 1]
    without = all_lines[: number - 1] + all_lines[number:]
    for spoiled in (without, all_lines[:number] + [line] + all_lines[number:], without + [line]):
        (folder / "audit.jsonl").write_bytes(b"".join(spoiled))
        assert verify_audit(folder).broken_at is not None


def test_lines_cut_off_at_the_end_are_found_by_a_head_that_was_kept(folder):
    head = verify_audit(folder).head
    (folder / "audit.jsonl").write_bytes(b"".join(lines(folder)[:-3]))
    assert verify_audit(folder).broken_at is None
    found = verify_audit(folder, head)
    assert found.broken_at == 7 and "cut off" in found.why


def test_a_chain_made_anew_still_shows_two_ends_of_one_request(folder):
    records = [json.loads(line) for line in lines(folder)]
    records.append({**records[-1], "outcome": "cancelled"})
    head, made = "0" * 64, []
    for record in records:
        made.append(json.dumps({**record, "prev": head}).encode())
        head = digest(made[-1])
    (folder / "audit.jsonl").write_bytes(b"\n".join(made) + b"\n")
    found = verify_audit(folder)
    assert found.broken_at == 10 and "cannot follow" in found.why


@pytest.mark.parametrize("rubbish", [b"rubbish\n", b"[]\n", b"{}\n", b'{"prev": 1}\n', b"\xff\xfe\n", b"\n"])
def test_a_line_that_is_no_event_is_found(folder, rubbish):
    with open(folder / "audit.jsonl", "ab") as file:
        file.write(rubbish)
    assert verify_audit(folder).broken_at == 10
    with pytest.raises(RecordError, match="line 10"):
        AuditLog(folder)


def test_a_changed_or_missing_artefact_is_found(folder):
    (large,) = (folder / "artefacts").iterdir()
    short = folder / "artefacts.jsonl"
    spoiled = [
        lambda: large.write_bytes(b"x"),
        large.unlink,
        short.unlink,
        lambda: short.write_bytes(short.read_bytes().replace(b'\\"t\\"', b'\\"u\\"', 1)),
        lambda: short.write_bytes(short.read_bytes().split(b"\n", 1)[1]),
        lambda: short.write_bytes(b"rubbish\n" * 3),
    ]
    kept = {path: path.read_bytes() for path in (large, short)}
    for spoil in spoiled:
        spoil()
        found = verify_audit(folder)
        assert found.broken_at in (3, 6) and "artefact" in found.why
        for path, data in kept.items():
            path.write_bytes(data)
    assert verify_audit(folder).broken_at is None


def test_what_was_kept_can_be_read_again_by_its_digest(folder):
    for audit in (AuditLog(folder), make_pipeline(make_tool()).audit):
        names = [audit.keep(content) for content in ("short", "x" * 50_000, b"\xff\x00", "half \ud800 of a pair")]
        assert [len(audit.artefact(name)) for name in names] == [5, 50_000, 2, 18]
        assert audit.keep("short") == names[0]
        for name in ("0" * 64, "../audit.jsonl"):
            with pytest.raises(UsageError, match="no artefact"):
                audit.artefact(name)


def test_a_broken_audit_is_not_carried_on(folder):
    changed = lines(folder)
    changed[2] = changed[2].replace(b"success", b"timeout")
    (folder / "audit.jsonl").write_bytes(b"".join(changed))
    with pytest.raises(RecordError, match="line 4"):
        AuditLog(folder)


def test_a_folder_without_an_audit_is_an_error_that_says_so(tmp_path):
    with pytest.raises(RecordError, match="audit.jsonl"):
        verify_audit(tmp_path)


def test_a_torn_last_line_is_no_record_and_the_next_process_goes_on(folder):
    with open(folder / "audit.jsonl", "ab") as file:
        file.write(b'{"prev": "torn')
    assert verify_audit(folder).broken_at is None
    run(make_pipeline(make_tool(), audit=AuditLog(folder)), "r4")
    found = verify_audit(folder)
    assert (found.records, found.broken_at) == (12, None)


@pytest.mark.parametrize("field", ["raw_artefact", "artefact", "printed"])
@pytest.mark.parametrize("size", [20, 50_000])
def test_every_artefact_that_a_line_names_is_verified(field, size, tmp_path):
    audit = AuditLog(tmp_path)
    name = audit.keep("a" * size)
    audit.append("r1", "received", {})
    audit.append("r1", "terminal", {"outcome": "success", field: name})
    assert verify_audit(tmp_path).broken_at is None
    for path in [tmp_path / "artefacts.jsonl", *(tmp_path / "artefacts").iterdir()]:
        if path.exists():
            path.write_bytes(path.read_bytes().replace(b"aaaa", b"aaab", 1))
    assert verify_audit(tmp_path).broken_at == 2
