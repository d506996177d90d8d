// Values by hashing, reductions one element at a time.
#include "session/element_values.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "device/float_oracle.h"
#include "oracle/brute_layout.h"

namespace sluice::session_test {
namespace {

// Distinct for distinct arguments, as far as tests can tell.
uint64_t Hash(uint64_t tensor, uint64_t round, uint64_t contribution, int64_t flat) {
  uint64_t z = (tensor << 48) ^ (round << 40) ^ (contribution << 32) ^ static_cast<uint64_t>(flat);
  z = (z ^ (z >> 31)) * 0x7fb5d329728ea185u;
  z = (z ^ (z >> 27)) * 0x81dadef4bc2dd44du;
  return z ^ (z >> 33);
}

uint64_t Bits(DType dtype, uint64_t hash) {
  return hash >> (64 - 8 * std::min<int64_t>(8, DTypeBytes(dtype)));
}

bool IsFloat(DType dtype) { return dtype <= DType::kF8E5M2; }

// Of magnitude 1/8 to 8 with all mantissa bits, so that sums round differently in another order.
uint64_t Number(DType dtype, uint64_t hash) {
  const double mantissa = 1 + static_cast<double>(hash >> 12) * 0x1p-52;
  const double magnitude = mantissa * static_cast<double>(1 << hash % 6) / 8;
  return Encode(dtype, (hash & 0x80) != 0 ? -magnitude : magnitude);
}

}  // namespace

ElementValues::ElementValues(const TensorTransfer& tensor, uint64_t number, Likeness likeness)
    : tensor_(tensor), number_(number), likeness_(std::move(likeness)) {
  for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
    const Placement& placement = tensor.src.placements[m];
    const int64_t ranks = tensor.src.mesh.sizes()[m];
    if (placement.kind != Placement::Kind::kPartial || ranks == 1) continue;
    const bool nested = placement.op == ReduceOp::kAvg || placement.op == ReduceOp::kProduct;
    if (nested || partial_.empty() || partial_.back().op != placement.op) {
      partial_.push_back({{}, 1, placement.op});
    }
    partial_.back().mesh_dims.push_back(m);
    partial_.back().ranks *= ranks;
  }
}

int64_t ElementValues::ContributionOf(int rank) const {
  const std::vector<int64_t> coordinates = *oracle::Coordinates(tensor_.src.mesh, rank);
  int64_t number = 0;
  for (size_t i = partial_.size(); i-- > 0;) {
    for (const size_t m : partial_[i].mesh_dims) {
      number = number * tensor_.src.mesh.sizes()[m] + coordinates[m];
    }
  }
  return number;
}

uint64_t ElementValues::Source(uint64_t round, int64_t flat, int64_t contribution) const {
  const uint64_t hash = Hash(number_, round, static_cast<uint64_t>(contribution), KeyOf(flat));
  const DType dtype = tensor_.src_dtype;
  return partial_.empty() || !IsFloat(dtype) ? Bits(dtype, hash) : Number(dtype, hash);
}

int64_t ElementValues::KeyOf(int64_t flat) const {
  const std::vector<size_t>& repeated = likeness_.repeated;
  if (repeated.empty() && likeness_.slid < 0) return flat;
  absl::InlinedVector<int64_t, 8> index(tensor_.shape.size());
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = flat % tensor_.shape[d];
    flat /= tensor_.shape[d];
    if (std::find(repeated.begin(), repeated.end(), d) != repeated.end()) index[d] = 0;
  }
  if (likeness_.slid >= 0) {
    const size_t d = static_cast<size_t>(likeness_.slid);
    index[d + 1] += std::exchange(index[d], 0);
  }
  int64_t key = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    const int64_t slid_from = d > 0 ? tensor_.shape[d - 1] : 0;
    key = key * (tensor_.shape[d] + slid_from) + index[d];
  }
  return key;
}

uint64_t ElementValues::Target(uint64_t round, int64_t flat) const {
  const uint64_t code = Reduced(round, flat, partial_.size(), 0);
  return CastCode(tensor_.src_dtype, tensor_.dst_dtype, code);
}

uint64_t ElementValues::Reduced(uint64_t round, int64_t flat, size_t open, int64_t number) const {
  if (open == 0) return Source(round, flat, number);
  const Level& dim = partial_[open - 1];
  uint64_t result = Reduced(round, flat, open - 1, number * dim.ranks);
  for (int64_t c = 1; c < dim.ranks; ++c) {
    Reduction step;
    step.op = dim.op;
    step.dtype = tensor_.src_dtype;
    step.divisor = dim.op == ReduceOp::kAvg && c == dim.ranks - 1 ? dim.ranks : 1;
    result = ReduceCodes(step, result, Reduced(round, flat, open - 1, number * dim.ranks + c));
  }
  return result;
}

}  // namespace sluice::session_test
