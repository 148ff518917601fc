"""Tiles whose engines and network interfaces share banks, among SimPy processes."""

from collections.abc import Sequence
from dataclasses import dataclass

from simpy import Event

from tlm.errors import InputError
from tlm.interconnect.base import EventKind
from tlm.interconnect.simpy_network import SimpyNetwork
from tlm.lockstep import Moment, SteppedEnvironment
from tlm.offchip.node import Gate
from tlm.program import Program
from tlm.program.data import Gemm, Task
from tlm.program.operations import Tile
from tlm.program.steps import OffChipStep, TransferStep, WorkStep
from tlm.tiles.banked import Rows
from tlm.tiles.interconnect import TiledInterconnect
from tlm.tiles.jobs import Job, MatrixJob, matrix_jobs, vector_job
from tlm.tiles.layout import WORD_BITS, place_buffers, used_words


@dataclass(frozen=True, slots=True)
class _Gate:
    """A channel's node at its router (`Gate`)."""

    mesh: TiledInterconnect
    node: int

    def let_take(self, flits: int) -> None:
        """Have the node take so many flits, then none."""
        self.mesh.let_take(self.node, flits)

    def let_load(self, lets: bool) -> None:
        """Have the node take requests for loads, too, or leave them in the router."""
        self.mesh.let_load(self.node, lets)

    def sends_last(self) -> bool:
        """Whether the node has nothing to send after the cycle that begins now."""
        return self.mesh.sends_last(self.node)


class SharedTiles:
    """Jobs and transfers of a program's steps in the tiles of a mesh.

    Args:
        env: The clock.
        mesh: Mesh and tiles.
        network: The same mesh among SimPy processes.
        program: The program.
        edge_rows: Rows without tiles that its off-chip memory needs; 0 if that does not count.

    Raises:
        InputError: for buffers that the tiles cannot hold, or if the mesh has more or fewer rows
            without tiles.
    """

    def __init__(
        self,
        env: SteppedEnvironment,
        mesh: TiledInterconnect,
        network: SimpyNetwork,
        program: Program,
        *,
        edge_rows: int,
    ) -> None:
        if mesh.edge_rows != edge_rows:
            raise InputError(
                f"edge_rows: found {mesh.edge_rows}; allowed {'with' if edge_rows else 'without'} "
                f"off-chip memory: {edge_rows}"
            )
        self._env = env
        self._mesh = mesh
        self._network = network
        self._size = mesh.tile.array_size
        bits, tile = WORD_BITS // self._size, mesh.tile
        self._places = place_buffers(program, bits, tile.banks, tile.words)
        self._spare = used_words(self._places)  # of transfers without a block
        self._requests: dict[Tile, dict[tuple[str, bool, int], int]] = {}
        self._known_jobs: dict[Task, Sequence[Job]] = {}

    def jobs(self, step: WorkStep) -> Sequence[Job]:
        """The jobs of a step, one after the other; none of work without a task."""
        task = step.operation.task
        if task is None:
            return ()
        if task not in self._known_jobs:
            self._known_jobs[task] = (
                matrix_jobs(task, self._places, self._size)
                if isinstance(task, Gemm)
                else [vector_job(task, self._places)]
            )
        return self._known_jobs[task]

    def begin(self, node: int, job: Job) -> Event:
        """Start a job; what happens when it has ended."""
        self._mesh.begin(self._env.now, node, job)
        kind = EventKind.MATRIX if isinstance(job, MatrixJob) else EventKind.VECTOR
        return self._awaited(kind, node)

    def transfers(self, step: TransferStep) -> list[tuple[Rows, Rows | None]]:
        """Words that a step sends, and where to, transfer by transfer.

        A load is a request, a word; a store its block, and a request. A load's goes to no words.
        """
        operation = step.operation
        source, target = operation.source, operation.target
        rows, words = (1, step.flits) if source is None else self._places[source].sent
        if not isinstance(step, OffChipStep):
            return [(self._rows(source, rows, words), self._rows(target, rows, words))]
        request = Rows(self._request(step), 1, 1, 0)
        if step.operation.loads:
            return [(request, None)]
        block = self._rows(source, 1, rows * words)
        return [(block, block), (request, request)]

    def read(self, node: int, words: tuple[Rows, Rows | None]) -> Event:
        """Start a transfer, which is sent next; what happens when its words have been read."""
        self._mesh.begin_reading(self._env.now, node, *words)
        return self._awaited(EventKind.READ, node)

    def answer_address(self, step: OffChipStep) -> int:
        """Word of a tile from which on memory's answer to a transfer is written."""
        operation = step.operation
        if operation.loads and operation.target is not None:
            return self._places[operation.target].address
        return self._request(step)  # which comes back as it was

    def begin_answer(self, node: int, address: int, words: int) -> None:
        """Say where in a tile a packet is written that a channel's node sends next."""
        self._mesh.begin_answer(self._env.now, node, Rows(address, 1, words, 0))

    def gate(self, node: int) -> Gate:
        """A channel's node at its router."""
        return _Gate(self._mesh, node)

    def _request(self, step: OffChipStep) -> int:
        """Address of a request's word; they stand at the end of the scratchpad."""
        operation = step.operation
        known = self._requests.setdefault(step.tile, {})
        key = (operation.block or "", operation.loads, step.flits)
        # A scratchpad has as many words in each bank, so that counting from its end needs no size.
        return -1 - known.setdefault(key, len(known))

    def _rows(self, name: str | None, rows: int, words: int) -> Rows:
        if name is None:
            return Rows(self._spare, 1, words * rows, 0)
        return Rows(self._places[name].address, rows, words, self._places[name].row_words)

    def _awaited(self, kind: EventKind, node: int) -> Event:
        moment = Moment()
        self._network.expect(kind, node, moment.happen)
        return moment
