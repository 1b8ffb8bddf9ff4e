// How the work of a matrix product may be cut. A cut changes speed, never numbers, so tuning may
// choose among these for each shape of matrix and size of batch.
#pragma once

#include <bit>

#include "common.h"

namespace helios {

struct Cut {
  int64_t run;         // tokens that share a pass over the weights: whole tiles of sixteen
  int64_t per_thread;  // chunks for each thread, where the work is large enough
  bool streams;        // nibbles are unpacked in passing, however many tokens there are
};

inline constexpr int64_t kLongestRun = 128;
// The first is neutral: what an untuned product takes.
inline constexpr Cut kCuts[] = {
    {128, 8, false}, {128, 8, true}, {128, 2, false}, {128, 16, false}, {64, 8, false}};
inline constexpr int64_t kCutCount = sizeof kCuts / sizeof kCuts[0];

// Which of `places` choices is that of so many tokens, one or more: the first that covers them,
// where place p covers 4^p; the last one is everybody's beyond.
inline int64_t choice_place(int64_t tokens, int64_t places) {
  const int64_t place = (std::bit_width(static_cast<uint64_t>(tokens - 1)) + 1) / 2;
  return place < places ? place : places - 1;
}

}  // namespace helios
