"""The FlatAttention study: figures 1a, 7, 8, 9, 11, 12 and appendix D, on the tiles of a chip."""
