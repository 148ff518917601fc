"""Experiments on meshes of routers: one set, for the project's mesh and for anybody's."""
