"""A matrix product partitioned over a group of tiles that pass blocks around a ring.

C[M,N] = A[M,K] B[K,N] on P tiles in an order. They are R x C cores, core (i, j) being tile
i C + j of it (`PartitionPlan.order`): M and N are cut into R parts, K into C. What each core holds
and sends, in elements:

    partition   R x C    A            B            C            sent
    input       P x 1    M/P, K       all of B     M/P, N       0
    mn          P x 1    M/P, K       K, N/P       M/P, N       (P-1)/P K N
    k           1 x P    M, K/P       K/P, N       M, N         2 (P-1)/P M N
    2d          R x C    M/R, K/C     K/C, N/R     M/R, N       (R-1) K N/(C R) + 2 (C-1)/C M N/R

The others are ends of the last one: in R rounds a core multiplies what it has of B, while B moves
along the column; cores of a row hold partial sums, which they all-reduce. A lies in the cores. So
does B, unless the place has off-chip memory: then a core first loads its part from its channel.

Source: NpuSim (arXiv 2510.05632), section 4.1, figure 3 and table 2. The table's row of the 2-D
partition is at odds with that mechanism; this one is derived from it.
"""

from dataclasses import dataclass

from tlm.compute.base import ceil_div, check_shape
from tlm.errors import choose
from workloads.kernels.gemm.plan import Shape
from workloads.kernels.parts.pieces import Pieces
from workloads.machine.moved import Moved
from workloads.machine.order import Order
from workloads.machine.place import Place

#: What a product is cut by; ``auto`` is the fastest that fits a tile's memory.
PARTITIONS = ("input", "mn", "k", "2d", "auto")


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """A product on the cores of a group, every dimension padded to whole blocks.

    Attributes:
        place: The tiles.
        cores: R and C.
        block: Sizes (m, k, n) of a product of blocks: a core makes C of them in each of R rounds.
        whole_b: Each core has all of B, and there is one round.
        scattered: Sums stay where they come together, each core of a row having one part of them;
            else all cores of a row get all of them.
    """

    place: Place
    cores: tuple[int, int]
    block: tuple[int, int, int]
    whole_b: bool = False
    scattered: bool = False

    @property
    def order(self) -> Order:
        """The tiles, one for each core.

        A ring goes back beside its way there, so every other row of cores runs the other way: the
        cores of a column then lie below each other (NpuSim's public inputs, tiles 0, 1, 8 and 9).
        """
        order, (rows, cols) = self.place.order, self.cores
        if self.place.placement != "ring":
            return order
        lines = (order[row * cols : (row + 1) * cols] for row in range(rows))
        return tuple(tile for row, line in enumerate(lines) for tile in line[:: 1 - 2 * (row % 2)])

    @property
    def rounds(self) -> int:
        """In which a core multiplies a chunk of B."""
        return 1 if self.whole_b else self.cores[0]

    @property
    def parts(self) -> int:
        """Products of a round, each of a part of the columns of a chunk."""
        return self.cores[1]

    @property
    def product_cycles(self) -> int:
        """Cycles of one product of blocks."""
        m, k, n = self.block
        return self.place.matrix.gemm_cycles(m, k, n)

    @property
    def combine_cycles(self) -> int:
        """Cycles of the vector engine to add one part of the sums to another."""
        m, _, n = self.block
        return self.place.vector.pass_cycles(m, n)

    @property
    def b_flits(self) -> int:
        """Flits of a part of a chunk of B."""
        _, k, n = self.block
        return self.place.flits(k, n, self.place.element_bits)

    @property
    def c_flits(self) -> int:
        """Flits of a part of the sums."""
        m, _, n = self.block
        return self.place.flits(m, n, self.place.sum_bits)

    @property
    def sums_sent(self) -> int:
        """Parts of sums that a core sends."""
        return self.rounds * (self.parts - 1) * (1 if self.scattered else 2)

    @property
    def sent_elements(self) -> int:
        """Elements that a core sends: exactly the forms above where blocks need no padding."""
        m, k, n = self.block
        return (self.rounds - 1) * self.parts * k * n + self.sums_sent * m * n

    @property
    def sent_bytes(self) -> int:
        """Bytes that a core sends, in whole flits."""
        flits = (self.rounds - 1) * self.parts * self.b_flits + self.sums_sent * self.c_flits
        return flits * self.place.timing.flit_bytes

    @property
    def tile_bytes(self) -> int:
        """Memory of a tile that the program takes."""
        m, k, n = self.block
        element_bits, sum_bits = self.place.element_bits, self.place.sum_bits
        chunks = min(2, self.rounds) * self.parts
        received = 2 if self.parts > 1 else 0
        return (
            ceil_div(m * k * element_bits, 8)
            + chunks * ceil_div(k * n * element_bits, 8)
            + (self.rounds * self.parts + received) * ceil_div(m * n * sum_bits, 8)
        )

    @property
    def loaded_flits(self) -> int:
        """Flits of B that a core loads from off-chip memory, if it does not lie in the tiles."""
        return 0 if self.place.offchip is None else self.parts * self.b_flits

    @property
    def moved(self) -> Moved:
        """Bytes that the program moves."""
        tiles = len(self.order)
        read = tiles * self.loaded_flits * self.place.timing.flit_bytes
        return Moved(read=read, delivered=read + tiles * self.sent_bytes)

    @property
    def balance(self) -> float:
        """Cycles of a core's products over the flits that it sends and loads."""
        flits = self.sent_bytes // self.place.timing.flit_bytes + self.loaded_flits
        return self.tile_matrix_cycles / max(1, flits)

    @property
    def tile_macs(self) -> int:
        """Multiply-accumulates of a tile, those of padding among them."""
        m, k, n = self.block
        return m * k * n * self.rounds * self.parts

    @property
    def tile_matrix_cycles(self) -> int:
        """Cycles of a tile's products."""
        return self.product_cycles * self.rounds * self.parts

    @property
    def tile_vector_cycles(self) -> int:
        """Additions run beside products and transfers: they are not counted here."""
        return 0

    @property
    def pieces(self) -> Pieces:
        """The cores share the product; each goes through the parts of its chunks of B."""
        m, k, n = self.block
        blocks = {"m": 1, "n": self.rounds * self.parts, "k": 1}
        return Pieces(self.cores, {"m": m, "n": n, "k": k}, blocks)


