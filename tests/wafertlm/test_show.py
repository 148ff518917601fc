"""What `wafertlm show` prints is a file to start from."""

import json
from pathlib import Path
from typing import Any

import pytest

from cosim.spec.mesh import load_spec
from tlm.chips.find import AnyChip, all_chip_names, find_chip
from wafertlm.routers import router_names, specification
from workloads.models import find_model, load_model, model_names

_CHIPS = [name for name in all_chip_names() if name != "rtl-RxC"] + ["rtl-4x4"]


@pytest.mark.parametrize("name", _CHIPS)
def test_a_chip_that_is_shown_is_that_chip(wafertlm: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.toml").write_text(wafertlm("show", "chip", name).stdout)
    assert find_chip(str(tmp_path / f"{name}.toml")) == find_chip(name)


@pytest.mark.parametrize("name", model_names())
def test_a_model_that_is_shown_is_that_model(wafertlm: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.toml").write_text(wafertlm("show", "model", name).stdout)
    assert find_model(str(tmp_path / f"{name}.toml")) == load_model(name)


def test_comments_are_shown_and_the_grid_of_the_rtl(wafertlm: Any) -> None:
    shown = wafertlm("show", "chip", "rtl-2x3").stdout
    assert shown.startswith("# The project's own RTL, tile for tile.")
    assert shown.endswith("[grid]\nrows = 2\ncols = 3\n")


def test_the_object_is_what_is_read(wafertlm: Any) -> None:
    result = json.loads(wafertlm("show", "chip", "flat32", "--json").stdout)
    assert result["options"] == {"kind": "chip", "name": "flat32"}
    chip: AnyChip = find_chip("flat32")
    assert result["chip"] == json.loads(chip.model_dump_json())
    assert result["toml"] == wafertlm("show", "chip", "flat32").stdout


def test_a_configuration_is_shown_as_the_file_it_becomes(wafertlm: Any, tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256}
    config = {"model_type": "mistral", "sliding_window": 32} | sizes | heads
    (folder / "config.json").write_text(json.dumps(config))
    assert wafertlm("show", "model", folder / "config.json").stdout == (
        'name = "tiny"\ntitle = "tiny"\nlayers = 2\nhidden = 64\nquery_heads = 4\nkv_heads = 2\n'
        "head_dim = 16\nffn_hidden = 128\nvocabulary = 256\ntied_embeddings = false\n"
        'weights = "bf16"\ndraft_layers = 0\n'
        'source = "config.json of tiny"\n\n[sliding_window]\ntokens = 32\n'
    )


@pytest.mark.parametrize("name", router_names())
def test_a_router_that_is_copied_is_whole(wafertlm: Any, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "own" / "router"
    ran = wafertlm("show", "router", name, "--out", folder)
    assert (ran.status, ran.stderr) == (0, "")
    shipped, [file] = load_spec(specification(name)), folder.glob("*.toml")
    spec = load_spec(file)
    beside = {"rtl": {"sources"}}
    assert spec.model_dump(exclude=beside) == shipped.model_dump(exclude=beside)
    for own, its in zip(spec.source_files(), shipped.source_files(), strict=True):
        assert own.parent == folder
        assert own.read_bytes() == its.read_bytes()
    again = wafertlm("show", "router", name, "--out", folder)
    assert (again.status, again.stdout) == (2, "")
    assert again.stderr.startswith(f"error: --out: {folder}: found a folder with files")


def test_a_router_is_shown_as_its_file(wafertlm: Any) -> None:
    assert wafertlm("show", "router", "mesh").stdout == specification("mesh").read_text()
    result = json.loads(wafertlm("show", "router", "mesh", "--json").stdout)
    assert result["router"]["limits"]["multicast_flits"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "show: write 'show chip NAME' or 'show model NAME' or 'show router NAME'"),
        (("chip",), "show: write 'show chip NAME' or 'show model NAME' or 'show router NAME'"),
        (("core", "own"), "unknown kind 'core'; known: chip, model, router"),
        (("router", "own"), "unknown router 'own'; known: locked-mesh, mask-mesh, mesh"),
        (("chip", "wse2", "--out", "x"), "--out: found it with 'chip'; allowed: with router"),
        (("chip", "moon"), "unknown chip 'moon'; known: a100x1, a100x2"),
        (("model", "gpt"), "unknown model 'gpt'; known: codellama-34b"),
        (("chip", "./moon"), "./moon: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_shown(wafertlm: Any, arguments: tuple[str, ...], message: str) -> None:
    ran = wafertlm("show", *arguments)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {message}")
