"""Kernels whose packets go through Verilog, the project's and custom ones."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from calibration.routers.stored import CustomCalibration, calibration_file
from cosim.spec.mesh import load_spec
from tlm.calibrated import REPOSITORY, load_result, source_hashes
from tlm.interconnect.calibration import rtl_timing
from tlm.interconnect.packets import TileSet
from tlm.interconnect.zero_load import NocTiming
from tlm.sealed import sealed, unsealed
from tlm.trace import TransferSpan
from wafertlm.kernel import Execution, KernelOptions, run_kernel
from workloads.kernels.catalogue import ATTENTION, GEMM, GROUPS, HEADS, KERNELS, LATENT, SUMS

MASK = REPOSITORY / "docs" / "custom_rtl" / "mask_mesh"
#: What `wafertlm calibrate --rtl` finds of the mask mesh.
MASK_TIMING = NocTiming(
    hop_cycles=2,
    ejection_cycles=2,
    fifo_depth=2,
    multicast_gap_cycles=0,
    flit_bytes=8,
    output_depth=2,
    reduce_cycles=3,
    cut_through=False,
    fork="flit-by-flit",
    line=(1, 2, 3, 4, 0, 5),
    lock_on_transfer=True,
    reduce_interval_cycles=3,
    operands_share=True,
    operand_limit=2,
)
Run = Callable[..., dict[str, Any]]
_SENDING_NOTHING = ("rotary", "residual", "gate", "kv-append", "weighted-sum")
_ENDING_WITH_TRANSFERS = (
    *("rows-to-blocks", "blocks-to-rows", "exchange", "hand-over"),
    "row-sum",
)


def shape_of(name: str) -> str:
    """Small blocks."""
    if name.endswith("gemv"):
        return "1,48,36"
    shapes = {
        GEMM: "48,36,24",
        GROUPS: "2,24,36,24",
        HEADS: "24,48,16",
        SUMS: "24,48,4",
        ATTENTION: "1,4,4,24,24,8,8",
        LATENT: "1,4,1,24,48,8,8",
    }
    return shapes.get(KERNELS[name].form, "24,48")


@pytest.fixture
def kernel(wafertlm: Any) -> Run:
    """Runs a kernel of small blocks; its result."""

    def run(name: str, *options: object, grid: str = "4x4", status: int = 0) -> dict[str, Any]:
        sizes = ("--shape", shape_of(name), "--dtype", "int8")
        fixed = ("--chip", "rtl-8x8", "--grid", grid, *sizes)
        ran = wafertlm("kernel", name, *fixed, "--level", "at", *options, "--json")
        assert ran.status == status, ran.stderr
        return json.loads(ran.stdout) if status == 0 else {"stderr": ran.stderr}

    return run


class FlitHops:
    """A recorder that counts how many links the flits of unicasts cross."""

    region = TileSet(range(4), range(4))
    flit_hops = 0

    def operation(self, *_: Any) -> None:
        pass

    def transfer(self, span: TransferSpan) -> None:
        hops = sum(abs(a - b) for a, b in zip(span.source, span.target, strict=True))
        self.flit_hops += span.flits * hops


def calibrated(file: Path, timing: NocTiming, *, longest_flits: int) -> Path:
    """A specification with a calibration, as if it had just been made."""
    spec = load_spec(file)
    found = CustomCalibration(
        sources=source_hashes([spec.file, *spec.source_files()], spec.folder),
        tools={},
        network=asdict(timing),
        packet_flits=64,
        multicast_flits=longest_flits,
        reduction_flits=longest_flits,
        not_represented=[],
        results=[load_result("unicast")],
    )
    calibration_file(spec).write_text(sealed(found))
    return spec.file


@pytest.fixture
def mask_spec(tmp_path: Path) -> Path:
    """The mask mesh."""
    shutil.copytree(MASK, tmp_path / "mask", ignore=shutil.ignore_patterns("*.json"))
    return calibrated(tmp_path / "mask" / "mask_mesh.toml", MASK_TIMING, longest_flits=5)


@pytest.fixture
def project_spec(tmp_path: Path, wafertlm: Any) -> Path:
    """The project's mesh as a custom one."""
    timing = rtl_timing()
    assert wafertlm("show", "router", "mesh", "--out", tmp_path / "mesh").status == 0
    file = tmp_path / "mesh" / "mesh.toml"
    return calibrated(file, timing, longest_flits=timing.fifo_depth)


