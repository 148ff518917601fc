"""What ``wafertlm calibrate`` prints of parameters."""

from typing import Any

from rich.console import Console

from wafertlm.commands.calibrate import render


def experiment(name: str, status: str) -> dict[str, Any]:
    situation = {"name": "crowds", "fit": 2, "check": 2, "status": status}
    return {
        "name": name, "subject": "deliveries", "fit_points": 2, "check_points": 2,
        "mean_abs_error_pct": 3.0, "max_abs_error_pct": 17.0, "worst_case": "a crowd",
        "situations": [situation | {"max_abs_error_pct": 17.0}],
        "parameters": {"arbiter": {"value": 1.0, "unit": "fixed", "ci95": [1.0, 1.0]}},
    }  # fmt: skip


def test_a_parameter_of_what_is_not_represented_is_not_called_exact() -> None:
    console = Console(width=200)
    made = [
        experiment("contention", "not represented"),
        experiment("unicast", "identified and checked"),
    ]
    with console.capture() as capture:
        console.print(render({"experiments": made, "levels": []}))
    lines = [line for line in capture.get().splitlines() if ".arbiter" in line]
    found = {line.split("│")[1].strip(): line.split("│")[3].strip() for line in lines}
    assert found == {"contention.arbiter": "nearest found", "unicast.arbiter": "exact"}
