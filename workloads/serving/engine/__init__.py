"""Requests on their way: admitted, computed, preempted, finished."""
