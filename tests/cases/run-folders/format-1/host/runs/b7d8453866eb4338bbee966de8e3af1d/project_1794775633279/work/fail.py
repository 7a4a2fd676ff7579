import sys
print("hello from an old run")
sys.exit(3)
