"""The kernel of a notebook: this same Python, its sockets and files in a folder of the run alone."""

import os
import signal
import socket
import sys
import threading
from importlib import import_module
from typing import Any

_MOST_SAID = 1 << 14
"""Bytes of what the kernel said last on its own stdout and stderr."""


class NotebookKernel:
    """`folder` is the kernel's own: nobody else can read there, and nothing of it is left in the account's home."""

    PATIENCE = 600
    """Seconds that a kernel may take to start: packages may come from a slow network disk."""

    def __init__(self, folder: str) -> None:
        os.environ.update(JUPYTER_RUNTIME_DIR=folder, IPYTHONDIR=os.path.join(folder, "ipython"))
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # a warning of the debugger, which is not used
        os.environ.pop("PYTEST_CURRENT_TEST", None)  # with it, ipykernel leaves aside what programs print
        make: Any = import_module("jupyter_client.manager").AsyncKernelManager
        self.manager = make(kernel_spec_manager=_own_python())
        self.manager.connection_file = os.path.join(folder, "kernel.json")
        if has_sockets(folder):
            place = os.open(folder, os.O_RDONLY)  # by its number, since paths of sockets must be short
            self.manager.transport, self.manager.ip = "ipc", "/proc/%d/fd/%d/kernel" % (os.getpid(), place)
        self._aside = Aside()

    async def start(self, client: Any) -> None:
        pipe = self._aside.begin()
        try:
            await client.async_start_new_kernel(cwd=os.getcwd(), stdout=pipe, stderr=pipe)
        finally:
            os.close(pipe)
        await client.async_start_new_kernel_client()

    async def end(self) -> None:
        await self.manager.shutdown_kernel(now=True)

    def interrupt(self) -> None:
        """As Ctrl-C does, what the cell has started too."""
        try:
            os.killpg(self._process().pid, signal.SIGINT)
        except OSError:
            pass

    def exit_code(self) -> int:
        """Of a kernel that is gone; negative for a signal. 1 if it is not known."""
        code = self._process().poll()
        return 1 if code is None else int(code)

    def last_words(self) -> str:
        return self._aside.said()

    def _process(self) -> Any:
        provisioner = getattr(self.manager, "provisioner", None)
        return self.manager.kernel if provisioner is None else provisioner.process


def has_sockets(folder: str) -> bool:
    """Whether the kernel's sockets can lie there. On a disk without sockets they are ports of the loopback, to which
    others on the machine can listen."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind("/proc/%d/fd/%d/probe" % (os.getpid(), descriptor))
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _own_python() -> Any:
    module = import_module("jupyter_client.kernelspec")
    base: Any = module.KernelSpecManager

    class OwnPython(base):  # type: ignore[misc] # the project's own Python does not have jupyter_client
        def get_kernel_spec(self, kernel_name: str) -> Any:
            argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return module.KernelSpec(argv=argv, language="python", display_name="Python")

    return OwnPython()


class Aside:
    """What reaches the kernel's own stdout and stderr. Nearly all of it is a copy of what messages bring; what it says
    when it dies is not. An ipykernel before 6 knows only what Python prints: there it is what other programs print."""

    def __init__(self) -> None:
        self._source, self._said = -1, b""
        self._reader = threading.Thread(target=self._read, daemon=True)

    def begin(self) -> int:
        """The end to write to."""
        self._source, writer = os.pipe()
        self._reader.start()
        return writer

    def _read(self) -> None:
        is_copy = import_module("ipykernel").version_info[0] >= 6
        while True:
            data = os.read(self._source, 1 << 16)
            if not data:
                return
            if is_copy:
                self._said = (self._said + data)[-_MOST_SAID:]
            else:
                os.write(1, data)

    def said(self) -> str:
        """By a kernel that is gone. What it started may still have the pipe open."""
        self._reader.join(1.0)
        return self._said.decode("utf-8", "replace").strip()
