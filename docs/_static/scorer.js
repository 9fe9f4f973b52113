"use strict";
// How search ranks pages. Sphinx adds up matches in titles, index entries and text; here pages that
// explain something come before the glossary, scripts, lists of names and source text.
var Scorer = {
  score: result => {
    const [page, , , , score] = result;
    if (page.startsWith("guide/") || page.startsWith("coming-from/")) return score + 20;
    if (page.startsWith("tutorials/") || page === "faq") return score + 10;
    if (page === "glossary") return Math.min(score, 12);
    if (page === "changes" || page.startsWith("_modules/")) return score - 10;
    if (page.startsWith("gallery/")) return score - 5;
    return score;
  },
  objNameMatch: 11, // a name that is exactly what was looked for
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
