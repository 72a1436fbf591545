"""The file of larger models: every entry complete, found by its short name, and fetched only when that is asked for."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from modtools.cli import app
from modtools.errors import MissingPieceError, RecordError
from modtools.models import larger, load_model
from modtools.models.larger import larger_models


def test_every_entry_says_what_it_is_and_that_it_was_not_tried(tmp_path):
    models = larger_models()
    assert len(models) >= 3
    for each in models.values():
        assert each.id.count("/") == 1 and each.revision and each.licence == "Apache-2.0" and each.note
        assert 1 < each.parameters_billion < 8 and each.weights_gb == 2 * each.parameters_billion
        assert each.tried is False
    done = CliRunner().invoke(app, ["model", "list", "--json", str(tmp_path / "j.json")])
    assert done.exit_code == 0 and done.output.count("Not tried here") == len(models)
    assert {each["name"] for each in json.loads((tmp_path / "j.json").read_text())["models"]} == set(models)


@pytest.mark.parametrize("name", larger_models())
def test_a_short_name_is_a_hub_id_and_downloads_nothing_by_itself(name, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MissingPieceError, match=larger_models()[name].id):
        load_model(name)


def test_a_file_that_is_not_as_it_must_be_is_named(tmp_path, monkeypatch):
    (tmp_path / "models.toml").write_text('[a]\nid = "b/c"\n')
    monkeypatch.setattr(larger, "FILE", tmp_path / "models.toml")
    with pytest.raises(RecordError, match=r"models\.toml cannot be used"):
        larger_models.__wrapped__()
