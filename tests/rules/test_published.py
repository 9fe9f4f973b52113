"""Programs of PSL's own examples, unchanged, from files to values."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from structlearn import RuleModel
from structlearn._src.common.errors import RepeatedRuleWarning
from structlearn._src.field.hinges import HINGE
from structlearn._src.rules.program import read_program

pytestmark = [
    pytest.mark.data,
    pytest.mark.filterwarnings("ignore::structlearn.errors.SilentRuleWarning"),
]


def laid_out(data_folder, folder, version, name, small):
    """Copy a program, and put small data where it looks for its own."""
    published = data_folder / "psl" / "published"
    shutil.copytree(published / version / name, folder / "cli")
    program = read_program(folder / "cli" / f"{name}.psl")
    for declared in program.declarations:
        for (_, split), sources in declared.data.items():
            part = "learn" if split == "learn" else "eval"
            for source in sources:
                files = (published / "small-data" / small).rglob(source.name)
                (found,) = [path for path in files if part in path.parts]
                source.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, source)
    return folder / "cli" / f"{name}.psl"


def minimum(hinges, weights):
    """The least energy, by a quasi-Newton method: hinges are squared, hard forms fix a target."""
    shape = hinges.n_forms, hinges.n_variables
    forms = sp.csr_matrix((hinges.coefficients, hinges.variables, hinges.offsets), shape)
    soft = hinges.kinds == HINGE
    assert (hinges.powers[soft] == 2).all()
    assert (np.diff(hinges.offsets)[~soft] == 1).all()
    bounds = np.tile([0.0, 1.0], (hinges.n_variables, 1))
    for i in np.flatnonzero(~soft):
        entry = hinges.offsets[i]
        bounds[hinges.variables[entry]] = -hinges.constants[i] / hinges.coefficients[entry]
    matrix, shift, w = forms[soft], hinges.constants[soft], weights[hinges.groups[soft]]

    def energy(y):
        distance = np.maximum(matrix @ y + shift, 0)
        return (w * distance**2).sum(), 2 * (matrix.T @ (w * distance))

    options = {"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10}
    start = bounds.mean(axis=1)
    return minimize(energy, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).fun


#: Energies of what PSL 2.4.1 answers, run to tolerances of 1e-9, on the small data.
ENTITIES_OF_PSL = 37.3684937
STANCES_OF_PSL = 2.5253061


@pytest.mark.parametrize("version", ["2.1.0", "2.2.0", "2.3.2"])
def test_entity_resolution(data_folder, tmp_path, version):
    path = laid_out(data_folder, tmp_path, version, "entity-resolution", "er")
    for split, groundings in (("infer", 209), ("learn", 234)):
        model = RuleModel.from_file(path, split=split, n_jobs=1)
        hinges = model.grounding_.hinges
        assert (hinges.n_forms, hinges.n_variables) == (groundings, 98)
        exact = minimum(hinges, model.grounding_.weights)
        assert model.energy_ == pytest.approx(exact, rel=1e-6)
        if split == "infer":
            assert model.energy_ == pytest.approx(ENTITIES_OF_PSL, rel=1e-6)


@pytest.mark.parametrize("version", ["2.2.0", "2.3.2"])
def test_stance_with_and_without_repeated_rules(data_folder, tmp_path, version):
    """Without repeats, as PSL has it, the least energy is that of an interior point solver."""
    path = laid_out(data_folder, tmp_path, version, "stance-4forums", "stance")
    with pytest.warns(RepeatedRuleWarning, match="10 as 6, 13 as 7, 14 as 11, 15 as 5, 16 as 6"):
        model = RuleModel.from_file(path, n_jobs=1)
    assert model.grounding_.hinges.n_forms == 13357
    exact = minimum(model.grounding_.hinges, model.grounding_.weights)
    assert model.energy_ == pytest.approx(exact, rel=1e-5)
    program = read_program(path)
    unique = [rule for i, rule in enumerate(program.rules) if i + 1 not in (10, 13, 14, 15, 16)]
    alone = RuleModel(unique, n_jobs=1).read(program)
    assert alone.grounding_.hinges.n_forms == 8497
    assert alone.energy_ == pytest.approx(2.5247262, rel=1e-5)
    assert alone.score(metric="mse", predicate="isProAuth") == pytest.approx(0.244, abs=1e-3)
    # With equal weights PSL itself ends at 175.8; it mistakes rules of other signs for each other.
    alone.weights_ = 1.0 + 1e-4 * np.arange(1, len(unique) + 1)
    assert alone.energy_ == pytest.approx(STANCES_OF_PSL, rel=1e-5)
