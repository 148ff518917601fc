"""The report: stored results as one self-contained HTML page."""
