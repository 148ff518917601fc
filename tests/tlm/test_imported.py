"""Which files a module is made of."""

from pathlib import Path

from tlm.imported import imported_files

_FILES = {
    "a/__init__.py": "",
    "a/one.py": "import os\nfrom a import two\nfrom b.three import (\n    Three,\n    four,\n)\n",
    "a/two.py": "def late():\n    import b.five, json\n",
    "a/alone.py": "",
    "b/__init__.py": "from a.one import x\n",
    "b/three.py": "",
    "b/four.py": "",
    "b/five.py": "",
}


def test_imports_are_followed_in_whatever_form_they_are(tmp_path: Path) -> None:
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = [path.relative_to(tmp_path).as_posix() for path in imported_files(["a.one"], tmp_path)]
    assert found == ["a/__init__.py", "a/one.py", "a/two.py", "b/__init__.py", "b/five.py",
                     "b/three.py"]  # fmt: skip
