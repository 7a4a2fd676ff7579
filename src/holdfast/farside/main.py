"""Entry point on the host: `python3 -I -S …/holdfast/farside/main.py serve HOME NONCE`."""

import os
import sys


def main() -> None:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from holdfast.farside.agent import serve
    from holdfast.farside.children import OLD_LOCALE

    if len(sys.argv) != 4 or sys.argv[1] != "serve":
        sys.exit("usage: main.py serve HOME NONCE")
    if sys.getfilesystemencoding().lower() != "utf-8" and OLD_LOCALE not in os.environ:
        # Python 3.6 in the C locale, which ssh gives, cannot name a file `é`.
        environment = dict(os.environ, LC_ALL="C.UTF-8", **{OLD_LOCALE: os.environ.get("LC_ALL", "")})
        os.execve(sys.executable, [sys.executable, "-I", "-S"] + sys.argv, environment)  # noqa: S606 - no shell
    serve(sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()
