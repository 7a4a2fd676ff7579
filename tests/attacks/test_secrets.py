"""The value of a secret is in the script's process and in no other."""

import json

SCRIPT = """
    import glob, json, os
    value = os.environ["TOKEN"].encode()
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as source:
                has_it = value in source.read()
        except OSError:
            continue  # it has ended since
        if has_it:
            found.append(path.split("/")[2])
    print(json.dumps([found, [str(os.getpid())]]))
"""


def test_no_process_of_holdfasts_has_a_secret_in_its_environment(bench):
    bench.write("t.py", SCRIPT)
    run_id = bench.start("--secret", "TOKEN", "t.py", env={"TOKEN": "correct-horse"})
    output = bench.run("logs", "-f", "-r", run_id).out
    found, own = json.loads(output.splitlines()[0])
    assert found == own
