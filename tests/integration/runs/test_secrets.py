"""How secrets are named and refused, and what diagnostics hide."""

from __future__ import annotations

import zipfile

VALUE = "s3cr3t-value-äöü"


def test_a_secrets_list_in_the_runconfig_is_redacted(bench):
    bench.write("t.py", "import os\nprint(os.environ['TOKEN'])\n")
    bench.write("aml_config/s.runconfig", "Target: local\nFramework: Python\nSecrets: [TOKEN]\n")
    assert bench.submit("-c", "s", "t.py", env={"TOKEN": VALUE}).out == "***\n"


def test_a_secret_without_a_value_or_in_the_arguments_is_refused_without_showing_it(bench):
    bench.write("t.py", "")
    missing = bench.submit("--secret", "TOKEN", "t.py")
    assert missing.code == 240
    assert "export TOKEN" in missing.err
    shown = bench.submit("--secret", "TOKEN", "t.py", f"--token={VALUE}", env={"TOKEN": VALUE})
    assert shown.code == 240
    assert VALUE not in shown.err
    typed = bench.submit("--secret", f"TOKEN={VALUE}", "t.py")
    assert typed.code == 240
    assert VALUE not in typed.err
    short = bench.submit("--secret", "TOKEN", "t.py", env={"TOKEN": "abc"})
    assert short.code == 240


def test_diagnostics_hide_the_values_of_variables(bench):
    bench.write("t.py", "import os\nprint(os.environ['API_KEY'])\n")
    bench.write(
        "aml_config/v.runconfig", f"Target: local\nFramework: Python\nEnvironmentVariables:\n  API_KEY: {VALUE}\n"
    )
    bench.submit("-c", "v", "t.py")
    bench.run("experiment", "diagnostics", "-r", "last", "--file", "d.zip")
    with zipfile.ZipFile(bench.root / "d.zip") as archive:
        assert all(VALUE.encode() not in archive.read(name) for name in archive.namelist())