@pytest.mark.parametrize("name", ["summa", "mesh-gemm-t", "softmax"])
def test_the_projects_mesh_through_its_specification_is_itself(
    kernel: Run, project_spec: Path, name: str
) -> None:
    """Engines and transfers share the banks of its tiles, too."""
    same = ("cycles", "breakdown_cycles", "error")
    found, custom = (kernel(name, "--allow-stale", *more) for more in ((), ("--rtl", project_spec)))
    shares = [ran["error"].pop("rests_on") for ran in (found, custom)]
    assert shares[1]["noc"] == shares[0]["noc"] | {"rtl_hash": custom["provenance"]["rtl_hash"]}
    assert shares[1]["compute"] == shares[0]["compute"]
    assert [found[each] for each in same] == [custom[each] for each in same]


@pytest.mark.rtl
@pytest.mark.parametrize("grid", [pytest.param("3x3", marks=pytest.mark.slow), "4x4"])
@pytest.mark.parametrize("name", KERNELS)
def test_rtl_takes_the_cycles_of_the_model(kernel: Run, name: str, grid: str) -> None:
    modelled, rtl = kernel(name, grid=grid), kernel(name, "--noc", "rtl", grid=grid)
    products = kernel(name, "--compute", "rtl", grid=grid)
    levels = [ran["error"].pop("rests_on") for ran in (modelled, rtl, products)]
    assert [each["noc"]["level"] for each in levels] == ["at", "rtl", "at"]
    assert [each["compute"]["level"] for each in levels] == ["at", "at", "rtl"]
    for figure in ("cycles", "breakdown_cycles", "error"):
        assert rtl[figure] == products[figure] == modelled[figure]
    assert rtl["network"]["mesh"] == f"rtl-mesh {grid}"
    # The last edge of one that sends nothing, or that ends with transfers, comes after its end.
    last = rtl["cycles"] + (name in _SENDING_NOTHING or name in _ENDING_WITH_TRANSFERS)
    assert 0 < rtl["network"]["clocked_cycles"] <= last
    assert rtl["provenance"]["calibration"] == "rtl"


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("name", ["cannon", "mesh-gemm", "exchange", "row-sum"])
def test_custom_routers_take_the_cycles_of_their_model(
    kernel: Run, mask_spec: Path, name: str
) -> None:
    custom = ("--rtl", mask_spec)
    modelled, rtl = kernel(name, *custom, "--noc", "at"), kernel(name, *custom, "--noc", "rtl")
    assert rtl["cycles"] == modelled["cycles"] > kernel(name)["cycles"]
    assert rtl["network"]["mesh"] == "mask-mesh 4x4"
    assert rtl["network"]["rtl_hash"] == rtl["provenance"]["rtl_hash"]
    assert (rtl["provenance"]["calibration"], rtl["options"]["rtl"]) == (
        "mask-mesh",
        "mask_mesh.toml",
    )


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("= out_flit[n][Local]", "= out_flit[n][Local] ^ (FlitWidth'(n == 5) << 40)"),
            "check failed: mask-mesh 4x4: packet 2 ejected at node 5: flit 0 of ",
        ),
        (
            ("= out_valid[n][Local]", "= out_valid[n][Local] && n != 5"),
            "check failed: deadlock: mask-mesh 4x4 stands still since cycle ",
        ),
    ],
    ids=["changes data", "hangs"],
)
def test_a_broken_router_fails_the_check(
    kernel: Run, mask_spec: Path, change: tuple[str, str], message: str
) -> None:
    mesh = mask_spec.parent / "mask_mesh.sv"
    assert mesh.read_text().count(change[0]) == 1
    mesh.write_text(mesh.read_text().replace(*change))
    custom = ("--rtl", mask_spec, "--noc", "rtl", "--allow-stale")
    stderr = kernel("cannon", *custom, status=1)["stderr"]  # what is built is said before
    assert stderr.splitlines()[-1].startswith(message)


def test_a_changed_router_runs_if_stale_is_allowed(kernel: Run, mask_spec: Path) -> None:
    fresh = kernel("cannon", "--rtl", mask_spec)
    router = mask_spec.parent / "mask_router.sv"
    router.write_text(router.read_text() + "// half finished\n")
    refused = kernel("cannon", "--rtl", mask_spec, status=2)
    assert "mask_router.sv changed since it was measured" in refused["stderr"]
    allowed = kernel("cannon", "--rtl", mask_spec, "--allow-stale")
    assert allowed["cycles"] == fresh["cycles"]


