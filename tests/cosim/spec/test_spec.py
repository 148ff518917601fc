"""Specifications: what is read, and the exact message for each mistake."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cosim.spec.data import DataLaw
from cosim.spec.mesh import MeshSpec, load_spec
from tlm.errors import InputError

Changed = Callable[..., MeshSpec]

VALUES = "values = { unicast = 0, multicast = 4, sum = 2, maximum = 3 }"
REDUCTION = '[features]\nmulticast = "bitmask"\nreduction = "bitmask"'
REDUCTIONS = ("sum", "maximum", "and", "select", "collect")
BY_MASK = '[features]\nmulticast = "bitmask"\nreduction = "dont-care"'


def test_what_is_read(mesh_spec: MeshSpec) -> None:
    assert mesh_spec.sizes() == [(4, 4), (5, 5)]
    assert mesh_spec.operations() == {"unicast": 0, "multicast": 4, "sum": 2, "maximum": 3}
    assert mesh_spec.reset.cycles == 5
    assert mesh_spec.limits.packet_flits is None
    assert all(path.is_file() for path in mesh_spec.source_files())


def test_a_specification_is_a_key(mesh_spec: MeshSpec, changed_mesh: Changed) -> None:
    assert {mesh_spec: 1}[load_spec(mesh_spec.file)] == 1
    assert changed_mesh(("FifoDepth = 4", "FifoDepth = 2")) != mesh_spec


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('top = "mesh"', "", "rtl.top: found nothing; this key is needed"),
        ('top = "mesh"', "top = 3", "rtl.top: found 3; Input should be a valid string"),
        ("[clock]", '[clock]\nedge = "rising"', "clock: found key 'edge'; allowed: port"),
        (
            'name = "custom-mesh"',
            'name = "custom-mesh"\nsize = 4',
            "found key 'size'; allowed: name, rtl, mesh, clock, reset, ports, flit, features, "
            "limits",
        ),
        (
            'active = "low"',
            'active = "0"',
            "reset.active: found '0'; Input should be 'low' or 'high'",
        ),
        ('fit = "4x4"', 'fit = "big"', "mesh.fit: found 'big'; allowed: ROWSxCOLS, 1 to 64 each"),
        ('fit = "4x4"', 'fit = "3x3"', "mesh: fit: found 3x3; allowed: 3x4 and larger"),
        ('check = ["5x5"]', 'check = ["3x3"]', "mesh: check: found 3x3; allowed: 3x4 and larger"),
        (
            'check = ["5x5"]',
            'check = ["5x5", "3x4", "5x5"]',
            "mesh: check: found 5x5 again; allowed: a size once, and not the fit's",
        ),
        (
            'check = ["5x5"]',
            'check = ["4x4"]',
            "mesh: check: found 4x4 again; allowed: a size once, and not the fit's",
        ),
        (
            'active = "low"',
            'active = "low"\ncycles = 10001',
            "reset.cycles: found 10001; Input should be less than or equal to 10000",
        ),
        (
            'bits = "rows"',
            f'bits = "rows"\n[[flit]]\nfield = "constant"\nbits = 80\nvalue = {2**64}',
            f"flit.5.value: found {2**64}; Input should be less than {2**64}",
        ),
        (
            VALUES,
            f"values = {{ unicast = {2**63} }}",
            f"flit.6.values.unicast: found {2**63}; Input should be less than {2**63}",
        ),
        (
            'rows_parameter = "Rows"',
            "",
            "mesh: found one of rows_parameter and cols_parameter; allowed: both or neither",
        ),
        (
            'rows_parameter = "Rows"\ncols_parameter = "Cols"',
            "",
            "mesh: check: found sizes; allowed: [] without rows_parameter and cols_parameter",
        ),
        ("bits = 64", "bits = 32", "flit.0: payload: found bits = 32; allowed: 64 and more"),
        (
            'bits = "row_index"',
            'bits = "row"',
            "flit.2.bits: found 'row'; allowed: 1 to 4096, or rows, cols, row_index, col_index, "
            "flit_count",
        ),
        (
            'bits = "row_index"',
            "bits = 2",
            "flit: row: found 2 bits; allowed on 5x5: 3 and more",
        ),
        ('field = "length"', 'field = "row"', "flit: found field 'row' 2 times; allowed: once"),
        (
            'field = "length"',
            'field = "constant"',
            "flit.5: constant: value belongs to 'constant', which needs it",
        ),
        (
            VALUES,
            "values = { unicast = 0, multicast = 4 }",
            "flit: operation: found values for multicast, unicast; allowed by [features]: "
            "multicast, unicast and some of and, collect, maximum, select, sum",
        ),
        (
            VALUES,
            "values = { unicast = 0, multicast = 8, sum = 1 }",
            "flit: operation: found code 8; allowed: below 8",
        ),
        (
            VALUES,
            "values = { unicast = 0, multicast = 1, sum = 1 }",
            "flit.6: operation: found values = {'unicast': 0, 'multicast': 1, 'sum': 1}; "
            "allowed: a code once",
        ),
        (
            REDUCTION,
            f"{BY_MASK}\nreduction_around = 'source'",
            "flit: found no field 'source_col'; allowed: one, by [features]",
        ),
        (
            REDUCTION,
            f"{REDUCTION}\nreduction_around = 'source'",
            "features: reduction_around: found it; allowed: only with reduction = 'dont-care'",
        ),
        (
            REDUCTION,
            f"{REDUCTION}\nelement_bits = 16",
            "features: element_bits: found 16; allowed with maximum: 32 and 64",
        ),
        (
            VALUES,
            "values = { unicast = 0, multicast = 4, xor = 2 }",
            "flit.6.values.xor.[key]: found 'xor'; Input should be 'unicast', 'multicast', 'sum', "
            "'maximum', 'and', 'select' or 'collect'",
        ),
        (
            REDUCTION,
            f"{REDUCTION}\nreduced_bits = 24",
            "features: reduced_bits: found 24; allowed: 32 to 64, whole elements of 32",
        ),
        (
            REDUCTION,
            f"{REDUCTION}\nreduced_bits = 48",
            "features: reduced_bits: found 48; allowed: 32 to 64, whole elements of 32",
        ),
        (
            'inject_valid = "inject_valid_i"',
            'inject_valid = "eject_valid_o"',
            "ports: found 'eject_valid_o' twice; allowed: a port once",
        ),
        (
            "FifoDepth = 4 }",
            "FifoDepth = 4, Rows = 4 }",
            "rtl.parameters: found 'Rows'; allowed: others than rows and columns",
        ),
        (
            'multicast_flits = "FifoDepth"',
            'multicast_flits = "Depth"',
            "limits.multicast_flits: found 'Depth'; allowed: 1 and more, or of rtl.parameters: "
            "FifoDepth",
        ),
        (
            "FifoDepth = 4 }",
            "FifoDepth = 0 }",
            "limits.multicast_flits: found FifoDepth = 0; allowed: 1 and more",
        ),
        (
            'multicast_flits = "FifoDepth"',
            'multicast_flit = "FifoDepth"',
            "limits: found key 'multicast_flit'; allowed: packet_flits, multicast_flits, "
            "reduction_flits, reduction_operands",
        ),
        (
            'reduction_flits = "FifoDepth"',
            'reduction_operands = "FifoDepth"',
            "limits.reduction_operands: found 'FifoDepth'; Input should be a valid integer",
        ),
    ],
)  # fmt: skip
def test_mistakes(changed_mesh: Changed, tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        changed_mesh((old, new))
    assert str(caught.value) == f"{tmp_path / 'spec.toml'}: {message}"


@pytest.mark.parametrize("names", [("and",), ("select", "collect"), ("sum", "and"), REDUCTIONS])
def test_a_network_may_have_some_reductions(changed_mesh: Changed, names: Sequence[str]) -> None:
    codes = ", ".join(f"{name} = {code}" for code, name in enumerate(names, 1))
    spec = changed_mesh((VALUES, f"values = {{ unicast = 0, {codes}, multicast = 7 }}"))
    assert spec.reductions() == [name for name in REDUCTIONS if name in names]


def test_bits_that_reductions_combine(changed_mesh: Changed, mesh_spec: MeshSpec) -> None:
    assert (mesh_spec.payload_bits, mesh_spec.reduced_bits) == (64, 64)
    assert mesh_spec.data_law == DataLaw(32, 64)
    values = VALUES.replace("sum = 2, maximum = 3", "and = 2")
    narrow = changed_mesh((VALUES, values), (REDUCTION, f"{REDUCTION}\nreduced_bits = 45"))
    assert (narrow.reduced_bits, narrow.data_law) == (45, DataLaw(32, 45))
    wide = changed_mesh(
        (REDUCTION, f"{REDUCTION}\nreduced_bits = 96"),
        ('field = "payload"\nbits = 64', 'field = "payload"\nbits = 128'),
    )
    assert (wide.payload_bits, wide.reduced_bits, wide.data_law) == (128, 96, DataLaw(32, 64))
    with pytest.raises(InputError) as caught:
        changed_mesh(
            (VALUES, "values = { unicast = 0, multicast = 4 }"),
            (REDUCTION, '[features]\nmulticast = "bitmask"\nreduced_bits = 32'),
        )
    assert str(caught.value).endswith(
        "/spec.toml: features: reduced_bits: found it; allowed: only with reduction"
    )


def test_files_that_are_not_there(changed_mesh: Changed, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"/spec.toml: rtl.sources: found no .*/noc/mash.sv; allow"
    ):
        changed_mesh(("noc/mesh.sv", "noc/mash.sv"))
    with pytest.raises(InputError, match=r"/spec.toml: rtl.include_folders: found no .*/headers;"):
        changed_mesh(("parameters = {", 'include_folders = ["headers"]\nparameters = {'))
    with pytest.raises(InputError, match=r"none.toml: cannot be read: No such file or directory"):
        load_spec(tmp_path / "none.toml")


def test_what_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("name = ")
    with pytest.raises(InputError, match=r"bad.toml: not TOML: Invalid value"):
        load_spec(path)


def test_sizes_that_cannot_be_built(mesh_spec: MeshSpec, toy_spec: MeshSpec) -> None:
    mesh_spec.check_size(2, 8)
    with pytest.raises(InputError) as caught:
        toy_spec.check_size(4, 4)
    assert str(caught.value) == (
        "toy.toml: mesh: found size 4x4; allowed without rows_parameter: 3x4"
    )


def test_a_parameter_says_the_depth_for_limits_and_header(changed_mesh: Changed) -> None:
    deep = changed_mesh(("FifoDepth = 4", "FifoDepth = 8"))
    assert (deep.limits.multicast_flits, deep.limits.reduction_flits) == (8, 8)
    assert deep.field("length").bits == 4  # 8 as well
    numbers = changed_mesh(
        ('multicast_flits = "FifoDepth"', "multicast_flits = 3"),
        ('reduction_flits = "FifoDepth"', "reduction_flits = 2"),
    )
    assert numbers.field("length").bits == 2
