// Bits of flits, and the data that packets carry; included by loop.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace {

constexpr unsigned kFlitBits = LOOP_FLIT_BITS, kFlitWords = (kFlitBits + 31) / 32;
constexpr unsigned kPayloadLsb = LOOP_PAYLOAD_LSB, kLastBit = LOOP_LAST_BIT;
constexpr unsigned kElementBits = LOOP_ELEMENT_BITS, kReducedBits = LOOP_REDUCED_BITS;
// Bits of a result that count.
constexpr uint64_t kCounts = ~uint64_t{0} >> (64 - kReducedBits);
static_assert(kFlitBits > 64, "the flits of all nodes are kept in words of 32 bits");

// `PacketKind` of tlm/interconnect/packets.py; a multicast's copies are carried as a unicast is.
enum Operation : uint32_t { kCarry = 0, kSum = 2, kMaximum = 3, kAnd = 4, kSelect = 5, kCollect = 6 };

void set_bits(uint32_t* words, unsigned lsb, unsigned bits, const uint32_t* value) {
  for (unsigned bit = 0; bit < bits;) {
    const unsigned shift = (lsb + bit) % 32, from = bit % 32;
    const unsigned count = std::min(32 - std::max(shift, from), bits - bit);
    const uint32_t ones = count == 32 ? ~0u : (1u << count) - 1;
    uint32_t& word = words[(lsb + bit) / 32];
    word = (word & ~(ones << shift)) | ((value[bit / 32] >> from & ones) << shift);
    bit += count;
  }
}

void set_payload(uint32_t* flit, uint64_t payload) {
  const uint32_t halves[2] = {static_cast<uint32_t>(payload), static_cast<uint32_t>(payload >> 32)};
  set_bits(flit, kPayloadLsb, 64, halves);
}

template <typename Wide>
uint32_t bits_at(const Wide& words, unsigned lsb) {  // 32 of them, which the flits' words hold
  const unsigned word = lsb / 32, shift = lsb % 32;
  return shift ? words[word] >> shift | words[word + 1] << (32 - shift) : words[word];
}

uint64_t arbitrary(uint32_t packet, uint32_t flit) {
  uint32_t x = (packet + 1) * 0x9E3779B1u ^ flit * 0x85EBCA77u;
  x = (x ^ x >> 15) * 0x2C1B3C6Du;
  return x ^ x >> 12;
}

uint64_t carried(uint32_t packet, uint32_t flit) { return uint64_t{packet} << 32 | arbitrary(packet, flit); }

// Bits that belong to an operand: operands take turns, and turn from flit to flit.
uint32_t own_places(uint32_t rank, uint32_t count, uint32_t flit) {
  uint32_t bits = 0;
  for (uint32_t bit = 0; bit < 32; ++bit) bits |= uint32_t{(bit + flit) % count == rank} << bit;
  return bits;
}

// A flit of an operand, which is one of `count` that meet under the number `joint`, by its rank among them.
uint64_t operand(Operation operation, uint32_t packet, uint32_t joint, uint32_t rank, uint32_t count, uint32_t flit) {
  // An AND and a selection keep the number that all operands have; else one operand alone has it.
  const bool named = packet == joint || operation == kAnd || operation == kSelect;
  uint32_t bits = arbitrary(packet, flit);
  // Of a 64-bit element no sum of a mesh's operands may reach the number.
  if (kElementBits == 64 && (operation == kSum || operation == kMaximum)) bits >>= 12;
  if (operation == kCollect) bits &= own_places(rank, count, flit);
  if (operation == kAnd) {  // most of its own places it alone clears, some all clear
    const uint32_t apart = arbitrary(joint, flit) | arbitrary(joint, flit + (1 << 16));
    const uint32_t rest = arbitrary(joint, flit + (2 << 16));
    bits = ~((own_places(rank, count, flit) & apart) | (~apart & rest));
  }
  return (named ? uint64_t{joint} << 32 : 0) | bits;
}

// By element, if not by bit; one at the top of a word wraps and compares as one of its own width.
uint64_t combined(Operation operation, uint64_t a, uint64_t b) {
  if (operation == kAnd) return a & b;
  if (operation == kCollect) return a | b;
  uint64_t result = 0;
  for (unsigned lsb = 0; lsb < 64; lsb += kElementBits) {
    const unsigned unused = 64 - kElementBits;
    const uint64_t x = a >> lsb << unused, y = b >> lsb << unused;
    const bool less = static_cast<int64_t>(x) < static_cast<int64_t>(y);
    const uint64_t both = operation == kSum ? x + y : less ? y : x;
    result |= both >> unused << lsb;
  }
  return result;
}

}  // namespace
