"""A DRAM channel at the level of commands.

What an outsider looks for:

- ``standard``: constraints as JEDEC names them; ``devices``; ``address_map``;
- ``controllers``: a file each;
- ``channel``: run a stream of requests; ``interleaved``: several channels;
- ``target``: a channel among SimPy processes;
- ``traffic``: streams; ``calibration``: our own channel as measured.

The compiled core stands on ``state``. ``banks`` gives commands, ``queues`` holds requests that
wait, ``ports`` takes requests and gives answers. ``clock`` goes from one tick in which something
may happen to the next. What runs once a tick or a request is inlined: a call passes an array as
seven numbers. The rows of constraints are written out in ``banks``: to be driven by a list of them
cost 2 to 5 %.
"""
