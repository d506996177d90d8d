// Transfers that are planned for one rank, without a session: for tests of the parts of runs.
#ifndef SLUICE_TESTS_SESSION_PLANNED_H_
#define SLUICE_TESTS_SESSION_PLANNED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "session/specs.h"
#include "session/transfer/compiled_transfer.h"
#include "sluice/transfer.h"
#include "tensor/check.h"

namespace sluice::session_test {

// Of f32, from rank 0 to rank 1, as a whole.
inline TensorTransfer FromZeroToOne(const std::string& name, const std::vector<int64_t>& shape,
                                    int window = 0) {
  return {
      name,  shape, DType::kF32, DType::kF32, MakeLayout({1}, {0}, "R"), MakeLayout({1}, {1}, "R"),
      window};
}

// `rank`'s part, in buckets of at most 64 bytes. Ranks are on these nodes.
inline std::unique_ptr<CompiledTransfer> PlanFor(int rank,
                                                 const std::vector<TensorTransfer>& tensors,
                                                 const std::vector<int>& nodes = {0, 0},
                                                 int64_t bucket_bytes = 64) {
  const PlanOptions options = {
      .bucket_bytes = bucket_bytes, .max_in_flight = 2, .node_of_rank = nodes};
  const TransferSpec spec = {.tensors = tensors};
  SLUICE_CHECK(ValidateSpec(spec, static_cast<int>(nodes.size())).ok(), "no good transfer");
  absl::StatusOr<std::unique_ptr<CompiledTransfer>> made =
      CompiledTransfer::Make(spec, options, rank, 0);
  SLUICE_CHECK(made.ok(), "no good plan");
  return *std::move(made);
}

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_PLANNED_H_