def test_maps_count_the_flits_of_the_program_that_ran(mask_spec: Path) -> None:
    """Flits of another width than the chip's: as many cross the links as the run's sends have."""
    calibration = calibration_file(load_spec(mask_spec))
    found = unsealed(calibration.read_text(), CustomCalibration)
    narrow = found.model_copy(update={"network": asdict(replace(MASK_TIMING, flit_bytes=2))})
    calibration.write_text(sealed(narrow))
    sizes = {"grid": "4x4", "shape": shape_of("cannon"), "dtype": "int8", "level": "at"}
    options = KernelOptions(
        kernel="cannon", chip="rtl-8x8", rtl=str(mask_spec), allow_stale=True, **sizes
    )
    hops = FlitHops()
    ran = run_kernel(options, Execution(recorder=hops, links=True))
    crossed = sum(ran.maps[f"link_flits_{to}"].sum() for to in ("north", "east", "south", "west"))
    assert crossed == hops.flit_hops > 0
    assert not any("link" in name for name in run_kernel(options).maps)


def test_a_multicast_that_no_header_can_name(kernel: Run, mask_spec: Path) -> None:
    refused = kernel("summa", "--rtl", mask_spec, grid="3x3", status=2)
    assert refused["stderr"] == (
        "error: mask_mesh.toml: found a kernel with a multicast to rows 0:1, columns 0:3; allowed "
        'with multicast = "dont-care": 1, 2, 4, 8, ... rows and columns that equal row and col but '
        "in the bits of a mask\n"
    )


def test_reductions_that_routers_cannot_make(kernel: Run, mask_spec: Path) -> None:
    refused = kernel("softmax", "--rtl", mask_spec, status=2)
    assert refused["stderr"].startswith(
        "error: mask_mesh.toml: operation: found a kernel that reduces to the maximum; allowed "
        "for kernels: sum\n"
    )
    for level in ((), ("--noc", "rtl")):  # before anything is built
        refused = kernel("mesh-gemm-t", "--rtl", mask_spec, *level, status=2)
        assert refused["stderr"] == (
            "error: mask_mesh.toml: found a reduction of which 3 operands meet in a router; "
            "allowed: 2\n"
        )
    refused = kernel("mesh-gemm-t", "--rtl", mask_spec, grid="3x3", status=2)
    assert refused["stderr"] == (
        "error: mask_mesh.toml: found a kernel with a sum of rows 0:1, columns 0:3 to tile 0,0; "
        'allowed with reduction = "dont-care": 1, 2, 4, 8, ... rows and columns that equal row and '
        'col but in the bits of a mask, the root one of the tiles (reduction_around = "root")\n'
    )


