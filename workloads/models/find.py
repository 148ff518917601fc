"""Models as a user names them: shipped ones, and files."""

from pathlib import Path

from tlm.files import names_file, read_text
from tlm.tables import toml_fields
from workloads.models.hugging_face import read_config
from workloads.models.model import Model, load_model, model_names, model_text


def find_model(asked: str) -> Model:
    """A model by its name, or of a file.

    Args:
        asked: What ends in ``.toml`` or ``.json`` or has a path separator is a file, else a shipped
            name. JSON is in Hugging Face's format; all else is TOML.

    Raises:
        InputError: for a name that is not known, and for a fault in the file.
    """
    if not names_file(asked):
        return load_model(asked)
    path = Path(asked)
    if path.suffix == ".json":
        return read_config(path, asked)
    return Model.made({"name": path.stem} | toml_fields(path, asked), asked)


def shipped_as(model: Model) -> str | None:
    """Name of the shipped model with the same figures; None if there is none."""
    return next((name for name in model_names() if load_model(name).same_figures(model)), None)


def text_of(asked: str) -> str:
    """The file of a model, or the one to start from; JSON as the TOML that it becomes.

    Raises:
        InputError: for a name that is not known, and for a fault in the file.
    """
    if not names_file(asked):
        return model_text(asked)
    if not asked.endswith(".json"):
        return read_text(Path(asked), asked)
    import tomli_w  # here alone

    return tomli_w.dumps(find_model(asked).model_dump(exclude_none=True))
