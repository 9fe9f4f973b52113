"""Fuzzed files: every parser answers, or refuses by a named error, quickly and in little memory."""

from __future__ import annotations

import functools
import gzip
import json
import pathlib
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

import naive
from campaign.base import WrongError, at_most, expect
from campaign.mutate import Mutator
from structlearn import RuleModel, read_uai, write_uai
from structlearn._src.rules.tables import Tables
from structlearn._src.text.columns import parse_columns
from structlearn._src.text.template import parse_template
from structlearn.errors import StructlearnError
from structlearn.rules import parse, read_program
from structlearn.uai import read_answer, read_evidence, read_variables

FILES = 1000
SECONDS = 5.0  # of one parse: thousands of times what it takes
_FAST = pathlib.Path("/dev/shm")


@contextmanager
def folder() -> Iterator[pathlib.Path]:
    """A folder of its own, in memory where there is such a place."""
    made = tempfile.mkdtemp(prefix="campaign-", dir=_FAST if _FAST.is_dir() else None)
    try:
        yield pathlib.Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def fuzz(
    rng: np.random.Generator,
    read: Callable[[bytes], None],
    samples: Sequence[bytes],
    words: Sequence[bytes],
    files: int = FILES,
) -> None:
    """Give `read` many mutated files; it may raise the library's own errors."""
    mutator = Mutator(int(rng.integers(2**62)), samples, words)
    for _ in range(files):
        data = mutator()
        try:
            with at_most(SECONDS):
                read(data)
        except StructlearnError as error:
            _readable(error, data)
        except BaseException as error:
            raise WrongError(f"{type(error).__name__}: {error} for {data[:3000]!r}") from error


def _readable(error: StructlearnError, data: bytes) -> None:
    """A message says something, and not all of the file."""
    told = str(error)
    expect(told.strip(), f"an error without words for {data[:3000]!r}")
    most = 10_000 + 8 * len(data)
    expect(len(told) < most, f"{len(told)} letters of message for {data[:3000]!r}")


# ---- UAI ---------------------------------------------------------------------------------

MODELS = (
    b"MARKOV\n3\n2 2 3\n2\n2 0 1\n3 0 1 2\n\n4\n 4.0 2.4\n 1.0 0.0\n\n12\n 2.25 3.25 3.75\n 0.0 0 10\n"
    b" 1.875 4 3.333\n 2 2 3.4\n",
    b"BAYES\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n0.25 0.75\n\n6\n0.1 0.2 0.7\n0.3 0.3 0.4\n",
    b"c a comment\n# and another\nMARKOV 1 1 1 1 0 1 1e-3",
    b"MARKOV 2 2 2 2 0 1 1 1 0.5 2 1 0",
    b"MARKOV 0 0",
)  # fmt: skip
MODEL_WORDS = (b"MARKOV", b"BAYES", b"c ", b"#", b"markov", b"\nc \n", b"\n#\n", b"1 0", b"2 2")


def check_uai(rng: np.random.Generator) -> None:
    """UAI models; what was read is written and read again."""
    with folder() as place:
        path = place / "a.uai"
        again = place / "b.uai"

        def read(data: bytes) -> None:
            path.write_bytes(data)
            graph = read_uai(path)
            if graph.n_factors and len(graph.potentials) < 1000:
                write_uai(graph, again)
                same = read_uai(again)
                expect(np.array_equal(graph.cards, same.cards), f"states of {data!r}")
                close = np.allclose(graph.potentials, same.potentials, rtol=0, atol=1e-12)
                expect(close, f"potentials of {data!r}")

        fuzz(rng, read, MODELS, MODEL_WORDS)


EVIDENCE = (b"2 0 1 3 0\n", b"1\n2 0 1 3 0\n", b"0\n", b"", b"c x\n1 4 1\n", b"3 4 1 7\n", b"1 3\n")


