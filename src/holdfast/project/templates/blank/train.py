"""The smallest tracked run: one metric, one output."""

import os

import holdfast

for step in range(1, 6):
    holdfast.log("value", step * step, step=step)  # `holdfast history list` shows the last value

os.makedirs("outputs", exist_ok=True)
with open("outputs/hello.txt", "w") as file:  # what is written to outputs/ is kept with the run
    file.write("hello\n")
print("logged 5 values and wrote outputs/hello.txt")
