// Transfers that the session tests share.
#ifndef SLUICE_TESTS_SESSION_SPECS_H_
#define SLUICE_TESTS_SESSION_SPECS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/make_layout.h"
#include "sluice/connect.h"
#include "sluice/session.h"
#include "sluice/transfer.h"

namespace sluice::session_test {

using oracle::MakeLayout;

// A tensor of one type on both sides.
TensorTransfer Moved(std::string name, std::vector<int64_t> shape, DType dtype, Layout src,
                     Layout dst);

// A side of a tensor in Connect, of no window.
ConnectTensor Part(std::string name, std::vector<int64_t> shape, DType dtype, Layout layout,
                   TensorView view);

// begin, begin + 1, ... end - 1.
inline std::vector<int> Ranks(int begin, int end) { return oracle::RankRange(begin, end - begin); }

// One f64 tensor of `rows` rows of 1024 elements (8 KiB) per rank, cut by rows, of which each rank
// sends all it has to the next rank.
TransferSpec Ring(int size, int64_t rows);

// One f64 tensor cut by rows at first and by columns afterwards: `block_bytes` go from each rank to
// each rank.
TransferSpec AllToAll(int size, int64_t block_bytes);

// One f64 tensor, whole, from one rank to another, or to itself.
TransferSpec FromTo(int src, int dst, std::vector<int64_t> shape = {16, 1024});

// From the lower two thirds of the ranks to the upper two thirds, at least 64 KiB per message.
TransferSpec OverlappingMeshes(int size);

// Options and transfers that depend on the seed alone; every rank makes the same. Transfers have
// casts, Partial sources, windows and priority classes.
struct RandomJob {
  SessionOptions options;
  std::vector<TransferSpec> specs;
};
RandomJob MakeRandomJob(uint64_t seed, int size);

// The same job with boxes on a side, or both, of most tensors.
RandomJob MakeRandomBoxJob(uint64_t seed, int size);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_SPECS_H_
