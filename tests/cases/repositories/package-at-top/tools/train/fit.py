import argparse
import logging
import os

import shapes
from shapes.square import area

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2)
steps = parser.parse_args().steps

logging.basicConfig(format="%(message)s", level=logging.INFO)
logging.info("from %s", os.path.relpath(os.path.dirname(shapes.__file__)))
os.makedirs("runs", exist_ok=True)
with open("runs/areas.txt", "w") as file:
    for side in range(steps):
        print(side, area(side), file=file)
print("done")