def plan_partition(
    shape: Shape,
    place: Place,
    partition: str,
    cores: tuple[int, int],
    *,
    scattered: bool = False,
) -> PartitionPlan:
    """Cut a product ``shape`` = (M, N, K) for R x C cores.

    Raises:
        InputError: for a size below 1.
    """
    size_m, size_n, size_k = shape
    check_shape(size_m, size_k, size_n)
    whole_b = partition == "input"
    n = size_n if whole_b else ceil_div(size_n, place.rows * place.cols)
    if place.whole_lines and cores[1] > 1:  # rows of sums are whole words there
        word = max(1, 8 * place.timing.flit_bytes // place.sum_bits)
        n = ceil_div(n, word) * word
    block = ceil_div(size_m, cores[0]), ceil_div(size_k, cores[1]), n
    return PartitionPlan(place, cores, block, whole_b, scattered)


def cores_of(partition: str, place: Place) -> list[tuple[int, int]]:
    """The R x C that a partition may have on some tiles; a mesh has its own rows and columns.

    Raises:
        InputError: for an unknown partition.
    """
    choose("partition", partition, PARTITIONS[:-1])
    tiles = place.rows * place.cols
    if partition == "2d":
        if place.placement == "mesh" and min(place.rows, place.cols) > 1:
            return [(place.rows, place.cols)]
        return [(rows, tiles // rows) for rows in range(2, tiles) if tiles % rows == 0]
    return [(1, tiles) if partition == "k" else (tiles, 1)]
