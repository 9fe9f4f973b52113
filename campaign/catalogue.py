"""All checks by name."""

from __future__ import annotations

from campaign import (
    arguments,
    chains,
    commands,
    fields,
    graphs,
    kills,
    laws,
    limits,
    models,
    parsers,
    programs,
    samplers,
)
from campaign.base import Check

CHECKS = {
    "graphs": Check(graphs.check, graphs.GRAPHS, 20_000, seconds=600.0),
    "fields": Check(fields.check, fields.FIELDS, 20_000),
    "programs": Check(programs.check, programs.PROGRAMS, 5_000),
    "chains": Check(chains.check, chains.CHAINS, 5_000),
    "uai": Check(parsers.check_uai, parsers.FILES, 1_000_000),
    "evidence": Check(parsers.check_evidence, parsers.FILES, 1_000_000),
    "answers": Check(parsers.check_answers, parsers.FILES, 1_000_000),
    "columns": Check(parsers.check_columns, parsers.FILES, 1_000_000),
    "templates": Check(parsers.check_templates, parsers.FILES, 1_000_000),
    "rules": Check(parsers.check_rules, parsers.FILES // 4, 1_000_000),
    "data-files": Check(parsers.check_data_files, parsers.FILES // 4, 1_000_000),
    "json": Check(parsers.check_json, parsers.FILES // 4, 1_000_000),
    "tables": Check(parsers.check_tables, parsers.FILES // 10, 1_000_000),
    "arguments": Check(arguments.check, arguments.ARGUMENTS, 50_000, seconds=300.0),
    "commands": Check(commands.check, commands.COMMANDS, 10_000, seconds=300.0),
    "long-files": Check(parsers.check_long, 1, 5_000),
    "models": Check(models.check_models, parsers.FILES // 4, 1_000_000),
    "kills": Check(kills.check, kills.KILLS, 200),
    "full-disk": Check(limits.check_full_disk, 1, 500),
    "closed-folder": Check(limits.check_closed_folder, 1, 200),
    "interrupts": Check(limits.check_interrupts, 1, 500),
    "two-writers": Check(limits.check_two_writers, 1, 200),
    "threads": Check(limits.check_threads, 1, 200),
    "memory": Check(limits.check_memory, 1, 200),
    "laws": Check(laws.check, laws.LAWS, 1_000),
    "samplers": Check(samplers.check, samplers.SAMPLERS, 1_000),
    "checkpoints": Check(models.check_checkpoints, parsers.FILES // 4, 1_000_000),
    "model-facts": Check(models.check_model_facts, parsers.FILES // 10, 100_000),
    "checkpoint-facts": Check(models.check_checkpoint_facts, parsers.FILES // 10, 100_000),
    "tampered": Check(models.check_tampered, models.TAMPERED, 5_000),
    "tampered-runs": Check(models.check_tampered_checkpoints, models.TAMPERED // 4, 5_000),
    "rule-models": Check(parsers.check_rule_models, parsers.FILES // 4, 1_000_000),
}
