// Will a case fit this host's memory? Asked before anything is allocated, because the kernel's
// answer would be to kill a rank.
#ifndef SLUICE_BENCH_JOB_MEMORY_NEED_H_
#define SLUICE_BENCH_JOB_MEMORY_NEED_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "session/limits.h"
#include "sluice/transfer.h"

namespace sluice::bench {

// Bytes that this host can still give: what the kernel calls available, or less where a control
// group sets a limit. Nothing if neither can be read.
std::optional<int64_t> AvailableBytes();

// ResourceExhausted, with the breakdown, if the tensors of `spec` on `host_ranks`, `copies` times,
// the staging of sessions with these budgets, the plans' own size and `buffer_bytes` of others pass
// `available_bytes`. Layouts that are not valid count as nothing: Session::Compile refuses them.
absl::Status CheckMemory(const TransferSpec& spec, absl::Span<const int> host_ranks, int64_t copies,
                         absl::Span<const Budget> budgets, int64_t buffer_bytes,
                         int64_t available_bytes);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_MEMORY_NEED_H_
