"""Stored figures that somebody has changed are told apart from those that were stored."""

import json

import pytest

from tlm.calibrated import Parameter
from tlm.sealed import sealed, unsealed

_HOP = Parameter(value=1, unit="cycles", ci95=(1, 1))


def test_what_is_sealed_is_read_whatever_its_form() -> None:
    text = sealed(_HOP)
    assert unsealed(text, Parameter) == _HOP
    assert unsealed(json.dumps(json.loads(text)), Parameter) == _HOP
    assert list(json.loads(text)) == ["value", "unit", "ci95", "digest"]


@pytest.mark.parametrize(("field", "other"), [("value", 7), ("unit", "flits"), ("ci95", (1, 2))])
def test_a_changed_field_breaks_the_seal(field: str, other: object) -> None:
    fields = json.loads(sealed(_HOP)) | {field: other}
    with pytest.raises(ValueError, match="digest: found '.*', but the content has '.*': it is not"):
        unsealed(json.dumps(fields), Parameter)


def test_figures_without_a_seal_are_not_taken() -> None:
    with pytest.raises(ValueError, match="digest: found none, but the content has"):
        unsealed(_HOP.model_dump_json(), Parameter)
    with pytest.raises(ValueError, match="Input should be an object"):
        unsealed("[]", Parameter)
    with pytest.raises(ValueError, match="Invalid JSON: "):
        unsealed("{", Parameter)
