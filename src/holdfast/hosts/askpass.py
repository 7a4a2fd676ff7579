"""The program that ssh starts to ask something (SSH_ASKPASS): hands the question to the Holdfast that started ssh, and
the answer back. It runs by itself, with the standard library alone."""

import json
import os
import socket
import sys


def main() -> int:
    place = os.environ.get("HOLDFAST_ASKPASS_SOCKET", "")
    question = {
        "token": os.environ.get("HOLDFAST_ASKPASS_TOKEN", ""),
        "text": sys.argv[1] if len(sys.argv) > 1 else "",
        "hint": os.environ.get("SSH_ASKPASS_PROMPT", ""),
    }
    try:
        with _connected(place) as link:
            link.sendall(json.dumps(question).encode() + b"\n")
            answer = json.loads(link.makefile("rb").readline() or b"null")
    except (OSError, ValueError):
        return 1
    if not isinstance(answer, str):
        return 1
    sys.stdout.write(answer + "\n")
    return 0


def _connected(place: str) -> socket.socket:
    if place.isdigit():  # where there are no Unix sockets
        return socket.create_connection(("127.0.0.1", int(place)))
    link = socket.socket(socket.AF_UNIX)
    link.connect(place)
    return link


if __name__ == "__main__":
    sys.exit(main())
