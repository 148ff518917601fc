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


_STATEMENTS = """
try:
    import a.tried
except ImportError:
    import a.caught
else:
    import a.fine
finally:
    import a.last
for _ in ():
    while True:
        import a.looped
else:
    import a.through
match 1:
    case 1:
        with open("x"):
            import a.matched
class C:
    async def f(self):
        if True:
            pass
        else:
            from a import other
"""


def test_imports_within_any_statement_are_seen(tmp_path: Path) -> None:
    names = ["tried", "caught", "fine", "last", "looped", "through", "matched", "other"]
    (tmp_path / "a").mkdir()
    (tmp_path / "b.py").write_text(_STATEMENTS)
    for name in (*names, "nobody"):
        (tmp_path / "a" / f"{name}.py").touch()
    found = {path.stem for path in imported_files(["b"], tmp_path)}
    assert found == {"b", *names}


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.py").write_text("import b\n")
    assert [path.stem for path in imported_files(["a"], tmp_path)] == ["a", "b"]
    (tmp_path / "a.py").write_text("import c\n")
    assert [path.stem for path in imported_files(["a"], tmp_path)] == ["a", "b", "c"]
