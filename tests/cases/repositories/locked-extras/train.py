import argparse
import importlib.util

import iniconfig
import six

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1)
steps = parser.parse_args().steps
print("six", six.PY3, "iniconfig", hasattr(iniconfig, "IniConfig"), "toml", bool(importlib.util.find_spec("toml")))
with open("losses.txt", "w") as file:
    for step in range(steps):
        file.write("%d %.2f\n" % (step, 1 / (step + 1)))
