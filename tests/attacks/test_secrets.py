"""The value of a secret is in the script's process and in no other."""

import json

SCRIPT = """
    import glob, json, os
    value = os.environ["TOKEN"].encode()
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as source:
                has_it = value in source.read() and int(path.split("/")[2]) != os.getpid()
        except OSError:
            continue  # it has ended since
        if has_it:
            try:
                with open(os.path.join(os.path.dirname(path), "comm")) as name:
                    found.append(name.read().strip())
            except OSError:
                found.append("one that has ended since")
    print(json.dumps(found))
"""


def test_no_process_of_holdfasts_has_a_secret_in_its_environment(bench):
    bench.write("t.py", SCRIPT)
    run_id = bench.start("--secret", "TOKEN", "t.py", env={"TOKEN": "correct-horse"})
    output = bench.run("logs", "-f", "-r", run_id).out
    assert json.loads(output.splitlines()[0]) == []
