import argparse
import hashlib
import json
import os
import subprocess
import sys

LOCK = "stages.lock"


def digest(path):
    with open(path, "rb") as source:
        return hashlib.md5(source.read()).hexdigest()


def load(path):
    with open(path) as source:
        return json.load(source)


def repro(wanted, settings):
    params, stages = load("params.json"), load("stages.json")
    for setting in settings:
        name, value = setting.split("=")
        stage, key = name.split(".")
        params[stage][key] = int(value)
    lock = load(LOCK) if os.path.exists(LOCK) else {}
    for name, stage in stages.items():
        if wanted not in (None, name):
            continue
        state = {"params": params[name], "deps": {each: digest(each) for each in stage["deps"]}}
        known = lock.get(name, {})
        is_same = known.get("state") == state
        if is_same and all(os.path.exists(out) and digest(out) == known["outs"][out] for out in stage["outs"]):
            print("Stage '%s' didn't change, skipping" % name, flush=True)
            continue
        print("Running stage '%s'" % name, flush=True)
        for out in stage["outs"]:
            os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
        subprocess.run([sys.executable, *stage["cmd"], json.dumps(params[name])], check=True)
        lock[name] = {"state": state, "outs": {out: digest(out) for out in stage["outs"]}}
        with open(LOCK, "w") as target:
            json.dump(lock, target, indent=1, sort_keys=True)


parser = argparse.ArgumentParser()
parser.add_argument("verb", choices=["repro", "metrics"])
parser.add_argument("stage", nargs="?")
parser.add_argument("--set", action="append", default=[])
options = parser.parse_args()
if options.verb == "repro":
    repro(options.stage, options.set)
else:
    print(json.dumps(load("metrics.json")))
