import os
import sys

if not sys.stdout.isatty():
    sys.exit("train.py: run me in a terminal")
width = os.get_terminal_size().columns
for step in range(5):
    print(f"\r{step} {'#' * (step * width // 8)}", end="")
print()
with open("model.txt", "w") as file:
    file.write("saved")
