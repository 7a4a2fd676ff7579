print("valid: %s" % (abs(0.5 * 4 - 2) < 1e-9))
