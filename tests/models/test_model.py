"""The protocol's own rules, without any backend that computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from modtools.errors import UsageError
from modtools.models import Message, Sampling, load_model
from modtools.models.model import cut_at_stop

ROOT = Path(__file__).parents[2]


def test_importing_the_package_and_a_scripted_model_loads_no_heavy_library():
    code = (
        "import sys; from modtools.models import load_model, Message, Request, Sampling\n"
        "model = load_model('scripted', script=['hello'])\n"
        "model.generate([Request((Message('user', 'hi'),), key=(0,))], Sampling())\n"
        "print([name for name in ('torch', 'transformers', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_message_with_an_unknown_role_is_refused():
    with pytest.raises(UsageError, match="'tool'"):
        Message("tool", "x")


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"temperature": -1.0}, {"stop": "END"}, {"stop": ("",)}])
def test_impossible_sampling_is_refused(wrong):
    with pytest.raises(UsageError):
        Sampling(**wrong)


def test_text_is_cut_before_the_earliest_stop_string():
    assert cut_at_stop("a STOP b END", ("END", "STOP")) == "a "
    assert cut_at_stop("a b", ("END",)) is None


def test_a_spec_that_is_neither_folder_nor_id_is_refused():
    with pytest.raises(UsageError, match="neither a folder nor an id"):
        load_model("no/such/folder/at all")
