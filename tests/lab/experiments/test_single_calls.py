"""Single calls: the answer is a valid call of a tool in the list, and unseen ones share no word with those in training."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest

from modtools.lab.experiments.single_calls import (
    NOUNS,
    OTHER_NOUNS,
    OTHER_PARAMETERS,
    OTHER_VERBS,
    PARAMETERS,
    VERBS,
    single_call,
)
from modtools.pipeline.validate import validate_arguments


@pytest.mark.parametrize("unseen", [False, True])
def test_the_answer_is_a_valid_call_of_one_tool_in_the_list(unseen):
    lengths = Counter()
    for seed in range(150):
        single = single_call(Random(seed), unseen)
        (tool,) = [tool for tool in single.tools if tool.name == single.call["name"]]
        assert validate_arguments(tool, single.call["arguments"])[1] == []
        assert json.loads(single.answer) == single.call
        assert all(tool.schema_text in single.messages[0].content for tool in single.tools)
        for value in single.call["arguments"].values():
            spoken = value if isinstance(value, list) else [value]
            told = [str(each).removesuffix(".0") for each in spoken if not isinstance(each, bool)]
            assert all(each in single.messages[1].content for each in told)  # nothing has to be guessed
        lengths[len(single.tools)] += 1
    assert set(lengths) == set(range(1, 9))


def test_unseen_calls_share_neither_tools_nor_parameters_with_training():
    assert not set(VERBS) & set(OTHER_VERBS) and not set(NOUNS) & set(OTHER_NOUNS)
    assert not {each.name for each in PARAMETERS} & {each.name for each in OTHER_PARAMETERS}
    seen = {tool.name for seed in range(100) for tool in single_call(Random(seed)).tools}
    other = {tool.name for seed in range(100) for tool in single_call(Random(seed), unseen=True).tools}
    assert not seen & other
    assert single_call(Random(5)) == single_call(Random(5))
