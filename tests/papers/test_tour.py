"""``structlearn demo``: the text is true and the pictures are whole."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from papers.files import save_picture
from papers.tour import command as demo
from papers.tour import image, machine, room
from structlearn._src.cli.main import main


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """Text of one whole tour, the folder with its pictures, and the figures themselves."""
    folder = tmp_path_factory.mktemp("tour") / "a" / "b"
    figures = {}
    lines = []

    def record(figure, path):
        save_picture(figure, path)
        figures[path.name] = figure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "save_picture", record)
        patch.setattr(demo, "print", lambda *words, **_: lines.extend(words), raising=False)
        assert main(["demo", "--output", str(folder)]) == 0
    return "\n".join(lines), folder, figures


def shares(text, name):
    """Percentages in the table row called `name`."""
    (row,) = (line for line in text.splitlines() if line.startswith(name) and "%" in line)
    return [float(x) / 100 for x in re.findall(r"([\d.]+)%", row)]


def test_every_stop_has_a_heading_and_pictures(tour):
    text, folder, figures = tour
    headings = re.findall(r"^(\d)\. .+\n-+$", text, re.MULTILINE)
    assert headings == [str(i + 1) for i in range(len(demo.STOPS))]
    saved = sorted(path.name for path in folder.iterdir())
    assert saved == sorted(figures)
    assert {name[0] for name in saved} == set(headings)
    for name in saved:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert f"Picture: {folder / name}" in text
    assert max(map(len, text.splitlines())) <= max(88, len(f"Picture: {folder}") + 20)


def test_nothing_is_cut_off(tour):
    for name, figure in tour[2].items():
        box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert box.x0 >= 0, name
        assert box.y0 >= 0, name
        assert box.x1 <= width, name
        assert box.y1 <= height, name


def test_the_picture_gets_clean(tour):
    (alone,) = shares(tour[0], "nearest level of each pixel")
    (joint,) = shares(tour[0], "most probable picture")
    (each,) = shares(tour[0], "most probable level of each pixel")
    assert alone > 0.4
    assert joint < 0.05
    assert each < 0.05


def test_the_scene_has_all_levels():
    assert set(np.unique(image.scene())) == set(range(5))
    assert image.scene().shape == (60, 80)


def test_the_chain_beats_single_readings(tour):
    (alone,) = shares(tour[0], "nearest level of each reading")
    (joint,) = shares(tour[0], "most probable day")
    (each,) = shares(tour[0], "most probable state of each time")
    assert max(joint, each) < 0.6 * alone
    assert each <= joint  # over 200 days


def test_marginal_map_beats_joint_map(tour):
    marginal, joint = shares(tour[0], "marginal MAP"), shares(tour[0], "joint MAP")
    each = shares(tour[0], "best of each marginal")
    assert marginal[0] > joint[0] + 0.1
    assert marginal[1] > joint[1] + 0.1
    assert marginal[0] > each[0]
    assert each[1] > marginal[1]


def test_the_machine_against_summing_by_hand():
    days = machine.solve(np.random.default_rng(5), 12)
    np.testing.assert_array_equal(days.outputs, days.hidden > 0)
    faults, change = machine.FAULTS, machine.CHANGE
    stays = np.array([[1 - change, change], [change, 1 - change]])
    for day, readings in enumerate(days.readings):
        odds = np.exp(-((readings[:, None] - machine.MEANS) ** 2) / (2 * machine.NOISE**2))
        # All faults are alike to the chain, so their likelihoods just average.
        summed = np.stack([odds[:, 0], odds[:, 1:].mean(axis=1)], axis=1)
        single = np.stack([odds[:, 0], odds[:, 1:].max(axis=1) / faults], axis=1)
        for way, seen in (("marginal MAP", summed), ("joint MAP", single)):
            best = max(
                itertools.product((0, 1), repeat=len(readings)),
                key=lambda y, seen=seen: (
                    np.prod([stays[a, b] for a, b in itertools.pairwise(y)])
                    * np.prod([seen[t, s] for t, s in enumerate(y)])
                ),
            )
            np.testing.assert_array_equal(days.found[way][day], best)


def test_a_chain_reads_references_better_than_words_alone(tour):
    alone, crf = shares(tour[0], "each word alone"), shares(tour[0], "a chain, log loss")
    svm, half = shares(tour[0], "a chain, hinge"), shares(tour[0], "a CRF that got half")
    assert alone[0] < 0.75
    assert min(crf[0], svm[0], half[0]) > 0.9
    assert alone[1] < 0.1
    assert min(crf[1], svm[1], half[1]) > 0.4


def test_neighbours_help_when_labels_are_hidden(tour):
    (alone,) = shares(tour[0], "each pixel alone")
    (crf,), (svm,) = shares(tour[0], "hidden CRF"), shares(tour[0], "marginal structured SVM")
    assert min(crf, svm) > alone + 0.2


def test_rules_about_traits_help_and_others_go(tour):
    (before,), (after,) = shares(tour[0], "all rules alike"), shares(tour[0], "weights learnt")
    assert after > before + 0.05
    words = " ".join(tour[0].split())
    ((traits, friends),) = re.findall(
        r"weigh ([\d.]+) on average now, .*? friends ([\d.]+)\.", words
    )
    assert float(traits) > 5 * float(friends)
    (alike,) = re.findall(r"correlates with the truth by ([\d.]+)\.", words)
    assert float(alike) > 0.6


def short_tour(capsys, monkeypatch, *options):
    monkeypatch.setattr(demo, "STOPS", ("room",))
    code = main(["demo", *options])
    out, err = capsys.readouterr()
    return code, re.sub(r"in \d+\.\d s", "", out), err


def test_seeds(capsys, monkeypatch):
    first = short_tour(capsys, monkeypatch, "--no-pictures")
    assert first[0] == 0
    assert short_tour(capsys, monkeypatch, "--no-pictures", "--random-state", "0") == first
    other = short_tour(capsys, monkeypatch, "--no-pictures", "--seed", "1")
    assert shares(other[1], "nearest") != shares(first[1], "nearest")


def test_no_pictures(capsys, monkeypatch, tmp_path):
    folder = tmp_path / "none"
    code, out, _ = short_tour(capsys, monkeypatch, "--no-pictures", "--output", str(folder))
    assert (code, folder.exists()) == (0, False)
    assert "Picture" not in out
    assert "matplotlib" not in out


def test_without_matplotlib(capsys, monkeypatch, tmp_path):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    folder = tmp_path / "none"
    code, out, _ = short_tour(capsys, monkeypatch, "--output", str(folder))
    assert (code, folder.exists()) == (0, False)
    assert "times wrong" in out
    assert out.endswith("pip install structlearn[plot]\n")


def test_a_file_where_the_folder_should_be(capsys, monkeypatch, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    code, out, err = short_tour(capsys, monkeypatch, "--output", str(path))
    assert (code, out) == (2, "")
    assert err == f"structlearn: error: {path}: file exists\n"


def test_a_report_has_text_pictures_and_code(capsys, monkeypatch, tmp_path):
    path = tmp_path / "tour.html"
    code, out, _ = short_tour(
        capsys, monkeypatch, "--output", str(tmp_path / "p"), "--report", str(path)
    )
    page = path.read_text(encoding="utf-8")
    assert code == 0
    assert f"The page is {path}." in out
    assert page.count('src="data:image/png;base64,') == 1
    for words in ("1. An exact chain", "times wrong", "def run(rng: np.random.Generator)"):
        assert words in page
    assert "http" not in re.sub(r"http://www\.w3\.org\S*", "", page)
    plain = tmp_path / "plain.html"
    short_tour(capsys, monkeypatch, "--no-pictures", "--report", str(plain))
    assert "data:image" not in plain.read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_refused_before_the_tour(capsys, monkeypatch, tmp_path):
    path = tmp_path / "none" / "tour.html"
    code, out, err = short_tour(capsys, monkeypatch, "--no-pictures", "--report", str(path))
    assert (code, out) == (2, "")
    assert "there is no folder" in err


def test_a_heading_comes_before_the_work(capsys, monkeypatch):
    told = []

    def stop(rng):
        told.append(capsys.readouterr().out)
        return room.Stop("", ["found"], {})

    monkeypatch.setattr(room, "run", stop)
    code, out, _ = short_tour(capsys, monkeypatch, "--no-pictures")
    assert code == 0
    assert told[0].endswith("----\n")
    assert room.HEADING in told[0]
    assert out.startswith("found")
    assert "structlearn --help" in out
