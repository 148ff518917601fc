"""Layered prefill for mixture-of-experts models (Lee et al.): the paper's tables, and other chips.

Numbers of tables and sections are the paper's.
"""
