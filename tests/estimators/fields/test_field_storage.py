"""Fields and models of rules in the files of all estimators."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn import HingeField, RuleModel, load, save
from structlearn._src.common.errors import FormatError
from structlearn._src.estimators.storage import SCHEMA
from structlearn._src.files import store


def field():
    A = [[1.0, 0.0], [-1.0, 0.5], [1.0, 1.0]]
    return HingeField(
        A, [0.0, 1.0, -1.5], powers=[2, 1, 1], kinds=["hinge", "hinge", "<="], groups=[0, 1, 0],
        weights=[1.0, 3.0], tol=1e-7, max_iter=800,
    )  # fmt: skip


def test_a_field_comes_back_as_it_was(tmp_path):
    fitted = field().fit([0.9, np.nan], max_iter=3, tol=None)
    save(fitted, tmp_path / "field")
    again = load(tmp_path / "field")
    assert type(again) is HingeField
    np.testing.assert_array_equal(again.predict(), fitted.predict())
    np.testing.assert_array_equal(again.weights_, fitted.weights_)
    assert (again.tol, again.max_iter) == (1e-7, 800)
    assert (again.value_, again.n_iter_, again.ended_) == (fitted.value_, 3, fitted.ended_)
    assert (again.converged_, again.status_) == (fitted.converged_, fitted.status_)


def test_a_field_need_not_be_fitted(tmp_path):
    save(field(), tmp_path / "field")
    again = load(tmp_path / "field")
    assert again.energy_ == field().energy_
    assert not hasattr(again, "value_")


def test_a_model_of_rules_is_saved_without_atoms(tmp_path):
    model = RuleModel("2: P(A) -> R(A) ^2\nR(A) <= 0.9 .", tol=1e-5)
    model.observe(P=[(1,), (2,)]).target(R=[(1,), (2,)]).truth(R=[(1, 0.8), (2, 0.9)])
    model.fit(max_iter=2, tol=None)
    save(model, tmp_path / "rules")
    again = load(tmp_path / "rules")
    assert (again.rules_, again.tol, again.n_iter_) == (model.rules_, 1e-5, 2)
    again.observe(P=[(1,)]).target(R=[(1,)])
    assert again.predict(frame="dict")["value"] == pytest.approx([0.9], abs=1e-4)


@pytest.mark.parametrize("array", ["variables", "weights", "kinds"])
def test_damaged_files_are_refused(tmp_path, array):
    save(field(), tmp_path / "field")
    arrays, meta = store.read(tmp_path / "field", SCHEMA)
    name = next(name for name in arrays if name.endswith(array))
    arrays[name] = arrays[name] + 100
    arrays[name] = -np.abs(arrays[name])
    store.write(tmp_path / "field", arrays, meta, SCHEMA)
    with pytest.raises(FormatError, match="damaged"):
        load(tmp_path / "field")
