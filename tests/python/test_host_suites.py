"""How the outcomes of hosts' own tests are compared and reported."""

import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent / "host_suites"
sys.path.insert(0, str(FOLDER))

import expected  # noqa: E402
import hosts  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402

BASELINE = {"A.one": "pass", "A.two": "pass", "A.x[1]]": "pass", "A.skipped": "skip", "A.broken": "fail"}

LIST = """
[[failure]]
file = "a_test"
tests = ["A.two"]
component = "dot_general"
cause = "Rounds otherwise."
"""


def causes(tmp_path, text=LIST):
    path = tmp_path / "expected.toml"
    path.write_text(text)
    return expected.read(path)


def outcome(test, outcome, why=""):
    return {"test": test, "outcome": outcome, "why": why}


def row(*entries):
    return report.compare("a_test", [{"start": "A.one"}, *entries], BASELINE)


def test_only_tests_that_pass_on_xla_count():
    found = row(outcome("A.one", "pass"), outcome("A.skipped", "fail"), outcome("A.x[1]", "pass"), outcome("A.two", "pass"))
    assert (found.expected, found.passed, found.missing) == (3, 3, [])


def test_a_skip_and_a_test_that_did_not_run_are_missing():
    found = row(outcome("A.one", "skip", "no such device"), outcome("A.x[1]", "pass"))
    assert [(entry["test"], entry["outcome"]) for entry in found.missing] == [("A.one", "skip"), ("A.two", "absent")]


def test_failures_have_their_cause_from_the_list(tmp_path):
    found = row(outcome("A.one", "fail", "boom"), outcome("A.two", "fail", "1 != 2"), outcome("A.x[1]", "pass"))
    known = {entry["test"]: cause for entry, cause in report.with_causes(found, causes(tmp_path))}
    assert known["A.one"] is None
    assert known["A.two"].component == "dot_general"


def test_an_entry_of_the_list_whose_test_passes_is_out_of_date(tmp_path):
    passing = [row(outcome("A.one", "pass"), outcome("A.two", "pass"), outcome("A.x[1]", "pass"))]
    failing = [row(outcome("A.two", "fail"))]
    assert report.out_of_date(passing, causes(tmp_path)) == ["a_test A.two"]
    assert report.out_of_date(failing, causes(tmp_path)) == []
    assert report.out_of_date([row()], causes(tmp_path)) == []


def test_the_page_has_shares_and_causes(tmp_path):
    found = row(outcome("A.one", "pass"), outcome("A.two", "fail"), outcome("A.x[1]", "fail", "boom\nmore"))
    page = report.markdown([found, report.compare("b_test", [], {"B.one": "pass"})], causes(tmp_path), hosts.JAX, "JAX 1.0")
    assert "| a_test | 3 | 3 | 1 | 33.3 % |" in page
    assert "* **dot_general**: Rounds otherwise. `A.two`" in page
    assert "`A.x[1]]` (fail): `boom`" in page
    assert "Not run yet: `b_test`" in page


def test_the_page_has_no_folders_of_the_machine(tmp_path):
    found = row(outcome("A.one", "fail", 'no such thing (at "/home/someone/jax/tests/a_test.py":3)'), outcome("A.two", "pass"))
    page = report.markdown([found], causes(tmp_path), hosts.JAX, "JAX 1.0")
    assert 'no such thing (at "a_test.py":3)' in page
    assert "* Not run: 1 tests." in page


def test_a_list_with_a_hole_or_a_test_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="entry 1 has no 'cause'"):
        causes(tmp_path, LIST.replace("cause =", "why ="))
    with pytest.raises(ValueError, match="A.two is there twice"):
        causes(tmp_path, LIST + LIST)


@pytest.mark.parametrize("host", sorted(hosts.HOSTS))
def test_the_lists_of_the_project_are_well_formed(host):
    causes = expected.read(FOLDER / f"{host}.toml")
    assert all(cause.component and cause.text for cause in causes.values())


def test_files_with_variables_of_their_own_share_no_process():
    assert hosts.JAX.file_settings("lax_test") == {}
    assert hosts.JAX.file_settings("transfer_guard_test") == {"REFCPU_OPAQUE": "1"}


def test_programs_of_torch_xla_are_one_test_each():
    program = "if xm.xla_device_hw(device) in ('TPU',):\n  run()\ntorch_xla.launch(_mp_fn)"
    assert hosts.TORCH_XLA.is_script(program)
    assert hosts.TORCH_XLA.edit(program).startswith("if 'TPU' in ('TPU',):")
    cases = program.replace("torch_xla.launch(_mp_fn)", "unittest.main()")
    assert not hosts.TORCH_XLA.is_script(cases)
    assert hosts.TORCH_XLA.edit(cases) == cases


def test_the_record_of_a_run_says_which_test_stopped_it(tmp_path):
    record = records.path(tmp_path, "spmd/a_test")
    assert records.running(record) is None
    records.add(record, {"start": "A.one"})
    records.add(record, outcome("A.one", "pass"))
    assert records.running(record) is None
    records.add(record, {"start": "A.two"})
    assert records.running(record) == "A.two"
    records.forget_failures(record)
    assert records.read(record) == [outcome("A.one", "pass")]
