def read(path):
    with open(path) as file:
        return [tuple(map(float, line.split())) for line in file]
