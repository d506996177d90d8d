// A case's memory, added up over the ranks of this host.
#include "job/memory_need.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "transport/direct/available_memory.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// What a planned bucket costs at one end, with its chunk.
constexpr int64_t kBucketPlanBytes = 256;

int64_t AddUpTo(int64_t a, int64_t b) { return a > kMax - b ? kMax : a + b; }

int64_t MultiplyUpTo(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMax : product;
}

// What is left of the limit of a control group, version 1. The largest number where there is none.
uint64_t AvailableInFirstGroups() {
  uint64_t limit = 0;
  uint64_t used = 0;
  std::ifstream limits("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  if (!(limits >> limit)) return std::numeric_limits<uint64_t>::max();
  std::ifstream("/sys/fs/cgroup/memory/memory.usage_in_bytes") >> used;
  return limit - std::min(limit, used);
}

int64_t SideBytes(const Layout& layout, absl::Span<const int64_t> shape, DType dtype, int rank) {
  int64_t of_boxes = 0;
  for (const Box& box : layout.boxes.Of(rank)) {
    int64_t bytes = DTypeBytes(dtype);
    for (const int64_t size : box.shape) bytes = MultiplyUpTo(bytes, size);
    of_boxes = AddUpTo(of_boxes, bytes);
  }
  if (!layout.boxes.empty()) return of_boxes;
  const auto local = LocalShape(layout, shape, rank);
  if (!local.ok()) return 0;
  int64_t bytes = DTypeBytes(dtype);
  for (const int64_t size : *local) bytes = MultiplyUpTo(bytes, size);
  return bytes;
}

// Staging of one rank that has `tensor_bytes` to send and receive: never more than those.
int64_t StagingBytes(const Budget& budget, int64_t tensor_bytes) {
  const int64_t most = AddUpTo(tensor_bytes, budget.slot_bytes);
  return budget.slots == 0 ? most : std::min(most, MultiplyUpTo(budget.slots, budget.slot_bytes));
}

// Automatic buckets are smaller than their slots, but not where there are many of them.
int64_t PlanBytes(const Budget& budget, int64_t tensor_bytes) {
  return MultiplyUpTo(tensor_bytes / budget.slot_bytes, kBucketPlanBytes);
}

}  // namespace

std::optional<int64_t> AvailableBytes() {
  const uint64_t bytes = std::min(AvailableMemory(), AvailableInFirstGroups());
  if (bytes > static_cast<uint64_t>(kMax)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

absl::Status CheckMemory(const TransferSpec& spec, absl::Span<const int> host_ranks, int64_t copies,
                         absl::Span<const Budget> budgets, int64_t buffer_bytes,
                         int64_t available_bytes) {
  int64_t tensors = 0;
  int64_t staging = 0;
  int64_t plans = 0;
  for (const int rank : host_ranks) {
    int64_t of_rank = 0;
    for (const TensorTransfer& tensor : spec.tensors) {
      of_rank = AddUpTo(of_rank, SideBytes(tensor.src, tensor.shape, tensor.src_dtype, rank));
      of_rank = AddUpTo(of_rank, SideBytes(tensor.dst, tensor.shape, tensor.dst_dtype, rank));
    }
    tensors = AddUpTo(tensors, MultiplyUpTo(copies, of_rank));
    for (const Budget& budget : budgets) {
      staging = AddUpTo(staging, StagingBytes(budget, of_rank));
      plans = AddUpTo(plans, PlanBytes(budget, of_rank));
    }
  }
  const int64_t need = AddUpTo(AddUpTo(AddUpTo(tensors, staging), plans), buffer_bytes);
  if (need <= available_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the ", host_ranks.size(), " ranks of this host need ", BytesName(need), " (tensors ",
      BytesName(tensors), ", staging up to ", BytesName(staging), ", plans ", BytesName(plans),
      buffer_bytes > 0 ? absl::StrCat(", baselines up to ", BytesName(buffer_bytes)) : "",
      "), and ", BytesName(available_bytes), " are available"));
}

}  // namespace sluice::bench
