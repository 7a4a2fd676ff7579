"""What `--from` names."""

import pytest

from holdfast.errors import UsageError
from holdfast.project.earlier_wish import typed_earlier


@pytest.mark.parametrize(
    ("word", "run", "path"),
    [
        ("last", "last", ""),
        ("iris_1:.", "iris_1", ""),
        ("iris_1:./out/ckpt.pt", "iris_1", "out/ckpt.pt"),
        ("iris_1:out/", "iris_1", "out"),
        ("iris_1:a:b", "iris_1", "a:b"),
    ],
)
def test_from_names_a_run_and_perhaps_a_path(word, run, path):
    wish = typed_earlier(word)
    assert (wish.run, wish.path) == (run, path)


@pytest.mark.parametrize("word", ["", ":x", "a:", "a:/etc/passwd", "a:../x", "a:x/../../y", "a:x//y", "a:.git/config"])
def test_a_path_outside_the_project_is_refused(word):
    with pytest.raises(UsageError):
        typed_earlier(word)
