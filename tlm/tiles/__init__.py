"""The project's own tiles (rtl/tile): how blocks lie in them, what work and transfers cost."""
