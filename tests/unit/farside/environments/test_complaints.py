"""What people read when a build failed."""

import pytest

from holdfast.farside.environments.installer_errors import explain, package_name

SPEC = [["numpy==99", "conda.yml:6"], ["nosuch-xyz==1", "conda.yml:7"], ["Some.Pack[extra]>=2", "req.txt:3"]]


def test_a_package_that_is_not_there_is_named_with_its_line():
    output = (
        "error: No solution found when resolving dependencies\n"
        "  cause: Because nosuch-xyz was not found in the package registry and you require nosuch-xyz==1, we can "
        "conclude that your requirements are unsatisfiable.\n"
    )

    found = explain(output, SPEC)

    assert found.where == "conda.yml:7"
    assert found.reason.startswith("No solution found when resolving dependencies: Because nosuch-xyz was not found")
    assert "spelling of `nosuch-xyz`" in found.remedy
    assert "(asked for in conda.yml:7)." in found.sentence()


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        (
            "error: Request failed after 3 retries\n  cause: Failed to fetch: x\n  cause: tcp connect error",
            "--ship-packages",
        ),
        ("error: Failed to build `some-pack`\n  cause: Call to `setuptools.build_meta` failed", "Pin a Python"),
        ("error: failed to write\n  cause: No space left on device (os error 28)", "clean --environments"),
        ("error: Hash mismatch for `numpy==1`\n", "--upgrade"),
        ("error: No solution found\n cause: Because numpy==99 …unsatisfiable", "contradict"),
        ("error: x\n hint: could not be queried due to a lack of valid authentication credentials (401)", "password"),
        ("error: A path dependency is incompatible with the current platform", "environment check"),
        ("error: six was not found in the cache\n hint: the network was disabled", "--ship-packages"),
        ("error: Failed to fetch\n cause: HTTP status client error (404 Not Found)", "nothing at that address"),
        ("Segmentation fault", ""),
    ],
)
def test_every_kind_of_failure_has_its_remedy(output, remedy):
    found = explain(output, SPEC)

    assert remedy in found.remedy
    assert bool(remedy) == bool(found.remedy)


def test_a_name_is_found_however_it_is_spelled():
    assert explain("error: Failed to build `some_pack`", SPEC).where == "req.txt:3"
    assert explain("error: Failed to build `some-packer`", SPEC).where == ""


def test_there_is_a_reason_in_any_case_and_it_fits_into_a_record():
    assert explain("", []).sentence() == "the installer gave no reason."
    assert len(explain("error: " + "long " * 1000, []).reason) < 420
    killed = explain("Building numpy==1.26.4", SPEC, 9)
    assert killed.sentence().startswith("the installer was ended by signal 9. Memory may have run out")
    assert killed.where == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("numpy", "numpy"),
        ("numpy >=2", "numpy"),
        ("a.b-c[d]==1; python_version<'3'", "a.b-c"),
        ("x @ https://host/x.whl", "x"),
        ("--index-url https://host", ""),
        ("https://host/some_wheel-1.0-py3-none-any.whl", "some-wheel"),
        ("${HOLDFAST_FILES}/w/mine-2-py3-none-any.whl", "mine"),
    ],
)
def test_the_name_of_a_requirement(text, name):
    assert package_name(text) == name