def check_evidence(rng: np.random.Generator) -> None:
    """Evidence and query variables."""
    with folder() as place:
        path = place / "a.evid"

        def read(data: bytes) -> None:
            path.write_bytes(data)
            try:
                found = read_evidence(path)
                expect(all(v >= 0 and s >= 0 for v, s in found.items()), data)
            finally:
                try:
                    variables = read_variables(path)
                    expect(len(set(variables)) == len(variables), data)
                except StructlearnError:
                    pass

        fuzz(rng, read, EVIDENCE, MODEL_WORDS)


ANSWERS = (
    b"PR\n-3.25\n", b"MAR\n2 2 0.25 0.75 1 1.0\n", b"MAP\n3 1 0 2\n", b"MMAP\n2 4 1 2 0\n",
    b"MPE\n1 0\n", b"PR\n-BEGIN-\n-1.5\n-BEGIN-\n-1.25\n", b"MAR\n1\n2 0.5 0.5\n",
)  # fmt: skip


def check_answers(rng: np.random.Generator) -> None:
    """Answers of the UAI competitions."""
    with folder() as place:
        path = place / "a.answer"

        def read(data: bytes) -> None:
            path.write_bytes(data)
            read_answer(path)

        fuzz(rng, read, ANSWERS, (b"PR", b"MAR", b"MAP", b"MMAP", b"MPE", b"-BEGIN-"))


# ---- text --------------------------------------------------------------------------------

COLUMNS = (
    b"He PRP B-NP\nreckons VBZ B-VP\n. . O\n\nThe DT B-NP\nend NN I-NP\n",
    b"-DOCSTART- -X- O\n\nEU\tNNP\tB-ORG\nrejects\tVBZ\tO\n\n\n\nPeter\tNNP\tB-PER\n",
    "\ufeffcaf\u00e9 N\r\n\u6771\u4eac N\r\n\r\na D\r\n".encode(),
    b"one\ntwo\n",
)
COLUMN_WORDS = (
    b"-DOCSTART-",
    b"O",
    b"B-NP",
    b" ",
    b"\t",
    b"\n\n",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
)


def check_columns(rng: np.random.Generator) -> None:
    """Column files, cell by cell as a plain parser has them."""

    def read(data: bytes) -> None:
        columns = parse_columns(data)
        # Lines that are skipped may be anything.
        right = naive.column_lines(data.decode("utf-8", "replace").encode())
        expect(np.array_equal(np.diff(columns.offsets), [len(s) for s in right]), data)
        for c in range(columns.width):
            expect(columns.text(c) == [row[c] for s in right for row in s], c, data)

    fuzz(rng, read, COLUMNS, COLUMN_WORDS)


TEMPLATES = (
    b"U00:%x[-2,0]\nU01:%x[-1,0]/%x[0,1]\n# why\nU10:%x[0,1]\nB\n", b"U1:%x[0,0]\nB1:%x[0,0]\n", b"B",
)  # fmt: skip


def check_templates(rng: np.random.Generator) -> None:
    """Templates; what was read fills in as a plain expansion does."""
    sentence = [["the", "D"], ["cat", "N"], ["sat", "V"]]

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        template = parse_template(text)
        expect(template == parse_template(template.text), data)
        if template.width <= 2:
            for row in template.rows:
                row.fill(tuple(sentence[1][column] for _, column in row.macros))

    fuzz(
        rng,
        read,
        TEMPLATES,
        (b"U", b"B", b"%x[0,0]", b"%x[-1,1]", b"%x[", b"%", b"]", b"#", b"/", b":"),
    )


# ---- rules -------------------------------------------------------------------------------

