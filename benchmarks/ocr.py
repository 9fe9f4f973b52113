"""OCR letters: the structured hinge by block-coordinate Frank-Wolfe, beside PyStruct's figures.

PyStruct does not install on current Python, so its rows are those measured once on a machine of
this kind with a patched copy: C = 0.1, no constant feature, CPU seconds of training.
"""

from __future__ import annotations

import pathlib

from report import Report
from timing import best

#: split: (training CPU seconds of PyStruct, its letter accuracy)
PYSTRUCT = {"small": (8.9, 78.7), "large": (52.5, 86.0)}


def run(out: pathlib.Path) -> Report:
    from structlearn import SequenceLabeler
    from structlearn.data.sets import load_ocr

    report = Report("ocr", "OCR letters, structured SVM, C = 0.1")
    letters = load_ocr()
    for split, (seconds, accuracy) in PYSTRUCT.items():
        train = letters.folds == 1 if split == "small" else letters.folds != 0
        X, Y, X_test, Y_test = (
            [row for row, keep in zip(rows, chosen, strict=True) if keep]
            for chosen in (train, ~train)
            for rows in (letters.images, letters.labels)
        )
        labeler = SequenceLabeler(loss="hinge", C=0.1, tol=0.01, random_state=0)
        tight = SequenceLabeler(loss="hinge", C=0.1, tol=1e-4, max_iter=2000, random_state=0)
        labeler.fit(X[:20], Y[:20])  # compiles
        timing = best(lambda X=X, Y=Y, labeler=labeler: labeler.fit(X, Y), repeats=3)
        optimum = tight.fit(X, Y).value_
        above = 100 * (labeler.value_ / optimum - 1)
        right = 100 * labeler.score(X_test, Y_test)
        note = f"{timing.cpu:.2f} s against {seconds} s of PyStruct's 50 or 30 passes"
        report.add(f"{split}: faster than PyStruct", seconds / timing.cpu, "x", 20.0, True, note)
        note = f"primal {labeler.value_:.2f}, optimum {optimum:.2f}"
        report.add(f"{split}: primal above the optimum", above, "%", 1.0, note=note)
        report.add(f"{split}: letter accuracy", right, "%", accuracy, True)
    return report
