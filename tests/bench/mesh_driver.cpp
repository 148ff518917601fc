// Drives a Verilated rtl/noc/mesh.sv as fast as it goes: offers packets at every node, takes all
// that comes out, counts it, and stops when everything has come. Nothing is checked or recorded.
//
// Arguments: the file of packets, the deliveries to wait for, the cycle after which to give up.
// The file holds, for each packet in the order of numbers, kPacketWords little-endian words of 32
// bits: cycle, source, flits, and the head flit's bits without `last`. Bits 32 to 63 of the payload
// become the flit's number. Prints one line: deliveries, cycle of the last ejection, CPU seconds of
// the cycles alone.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "Vmesh.h"
#include "verilated.h"

namespace {

constexpr unsigned kNodes = NODES, kFlitBits = FLIT_BITS;
constexpr unsigned kFlitWords = (kFlitBits + 31) / 32, kPacketWords = 3 + kFlitWords;
static_assert(kNodes >= 2 && kNodes <= 64, "the handshakes are kept in a word of 64 bits");
static_assert(kFlitWords >= 3, "the payload has 64 bits");

struct Node {
  std::vector<const uint32_t*> packets;  // its own, in order
  size_t next = 0;
  uint32_t sent = 0;  // flits of the next packet that went in
};

// Puts a flit of a node among the flat inputs.
template <typename Wide>
void put(Wide& flat, unsigned node, const uint32_t* flit) {
  const unsigned first = node * kFlitBits;
  for (unsigned bit = 0; bit < kFlitBits;) {
    const unsigned shift = (first + bit) % 32, from = bit % 32;
    unsigned count = 32 - (shift > from ? shift : from);
    if (count > kFlitBits - bit) count = kFlitBits - bit;
    const uint32_t ones = count == 32 ? ~0u : (1u << count) - 1;
    uint32_t& word = flat[(first + bit) / 32];
    word = (word & ~(ones << shift)) | ((flit[bit / 32] >> from & ones) << shift);
    bit += count;
  }
}

template <typename Wide>
bool last_flit(const Wide& flat, unsigned node) {
  const unsigned bit = node * kFlitBits + kFlitBits - 1;
  return flat[bit / 32] >> bit % 32 & 1;
}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<uint32_t> read_words(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) return {};
  std::vector<uint32_t> words;
  uint32_t block[4096];
  while (size_t count = std::fread(block, 4, 4096, file)) words.insert(words.end(), block, block + count);
  std::fclose(file);
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::vector<uint32_t> words = read_words(argv[1]);
  const uint64_t wanted = std::strtoull(argv[2], nullptr, 10);
  const uint64_t limit = std::strtoull(argv[3], nullptr, 10);
  std::vector<Node> nodes(kNodes);
  for (size_t at = 0; at + kPacketWords <= words.size(); at += kPacketWords)
    nodes[words[at + 1]].packets.push_back(&words[at]);

  VerilatedContext context;
  Vmesh mesh{&context};
  mesh.eject_ready_i = ~uint64_t{0} >> (64 - kNodes);
  for (int edge = 0; edge < 8; ++edge) {  // reset
    mesh.clk_i = edge & 1;
    mesh.eval();
  }
  mesh.rst_ni = 1;

  const double begin = cpu_seconds();
  uint64_t delivered = 0, last_ejection = 0, offered = 0;  // `offered`: a bit a node
  for (uint64_t cycle = 0; delivered < wanted && cycle <= limit; ++cycle) {
    for (unsigned node = 0; node < kNodes; ++node) {
      const Node& own = nodes[node];
      if (offered >> node & 1 || own.next == own.packets.size()) continue;
      const uint32_t* packet = own.packets[own.next];
      if (packet[0] > cycle) continue;
      uint32_t flit[kFlitWords];
      for (unsigned word = 0; word < kFlitWords; ++word) flit[word] = packet[3 + word];
      flit[1] = own.sent;
      if (own.sent + 1 == packet[2]) flit[kFlitWords - 1] |= 1u << (kFlitBits - 1) % 32;
      put(mesh.inject_flit_i, node, flit);
      offered |= uint64_t{1} << node;
    }
    mesh.inject_valid_i = offered;
    mesh.clk_i = 0;
    mesh.eval();
    const uint64_t taken = offered & mesh.inject_ready_o;
    for (uint64_t rest = taken; rest; rest &= rest - 1) {
      Node& own = nodes[static_cast<unsigned>(__builtin_ctzll(rest))];
      if (++own.sent == own.packets[own.next][2]) {
        own.sent = 0;
        ++own.next;
      }
    }
    offered &= ~taken;
    for (uint64_t rest = mesh.eject_valid_o; rest; rest &= rest - 1) {
      if (last_flit(mesh.eject_flit_o, static_cast<unsigned>(__builtin_ctzll(rest)))) {
        ++delivered;
        last_ejection = cycle;
      }
    }
    mesh.clk_i = 1;
    mesh.eval();
  }
  const double cpu_s = cpu_seconds() - begin;
  std::printf("%llu %llu %.9f\n", static_cast<unsigned long long>(delivered),
              static_cast<unsigned long long>(last_ejection), cpu_s);
  mesh.final();
  return 0;
}