RULES = (
    b"20: Knows(A, B) & Likes(A, X) -> Likes(B, X) ^2\n5: !Likes(A, X) ^2\n",
    b"Cat(A, +C) = 1 .\n1: Score(A, C) = Cat(A, C)\n",
    b"0.5: P(A) & (A != B) & !Q(B, 'x y') >> R(A) || !S(B) ^1\n# note\n/* long\nnote */\nP(A) -> Q(A, A) .\n",
    b"3: 2 * P(+A) / |A| + Q('a') >= @Max[1, |A|] - 0.5 {A: R(A) && (S(A) || !T(A))}\n",
    b"1: P(A) % Q(A) -> R(A)\nR(A) <- P(A) .\n1.5e-3: ~P(A) | Q('it\\'s')\n",
)
RULE_WORDS = (
    b"->", b">>", b"<-", b"<<", b"&", b"&&", b"|", b"||", b"!", b"~", b"(", b")", b"[", b"]", b"{", b"}", b"^2",
    b"^1", b"^3", b".", b"'a'", b'"b"', b"'", b"P(A)", b"Q(A, B)", b"+A", b"|A|", b"@Max[", b"@Min(", b"==",
    b"!=", b"%", b"=", b"<=", b">=", b"1:", b"-1:", b"//", b"#", b"/*", b"*/", b"\\", b"{A: P(A)}", b"||" * 50,
    b"(" * 300, b")" * 300, b"@Max[1, " * 60, b"!" * 200,
)  # fmt: skip


