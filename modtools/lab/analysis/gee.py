"""The sensitivity check of H1: a logistic model of success with all episodes, clustered by task.

Generalised estimating equations, exchangeable correlation, bias-reduced errors (Mancl and DeRouen 2001). Where a
surface always succeeds or always fails the model has no finite solution; that is a named outcome, never a NaN.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modtools.errors import RecordError


@dataclass(frozen=True)
class GeeCheck:
    """The interaction of surface and complexity, in log-odds a call.

    Attributes:
        outcome: "fitted", or "separated": a surface has the same verdict in all episodes, or the fit diverged.
        value, low, high, p: of the interaction; None where it was not fitted.
        episodes, tasks: how many.
    """

    outcome: str
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    episodes: int
    tasks: int


def gee_check(records: Sequence[Mapping[str, Any]], one: str = "code", reference: str = "fine") -> GeeCheck:
    """Fit success ~ surface * c on the episodes of two surfaces.

    Raises:
        RecordError: where one of them has no episodes.
    """
    import pandas as pd
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    chosen = [record for record in records if record["surface"] in (one, reference)]
    data = pd.DataFrame(
        {
            "y": [int(record["success"]) for record in chosen],
            "one": [int(record["surface"] == one) for record in chosen],
            "c": [float(record["stratum"]) for record in chosen],
            "task": [record["task"] for record in chosen],
        }
    )
    if set(data["one"]) != {0, 1}:
        raise RecordError(f"it compares {one} with {reference}, and one of them was not run")
    size = (len(data), data["task"].nunique())
    if any(len(set(part)) < 2 for _, part in data.groupby("one")["y"]):
        return GeeCheck("separated", None, None, None, None, *size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separation, which is looked for below
        try:
            model = smf.gee("y ~ one * c", "task", data.sort_values("task"), family=sm.families.Binomial(),
                            cov_struct=sm.cov_struct.Exchangeable())  # fmt: skip
            fitted = model.fit(cov_type="bias_reduced")
        except (np.linalg.LinAlgError, ValueError, FloatingPointError):
            return GeeCheck("separated", None, None, None, None, *size)
    low, high = fitted.conf_int().loc["one:c"]
    numbers = [float(x) for x in (fitted.params["one:c"], low, high, fitted.pvalues["one:c"])]
    if not np.all(np.isfinite(numbers)) or np.abs(fitted.params).max() > 15:
        return GeeCheck("separated", None, None, None, None, *size)
    return GeeCheck("fitted", *numbers, *size)
