"""Entry point on the host: `python3 -I -S …/holdfast/farside/main.py serve HOME NONCE`; `detached WORK HOME` where a
service manager starts what must outlive the connection; `shell HOME TOKEN` where a person enters a run's
surroundings; `gpus`, which prints what NVML knows; `sample FOLDER GUARDIAN GENERATION`, which watches the GPUs for a
run; `inside FOLDER` in a run's container; `owned HOME PROJECT RUN TOKEN`, what an engine starts."""

import os
import sys


def main() -> None:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    if sys.argv[1:2] == ["inside"] and len(sys.argv) == 3:
        from holdfast.farside.containers.launcher import main as launch

        launch(sys.argv[2])
    if sys.argv[1:] == ["gpus"]:
        from holdfast.farside.machine.nvml import main as print_gpus

        print_gpus()
    if sys.argv[1:2] == ["sample"] and len(sys.argv) == 5:
        from holdfast.farside.gpu.watch.sampler import main as sample

        sample(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    if sys.argv[1:2] == ["shell"] and len(sys.argv) == 4:
        from holdfast.farside.operations.shells import enter

        enter(sys.argv[2], sys.argv[3])
    if sys.argv[1:2] == ["owned"] and len(sys.argv) == 6:
        from holdfast.farside.run.guardian import become_owned
        from holdfast.farside.system.layout import Home

        become_owned(Home(sys.argv[2]), *sys.argv[3:])
    if len(sys.argv) != 4 or sys.argv[1] not in ("serve", "detached"):
        sys.exit(
            "usage: main.py serve HOME NONCE | detached WORK HOME | shell HOME TOKEN | gpus"
            " | sample FOLDER PID MARK | inside FOLDER | owned HOME PROJECT RUN TOKEN"
        )
    if sys.getfilesystemencoding().lower() != "utf-8":
        _start_again_with_utf8()
    if sys.argv[1] == "serve":
        from holdfast.farside.system.frames import marker

        os.write(1, marker(sys.argv[3]))  # what the near side sends then travels while the rest is loaded
        from holdfast.farside.agent import serve

        serve(sys.argv[2])
    else:
        _run_detached(sys.argv[2], sys.argv[3])


def _start_again_with_utf8() -> None:
    """Python 3.6 in the C locale, which ssh gives, cannot name a file `é`. Once: where it does not help, it stays."""
    from holdfast.farside.system.children import OLD_LOCALE

    if OLD_LOCALE not in os.environ:
        environment = dict(os.environ, LC_ALL="C.UTF-8", **{OLD_LOCALE: os.environ.get("LC_ALL", "")})
        os.execve(sys.executable, [sys.executable, "-I", "-S"] + sys.argv, environment)  # noqa: S606 - no shell


def _run_detached(name: str, home_path: str) -> None:
    from holdfast.farside.engines.direct import run_detached
    from holdfast.farside.operations.logout import PROOF_NAME, become_proof
    from holdfast.farside.run.guardian import become_guardian
    from holdfast.farside.system.layout import GUARDIAN_NAME, Home

    run_detached(Home(home_path), {GUARDIAN_NAME: become_guardian, PROOF_NAME: become_proof}[name])


if __name__ == "__main__":
    main()