def check_rules(rng: np.random.Generator) -> None:
    """Rules; what was read is written and read again."""

    def read(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            greedy = len(text) % 2 == 0
            for rule in parse(text, greedy=greedy):
                same = parse(str(rule))
                expect(len(same) == 1 and str(same[0]) == str(rule), str(rule), data)

    fuzz(rng, read, RULES, RULE_WORDS, FILES // 4)


YAML = (
    b"predicates:\n  Knows/2: closed\n  Likes/2: open\nobservations:\n  Knows: a.txt\n  Likes: [b.txt, c.txt]\n"
    b"targets:\n  Likes: d.txt\ntruth:\n  Likes: e.txt\n",
    b"predicates:\n  P/1:\n    - open\n    - types: [UniqueStringID]\nobservations:\n  P: 'a.txt'\n",
    b"# only\npredicates: {Q/3: closed}\n",
)
YAML_WORDS = (
    b"predicates:", b"observations:", b"targets:", b"truth:", b"open", b"closed", b"- ", b"  ", b": ", b"&a ",
    b"*a", b"!!python/object:os.system ", b"!!int ", b"<<: ", b"[", b"]", b"{", b"}", b"|", b">", b"---", b"...",
    b"%YAML 1.1", b"? ", b"'", b'"', b"types", b"null", b"~", b"[" * 100, b"{a: " * 100, b"- " * 100,
    b"&a [*a, *a]", b"\\x", b"\\u12",
)  # fmt: skip


def check_data_files(rng: np.random.Generator) -> None:
    """Data files of PSL in YAML, beside a program."""
    with folder() as place:
        model = place / "a.psl"
        model.write_text("1: Knows(A, B) -> Likes(A, B)\n")
        data_file = place / "a.data"

        def read(data: bytes) -> None:
            data_file.write_bytes(data)
            read_program(model, data_file)

        fuzz(rng, read, YAML, YAML_WORDS, FILES // 4)


JSON = (
    json.dumps({
        "options": {"runtime.log": "a"},
        "rules": ["1: P(A) -> Q(A, 'x') ^2", "Q(A, +B) = 1 ."],
        "predicates": {
            "P/1": {"observations": ["a.txt", ["x", 0.5]]},
            "Q/2": {"types": ["A", "B"], "observations": {"infer": "b.txt"}, "targets": ["c.txt"],
                    "truth": {"all": ["d.txt"]}, "evaluations": ["Discrete", {"evaluator": "Continuous",
                    "options": {"x": 1}, "primary": True}]},
        },
    }, indent=1).encode(),
    b'// note\n{"rules": ["1: P(A)"], /* more */ "predicates": {"P/1": {"targets": "t.txt",},},}\n',
)  # fmt: skip
JSON_WORDS = (
    b'"rules"', b'"predicates"', b'"observations"', b'"targets"', b'"truth"', b'"types"', b'"arity"', b'"open"',
    b'"function"', b'"model"', b'"evaluations"', b'"infer"', b'"learn"', b'"all"', b"{", b"}", b"[", b"]", b",",
    b":", b'"', b"null", b"true", b"false", b"//", b"/*", b"*/", b"#", b"\\", b"\\u", b"[" * 200, b'{"a":' * 200,
    b'"P/1"', b'"P(A)"', b'"1: P(A)"', b"1e999", b'\\ud800',
)  # fmt: skip


def check_json(rng: np.random.Generator) -> None:
    """Programs of PSL in JSON."""
    with folder() as place:
        path = place / "a.json"

        def read(data: bytes) -> None:
            path.write_bytes(data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read_program(path)

        fuzz(rng, read, JSON, JSON_WORDS, FILES // 4)


TABLES = (
    b"ann\tbob\nbob\tcyd\n", b"ann\tbob\t0.5\nbob\tcyd\t1.0\n", b"1\t2\t0\n3\t4\t1e-3\n", b"\xef\xbb\xbfa\tb\r\nc\td\r\n",
)  # fmt: skip
COMMAS = (
    b"ann,bob\nbob,cyd\n",
    b'"a,b",c,0.25\n"d ""e""",f,1\n',
    b"1,2,0.5\n",
    b"who,whom,value\na,b,0.5\n",
)
TABLE_WORDS = (
    b"\t", b",", b'"', b'""', b"'", b";", b"|", b"\\N", b"NULL", b"null", b"\\", b"\r", b"\n\n", b"value", b"true",
    b"#", b"--", b"DROP TABLE constants;", b"\xff\xfe", b"\x1f\x8b", b"0.5", b"1.5", b"-0.5", b"a" * 2000,
    b" ", b'" ', b' "', b'"\n', b"\n\t", b"\t\t", b",,", b"\r\r\n",
)  # fmt: skip
_PACKED = 0.02  # of all files are also read by DuckDB, which takes five times as long


def check_tables(rng: np.random.Generator) -> None:
    """Atoms in text files with commas or tabs; now and then as DuckDB reads them, from gzip."""
    ends = ".csv" if rng.random() < 0.5 else ".txt"
    tables = Tables({}, n_jobs=1)
    names = [f"P{i}" for i in range(2 * FILES)]  # a predicate for every file that is taken
    with folder() as place:
        path = place / f"a{ends}"
        packed = place / f"a{ends}.gz"

        def read(data: bytes) -> None:
            header = len(data) % 3 == 0
            path.write_bytes(data)
            if rng.random() < _PACKED:
                packed.write_bytes(gzip.compress(data, 1))
                same = _atoms(tables, f"Q{names.pop()}", packed, header)
                found = _atoms(tables, names.pop(), path, header)
                expect(found == same, f"{found} is not {same} for {data!r}")
            else:
                tables.declare(names[-1], 2)
                expect(tables.relation(names[-1]).size == 0, "something of a refused file")
                tables.observe(names[-1], path, header=header)
                names.pop()

        fuzz(rng, read, COMMAS if ends == ".csv" else TABLES, TABLE_WORDS, FILES // 4)


def _atoms(tables: Tables, name: str, path: pathlib.Path, header: bool) -> str:
    """What a file holds as text, or what is said against it, whatever the file is called."""
    tables.declare(name, 2)
    try:
        tables.observe(name, path, header=header)
    except StructlearnError as error:
        told = str(error).replace(path.name, "").replace(str(path), "")
        return f"{type(error).__name__}: {told}".replace(name, "")
    columns = tables.connection.execute(f"SELECT * FROM {tables.relation(name).table}").fetchnumpy()
    first, second, values, _ = columns.values()
    return str(list(zip(tables.texts(first), tables.texts(second), values.tolist(), strict=True)))


# ---- models of rules -----------------------------------------------------------------------


@functools.cache
def rule_models() -> tuple[bytes, ...]:
    """Saved models of rules."""
    with folder() as place:
        path = place / "a.json"
        found = []
        for rules in ("1: P(A) -> Q(A) ^2\nQ(+A) = 1 .", "0.25: P(A) & R(A, B) -> Q(B)"):
            RuleModel(rules).save(path)
            found.append(path.read_bytes())
    return tuple(found)


def check_rule_models(rng: np.random.Generator) -> None:
    """Saved models of rules."""
    with folder() as place:
        path = place / "a.json"

        def read(data: bytes) -> None:
            path.write_bytes(data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                RuleModel.load(path)

        words = (
            b'"schema"',
            b'"rules"',
            b'"parameters"',
            b'"fit"',
            b'"tol"',
            b'"max_iter"',
            b'"value_"',
            *JSON_WORDS,
        )
        fuzz(rng, read, rule_models(), words, FILES // 4)


# ---- long files ----------------------------------------------------------------------------

LONG = 200_000  # bytes: what takes time by the square of the length shows
PATIENCE = 20.0  # seconds of computing for one of them


def check_long(rng: np.random.Generator) -> None:
    """Files in which a piece is repeated until they are long: no parser takes forever."""
    with folder() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (place / "a.psl").write_text("1: Knows(A, B) -> Likes(A, B)\n")
        kinds = readers(place)
        read, samples, words = kinds[int(rng.integers(len(kinds)))]
        sample = samples[int(rng.integers(len(samples)))]
        start, stop = np.sort(rng.integers(0, len(sample) + 1, 2))
        piece = sample[start:stop][: int(rng.choice([1, 2, 5, 20, 1000]))]
        if rng.random() < 0.5 or not piece:
            piece = words[int(rng.integers(len(words)))] or b" "
        blank = (b"", b"", b" ", b"\n")[int(rng.integers(4))]
        data = sample[:stop] + (piece + blank) * (LONG // len(piece + blank)) + sample[stop:]
        try:
            with at_most(PATIENCE):
                read(data)
        except StructlearnError as error:
            expect(len(str(error)) < 10_000 + 8 * len(data), f"{piece!r} in {sample!r}")
        except BaseException as error:
            told = f"{type(error).__name__}: {error} for {piece + blank!r} at {stop} of {sample!r}"
            raise WrongError(told) from error


def readers(
    place: pathlib.Path,
) -> list[tuple[Callable[[bytes], object], Sequence[bytes], Sequence[bytes]]]:
    """Every parser as a function of bytes, with samples and words of its format."""

    def by_path(name: str, read: Callable[[pathlib.Path], object]) -> Callable[[bytes], object]:
        def run(data: bytes) -> object:
            (place / name).write_bytes(data)
            return read(place / name)

        return run

    return [
        (by_path("a.uai", read_uai), MODELS, MODEL_WORDS),
        (by_path("a.evid", read_evidence), EVIDENCE, MODEL_WORDS),
        (by_path("a.answer", read_answer), ANSWERS, (b"1", b"0.5", b"-BEGIN-")),
        (parse_columns, COLUMNS, COLUMN_WORDS),
        (
            lambda data: parse_template(data.decode("utf-8", "replace")),
            TEMPLATES,
            (b"%x[0,0]", b"%"),
        ),
        (lambda data: parse(data.decode("utf-8", "replace")), RULES, RULE_WORDS),
        (by_path("a.data", lambda path: read_program(place / "a.psl", path)), YAML, YAML_WORDS),
        (by_path("a.json", read_program), JSON, JSON_WORDS),
        (by_path("b.json", RuleModel.load), rule_models(), JSON_WORDS),
    ]
