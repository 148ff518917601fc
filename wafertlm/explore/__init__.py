"""Explorations: many runs of a command, each chosen by what others found, kept in a database."""
