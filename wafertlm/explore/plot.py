"""An exploration as a picture of its own: its trials by their objectives, the best among them."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from tlm.plotting import STYLE, save
from wafertlm.output import Result
from wafertlm.report.records import Exploration
from wafertlm.report.trials import draw_trials, label_trials, objective_pairs


def plot_exploration(result: Result, path: Path) -> None:
    """Draw a result of ``wafertlm explore``.

    With one objective its figure over the trials, with more a panel for each pair.

    Args:
        result: The command's object.
        path: A file that ends in .pdf, .svg or .png.

    Raises:
        InputError: if the file cannot be written.
    """
    run = Exploration.model_validate(result)
    pairs = objective_pairs(run)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.5 * len(pairs), 3.4))
        panels = figure.subplots(1, len(pairs), squeeze=False)[0]
        for axes, pair in zip(panels, pairs, strict=True):
            draw_trials(axes, run, pair)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2 * len(pairs))
        # Where labels stand depends on how wide the axes are beside the legend.
        for axes, pair in zip(panels, pairs, strict=True):
            label_trials(axes, run, pair)
        save(figure, path)
