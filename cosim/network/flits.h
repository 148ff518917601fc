// Bits of flits, and the data that packets carry; included by loop.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace {

constexpr unsigned kFlitBits = LOOP_FLIT_BITS, kFlitWords = (kFlitBits + 31) / 32;
constexpr unsigned kPayloadLsb = LOOP_PAYLOAD_LSB, kLastBit = LOOP_LAST_BIT;
constexpr unsigned kElementBits = LOOP_ELEMENT_BITS;
static_assert(kFlitBits > 64, "the flits of all nodes are kept in words of 32 bits");

enum Operation : uint32_t { kCarry = 0, kSum = 1, kMaximum = 2 };

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

// Element by element; one at the top of a word wraps and compares as one of its own width.
uint64_t combined(Operation operation, uint64_t a, uint64_t b) {
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
