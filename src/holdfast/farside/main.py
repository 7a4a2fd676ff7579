"""Entry point on the host: `python3 -I -S …/holdfast/farside/main.py serve HOME NONCE`."""

import os
import sys


def main() -> None:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from holdfast.farside.agent import serve

    if len(sys.argv) != 4 or sys.argv[1] != "serve":
        sys.exit("usage: main.py serve HOME NONCE")
    serve(sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()
