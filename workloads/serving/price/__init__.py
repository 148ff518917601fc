"""What an iteration costs: time, energy and bytes."""
