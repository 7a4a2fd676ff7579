"""Packages of conda in an environment: solved and installed by py-rattler, which has an environment of its own."""

import os
import time
from typing import Any, Callable, Dict, List, Optional

from holdfast.farside.environments import conda_requests, uv
from holdfast.farside.environments.built_environment import Environment
from holdfast.farside.environments.conda_channels import Channels, channel_urls, read_settings
from holdfast.farside.environments.find import Known
from holdfast.farside.environments.installer_errors import explain, package_name
from holdfast.farside.environments.locks import Lock
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.refusal import Refused

PYTHON = ">=3.10"
"""What py-rattler needs; it is not the Python of the run."""
_EVERY = 0.5


class CondaPart:
    """`python` gives the Python that py-rattler gets; `cuda` is what the driver supports, or empty."""

    def __init__(self, known: Known, shop: Workshop, python: Callable[[], str], cuda: str) -> None:
        self._home, self._plan, self._place = known.home, known.plan, known.place
        self._shop, self._python, self._cuda = shop, python, cuda
        self._tool: Optional[Environment] = None
        self._told = 0.0

    def solve(self, platform: str, known: List[Lock]) -> List[Dict[str, Any]]:
        """The exact packages, Python among them. Those of `known` locks are kept wherever they fit."""
        pin = self._plan["python"]
        python = "python" if not pin else "python %s" % (pin + ".*" if pin[0].isdigit() else pin)
        specs = [python] + [text for text, _ in self._plan["conda"]]
        try:
            locked = _of_this_platform(known[0]["conda"] if known else [], platform)
            request = conda_requests.solve_request(
                specs, self._channels(specs), platform, self._cuda, locked, self._cache()
            )
        except ValueError as error:
            raise Refused("preparation", "conda has no packages for this machine: %s" % error) from None
        packages = [dict(each) for each in self._ask(request).packages]
        if not any(each["name"] == "python" for each in packages):
            raise Refused("preparation", "the channels have no Python for these packages")
        return packages

    def install(self, packages: List[Dict[str, Any]], path: str, platform: str, thorough: bool) -> None:
        channels = self._channels([])
        place = conda_requests.Prefix(path, path)
        self._ask(conda_requests.install_request(packages, place, channels, platform, self._cache(), thorough))

    def tool_python(self) -> str:
        """The Python that has py-rattler; made when it is needed first."""
        if self._tool is None:
            name = conda_requests.RATTLER.replace("==", "-") + ("-" + self._place.tag if self._place.tag else "")
            tool = Environment(self._home, name)
            if not tool.use():
                tool.ensure(lambda: self._make_tool(tool.path), False, self._shop.owner.wait, self._shop.owner.tell)
            self._tool = tool
        return os.path.join(self._tool.path, "bin", "python")

    def leave(self) -> None:
        """The tool is used no more."""
        if self._tool is not None:
            self._tool.leave()
            self._tool = None

    def addresses(self) -> List[str]:
        """Of the channels, and whatever else may name files of this machine."""
        if not self._plan["conda"] and not self._plan["channels"]:
            return []
        found = self._channels([text for text, _ in self._plan["conda"]])
        return [url for _, urls in found.groups for url in urls] + [str(each) for each in found.network.values()]

    def _make_tool(self, path: str) -> Dict[str, Any]:
        variables, python = self._variables(), self._python()
        steps = [
            uv.venv_command(self._plan["uv"], path, python),
            [
                self._plan["uv"],
                "pip",
                "install",
                "--python",
                os.path.join(path, "bin", "python"),
                conda_requests.RATTLER,
            ],
        ]
        for step in steps:
            progress = uv.UvProgress(
                self._shop.phase, "fetching %s, which installs conda packages" % conda_requests.RATTLER
            )
            result = self._shop.run(step, variables, progress.hear)
            if result.code != 0:
                raise Refused("preparation", explain(result.output, []).sentence())
        said = {"packages": [conda_requests.RATTLER], "summary": "py-rattler, which installs conda packages"}
        return dict(said, **self._place.about(python))

    def _ask(self, request: str) -> conda_requests.CondaDone:
        answers: List[Any] = []

        def hear(line: str) -> None:
            answer = conda_requests.read_line(line)
            if isinstance(answer, conda_requests.CondaProgress):
                self._tell(answer)
            elif answer is not None:
                answers.append(answer)

        argv = conda_requests.worker_command(self.tool_python())
        result = self._shop.run(argv, self._variables(), hear, request)
        answer = answers[-1] if answers else conda_requests.ended_early(result.code, result.output)
        if isinstance(answer, conda_requests.CondaProblem):
            raise Refused("preparation", self._sentence(answer))
        done: conda_requests.CondaDone = answer
        return done

    def _tell(self, progress: conda_requests.CondaProgress) -> None:
        if time.monotonic() - self._told >= _EVERY:
            self._told = time.monotonic()
            self._shop.phase(progress.text)

    def _sentence(self, problem: conda_requests.CondaProblem) -> str:
        name = package_name(problem.spec) if problem.spec else ""
        places = [where for text, where in self._plan["conda"] if name and package_name(text) == name]
        asked = " (asked for in %s)" % places[0] if places else ""
        return "%s%s. %s" % (problem.message.rstrip(". "), asked, _REMEDIES.get(problem.kind, ""))

    def _channels(self, specs: List[str]) -> Channels:
        environment = inherited_environment()
        return channel_urls(self._plan["channels"], specs, read_settings(environment), self._shop.secrets)

    def _cache(self) -> str:
        return os.path.join(self._home.cache(), "conda")

    def _variables(self) -> Dict[str, str]:
        return uv.variables(self._home, dict(inherited_environment()), self._place.cache)


_REMEDIES = {
    conda_requests.UNSATISFIABLE: (
        "Change the versions that contradict each other, or add the channel that has the package."
    ),
    conda_requests.CHANNEL: "Check the names under `channels:`.",
    conda_requests.NETWORK: (
        "Does the machine reach the channel? Packages below `pip:` come from the Python package index."
    ),
    conda_requests.STORAGE: "Make room on the machine: holdfast experiment clean --environments",
}


def python_version(packages: List[Dict[str, Any]]) -> str:
    return str(next(each["version"] for each in packages if each["name"] == "python"))


def _of_this_platform(packages: List[Dict[str, Any]], platform: str) -> List[Dict[str, Any]]:
    """What is preferred must be able to run here: the solver would take it in any case."""
    ours = ("noarch", conda_requests.subdir(platform))
    return [each for each in packages if each.get("subdir") in ours]
