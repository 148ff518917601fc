"""What `wafertlm show` prints is a file to start from."""

import json
from pathlib import Path
from typing import Any

import pytest

from cosim.spec.mesh import load_spec
from tlm.chips.find import AnyChip, all_chip_names, find_chip
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


def test_a_router_is_copied_with_its_verilog(wafertlm: Any, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "mine"
    assert wafertlm("show", "router", "mask_mesh", "--into", folder).status == 0
    assert load_spec(folder / "mask_mesh.toml").name == "mask-mesh"
    shown = json.loads(wafertlm("show", "router", "mask_mesh", "--json").stdout)
    assert shown["router"]["files"] == sorted(path.name for path in folder.iterdir())
    assert shown["toml"] == (folder / "mask_mesh.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "show: write 'show chip NAME' or 'show model NAME'; see --list for names"),
        (("chip",), "show: write 'show chip NAME' or 'show model NAME'; see --list for names"),
        (("wafer", "own"), "unknown kind 'wafer'; known: chip, model, router"),
        (("router", "own"), "unknown router 'own'; known: locked_mesh, mask_mesh"),
        (
            ("chip", "flat32", "--into", "x"),
            "--into: found with a chip, which is one file; allowed: with a router",
        ),
        (("router", "mask_mesh", "--into", "/"), "--into: /: File exists; allowed: a new folder"),
        (("chip", "moon"), "unknown chip 'moon'; known: a100x1, a100x2"),
        (("model", "gpt"), "unknown model 'gpt'; known: codellama-34b"),
        (("chip", "./moon"), "./moon: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_shown(wafertlm: Any, arguments: tuple[str, ...], message: str) -> None:
    ran = wafertlm("show", *arguments)
    assert (ran.status, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {message}")
