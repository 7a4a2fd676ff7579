import six


def area(side):
    return six.integer_types[0](side * side)
