"""What `python -m wafertlm` runs: the command."""

from wafertlm.cli import main

main()
