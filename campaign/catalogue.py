"""All checks by name."""

from __future__ import annotations

from campaign import fields, graphs, parsers
from campaign.base import Check

CHECKS = {
    "graphs": Check(graphs.check, graphs.GRAPHS, 20_000),
    "fields": Check(fields.check, fields.FIELDS, 20_000),
    "uai": Check(parsers.check_uai, parsers.FILES, 1_000_000),
    "evidence": Check(parsers.check_evidence, parsers.FILES, 1_000_000),
    "answers": Check(parsers.check_answers, parsers.FILES, 1_000_000),
    "columns": Check(parsers.check_columns, parsers.FILES, 1_000_000),
    "templates": Check(parsers.check_templates, parsers.FILES, 1_000_000),
    "rules": Check(parsers.check_rules, parsers.FILES // 4, 1_000_000),
    "data-files": Check(parsers.check_data_files, parsers.FILES // 4, 1_000_000),
    "json": Check(parsers.check_json, parsers.FILES // 4, 1_000_000),
    "tables": Check(parsers.check_tables, parsers.FILES // 10, 1_000_000),
    "rule-models": Check(parsers.check_rule_models, parsers.FILES // 4, 1_000_000),
}
