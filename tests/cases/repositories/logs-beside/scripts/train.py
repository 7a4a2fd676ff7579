import os

top = os.path.basename(os.getcwd())
folder = os.path.join("..", "logs", top)
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "loss.txt"), "w") as log:
    for step in range(3):
        log.write("%d %.3f\n" % (step, 1 / (step + 1)))
print("wrote", os.path.join(folder, "loss.txt"), "and", sorted(os.listdir(os.path.join("..", "logs"))))
