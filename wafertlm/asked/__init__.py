"""What commands may be asked for: a record of options each, and the names that they may take.

Nothing here loads the models before it is needed, so that help comes at once.
"""
