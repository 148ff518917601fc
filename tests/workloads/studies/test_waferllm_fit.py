"""The fit of wse2: what is stored is what the profile holds, and what fitting again gives."""

import pytest

from tlm.chips.profile import chip_fields
from tlm.sealed import sealed, unsealed
from workloads.studies.waferllm.fit import FIT_FILE, FREE, Fit, fit, fitted_rows


def stored() -> Fit:
    return unsealed(FIT_FILE.read_text(encoding="utf-8"), Fit)


def test_the_profile_holds_the_fitted_figures() -> None:
    fields = chip_fields("wse2")
    for figure, found in zip(FREE, stored().parameters, strict=True):
        *tables, name = figure.field.split(".")
        table = fields
        for each in tables:
            table = table[each]
        assert table[name] == found.value, figure.field
        assert "fit.json" in fields["sources"][figure.field]
        assert found.ci95[0] <= found.value <= found.ci95[1]


def test_rows_of_llama3_8b_alone_are_fitted() -> None:
    rows = fitted_rows()
    assert len(rows) == 12
    assert all("/LLaMA3-8B/" in row.name for row in rows)
    assert sum(row.name.endswith("T10_decode") for row in rows) == 3


def test_published_rates_are_within_what_the_rows_say_of_them() -> None:
    fields = chip_fields("wse2")
    held = fields["tile"]["matrix"]["cycles_per_mac"], fields["software"]["element_cycles"]
    for rate, freed in zip(held, stored().freed, strict=True):
        assert freed.ci95[0] <= rate <= freed.ci95[1], freed.field


def test_errors_are_those_wanted_of_fitted_rows() -> None:
    wanted = {"prefill": 3.0, "decode": 2.5, "end_to_end": 7.0, "T10_decode": 6.0}
    for row in stored().rows:
        assert abs(row.error_pct) <= wanted[row.id.split("/")[-1]], row.id


@pytest.mark.slow
def test_fitting_again_gives_the_same_bytes() -> None:
    assert sealed(fit()) == FIT_FILE.read_text(encoding="utf-8")
