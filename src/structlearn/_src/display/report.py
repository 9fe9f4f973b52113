"""The report on a model or an answer: one page, made of what the thing itself knows."""

from __future__ import annotations

from typing import Any

from structlearn._src.common.errors import ArgumentError
from structlearn._src.display.page import Page


def report(thing: Any, X: Any = None, y: Any = None, *, title: str | None = None) -> Page:
    """Make a page about a fitted estimator, a rule model or an answer.

    Parameters
    ----------
    thing : object
        A fitted estimator, a `RuleModel` with its data, or the `Answer` of `infer`.
    X, y : list, optional
        Labelled examples for an estimator that predicts labels: with them the page shows scores,
        a confusion matrix, errors in context, and probabilities along some examples.
    title
        Title of the page; by default the name of the class.

    Returns
    -------
    Page
        Its `save` writes one HTML file that needs no network; notebooks show it as it is.

    Examples
    --------
    >>> from structlearn import SequenceLabeler, report
    >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
    >>> page = report(SequenceLabeler().fit(X, Y), X, Y)
    >>> [heading for heading, _ in page.sections][:3]
    ['Model', 'Learning curve', 'Scores']
    """
    from structlearn._src.estimators.bayesian.sampled import Sampled
    from structlearn._src.estimators.fields.rule_model import RuleModel
    from structlearn._src.estimators.structured.base import StructuredEstimator
    from structlearn._src.inference.base import Answer

    page = Page(str(title or type(thing).__name__))
    if isinstance(thing, StructuredEstimator):
        from structlearn._src.display.labeler_report import write_labeler

        write_labeler(page, thing, X, y)
        return page
    if X is not None or y is not None:
        raise ArgumentError(
            f"labelled examples were given, but the report on a {type(thing).__name__} does not "
            f"use any; leave out X and y"
        )
    if isinstance(thing, RuleModel):
        from structlearn._src.display.rule_report import write_rules

        write_rules(page, thing)
    elif isinstance(thing, Sampled):
        from structlearn._src.display.sampled_report import write_sampled

        write_sampled(page, thing)
    elif isinstance(thing, Answer):
        from structlearn._src.display.answer_report import write_answer

        write_answer(page, thing)
    else:
        raise ArgumentError(
            f"a {type(thing).__name__} was given, but reports are made of fitted estimators, rule "
            f"models and answers of infer; give one of these"
        )
    return page
