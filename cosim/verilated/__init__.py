"""Verilated models: the tools, the folder of what is built, the handle on what runs."""