def test_routers_that_combine_all_inputs_are_checked_without_a_mesh(
    kernel: Run, mask_spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mesh of half a million routers took seconds for each kernel of a wafer."""
    made: list[object] = []
    monkeypatch.setattr("wafertlm.custom.HandshakeMesh", lambda *asked: made.append(asked))
    calibration = calibration_file(load_spec(mask_spec))
    found = unsealed(calibration.read_text(), CustomCalibration)
    able = found.model_copy(update={"network": asdict(replace(MASK_TIMING, operand_limit=5))})
    calibration.write_text(sealed(able))
    assert kernel("mesh-gemm-t", "--rtl", mask_spec, "--noc", "lt")["cycles"] > 0
    assert made == []


@pytest.mark.parametrize("level", ["rtl", "at", "lt", "perf"])
def test_a_kernel_that_waits_for_its_own_copy_is_refused_where_there_is_none(
    kernel: Run, mask_spec: Path, level: str
) -> None:
    """It hung at `at`, with a traceback, and `lt` told cycles that it never takes."""
    calibration = calibration_file(load_spec(mask_spec))
    found = unsealed(calibration.read_text(), CustomCalibration)
    silent = found.model_copy(update={"network": asdict(replace(MASK_TIMING, loopback=False))})
    calibration.write_text(sealed(silent))
    refused = kernel("summa", "--rtl", mask_spec, "--noc", level, status=2)
    assert refused["stderr"] == (
        "error: mask_mesh.toml: multicast.loopback: found 0, so that tile 0,0 gets no copy of its "
        "own multicast; the kernel waits for it\n"
    )
    if level in ("at", "lt"):
        assert kernel("mesh-gemm", "--rtl", mask_spec, "--noc", level)["cycles"] > 0


@pytest.mark.parametrize("name", ["mesh-gemm", "cannon", "summa", "ring-gemv", "rms-norm"])
def test_levels_above_know_a_custom_network(kernel: Run, mask_spec: Path, name: str) -> None:
    at, lt, perf = (
        kernel(name, "--rtl", mask_spec, "--noc", level) for level in ("at", "lt", "perf")
    )
    assert lt["cycles"] == pytest.approx(at["cycles"], rel=0.08)  # which knows banks, too
    assert perf["cycles"] == pytest.approx(lt["cycles"], rel=0.04)
    # Nothing above level at was compared with these constants.
    assert lt["error"]["level_pct"] is perf["error"]["level_pct"] is None
    assert perf["provenance"]["calibration"] == "mask-mesh"


def changed(spec_file: Path, old: str, new: str) -> None:
    """Change the mask mesh, whose calibration is then taken to be of what it has become."""
    text = spec_file.read_text()
    assert text.count(old) == 1, old
    spec_file.write_text(text.replace(old, new))
    spec = load_spec(spec_file)
    found = unsealed(calibration_file(spec).read_text(), CustomCalibration)
    sources = source_hashes([spec.file, *spec.source_files()], spec.folder)
    calibration_file(spec).write_text(sealed(found.model_copy(update={"sources": sources})))


@pytest.mark.parametrize("level", ["at", "rtl"])
def test_what_needs_a_sum_is_refused_where_there_is_none(
    kernel: Run, mask_spec: Path, level: str, wafertlm: Any
) -> None:
    changed(mask_spec, "sum = 2", "and = 2")
    refused = kernel("mesh-gemm-t", "--rtl", mask_spec, "--noc", level, status=2)
    assert refused["stderr"] == (
        "error: mask_mesh.toml: operation: found a kernel that reduces to the sum; allowed "
        "for kernels: none\n"
    )
    group = ("--mesh", "4x4", "--group", "row", "--source", "1,0", "--flits", "4")
    reduce = ("noc", "--rtl", mask_spec, "--collective", "reduce", *group, "--level", level)
    ran = wafertlm(*reduce)
    assert (ran.status, ran.stderr) == (
        2,
        "error: mask_mesh.toml: operation: found a packet of kind sum; allowed: and, multicast, "
        "unicast\n",
    )


@pytest.mark.parametrize("level", ["at", "rtl"])
def test_a_kernel_that_needs_all_of_a_payload_is_refused_where_half_is_added(
    kernel: Run, mask_spec: Path, level: str
) -> None:
    changed(mask_spec, "element_bits = 32", "reduced_bits = 32")
    refused = kernel("mesh-gemm-t", "--rtl", mask_spec, "--noc", level, status=2)
    assert refused["stderr"] == (
        "error: mask_mesh.toml: features.reduced_bits: found 32; allowed for a kernel that "
        "reduces: 64, all of a payload\n"
    )


def test_packets_are_as_long_as_they_like_where_no_limit_was_found(
    wafertlm: Any, mask_spec: Path
) -> None:
    traffic = mask_spec.parent / "long.csv"
    lines = ["cycle,source,destinations,flits,kind", "0,0:0,0:2 0:1,200,multicast"]
    traffic.write_text("\n".join(lines))
    command = ("noc", "--rtl", mask_spec, "--mesh", "4x4", "--traffic", traffic)
    ran = wafertlm(*command)
    assert (ran.status, "most 5 flits, found 200" in ran.stderr) == (2, True)
    calibration = calibration_file(load_spec(mask_spec))
    found = unsealed(calibration.read_text(), CustomCalibration)
    free = found.model_copy(update={"no_limit_found": ["multicast_flits", "reduction_flits"]})
    calibration.write_text(sealed(free))
    ran = wafertlm(*command, "--json")
    assert ran.status == 0, ran.stderr
    assert json.loads(ran.stdout)["latency_cycles"]["mean"] >= 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--noc", "rtl", "--grid", "9x9", "--chip", "rtl-9x9"), "--noc rtl goes up to 8x8 tiles"),
        (
            ("--level", "rtl", "--grid", "9x9", "--chip", "rtl-9x9"),
            "--grid: --level rtl goes up to 8x8 tiles, found 9x9",
        ),
        (
            ("--noc", "rtl", "--chip", "wse2", "--dtype", "fp16"),
            "the router of 'wse2' is not in Verilog",
        ),
        (("--waves", "a.vcd"), "--waves: found network at level at; allowed: --noc rtl"),
        (("--rtl", "no.toml"), "no.toml: cannot be read: No such file"),
        (("--noc", "fast"), "--noc: 'fast' does not run kernels"),
        (("--level", "rtl", "--chip", "wse2", "--dtype", "fp16"), "'wse2' are not in Verilog"),
        (("--level", "fast"), "--level: 'fast' does not run kernels"),
    ],
)
def test_options_that_do_not_fit(kernel: Run, options: tuple[str, ...], message: str) -> None:
    assert message in kernel("cannon", *options, status=2)["stderr"]
