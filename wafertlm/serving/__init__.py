"""Serving of language models' requests."""

from wafertlm.asked.serve import ServeOptions
from wafertlm.serving.run import Execution, complete_serve, serve_result

__all__ = ["Execution", "ServeOptions", "complete_serve", "serve_result"]
