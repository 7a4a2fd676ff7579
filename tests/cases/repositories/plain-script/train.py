#!/usr/bin/env python3
import argparse
import os
import sys

from model import fit

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--name", default="line")
arguments = parser.parse_args()
if arguments.steps < 1:
    sys.exit("train.py: --steps must be at least 1")

os.makedirs("outputs/plots", exist_ok=True)
with open("outputs/log.csv", "w") as log:
    for step, (slope, loss) in enumerate(fit(arguments.steps), 1):
        log.write("%d,%.6f\n" % (step, loss))
with open("outputs/plots/loss.txt", "w") as plot:
    plot.write("%s: %s\n" % (arguments.name, "#" * int(50 * loss)))
print("%s: slope %.4f, loss %.6f" % (arguments.name, slope, loss))
