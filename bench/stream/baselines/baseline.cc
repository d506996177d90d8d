// What the plain loaders read from, items in memory, and statistics.
#include "stream/baselines/baseline.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "device/normalization.h"
#include "session/stream/item_normalizer.h"
#include "sluice/status.h"
#include "stream/contents.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

constexpr int64_t kAfterCancelNs = 100'000'000;

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status);
}

}  // namespace

void PlainReader::Wait(int64_t until_ns) const {
  const int64_t left_ns = std::max<int64_t>(0, until_ns - MonotonicNs());
  const timespec timeout = {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  pollfd ready = {source_->ready_fd(), POLLIN, 0};
  ppoll(&ready, 1, &timeout, nullptr);
}

absl::Status PlainReader::Read(absl::Span<ReadOp> ops, std::vector<const std::byte*>* data) {
  data->assign(ops.size(), nullptr);
  std::vector<size_t> which(ops.size());
  std::iota(which.begin(), which.end(), size_t{0});
  which.erase(
      std::remove_if(which.begin(), which.end(), [&](size_t i) { return ops[i].bytes == 0; }),
      which.end());
  absl::Duration backoff = retry_.backoff;
  for (int attempt = 0; !which.empty(); ++attempt) {
    for (const size_t i : which) {
      ops[i].cookie = i;
      ops[i].attempt = attempt;
    }
    std::vector<size_t> again;
    absl::Status cause;
    SLUICE_RETURN_IF_ERROR(ReadOnce(ops, which, data, &again, &cause));
    if (again.empty()) break;
    if (attempt + 1 >= retry_.attempts_max) {
      return absl::Status(cause.code(), absl::StrCat("after ", retry_.attempts_max,
                                                     " attempts: ", cause.message()));
    }
    retries_ += static_cast<int64_t>(again.size());
    absl::SleepFor(backoff);
    backoff *= 2;
    which = std::move(again);
  }
  return absl::OkStatus();
}

absl::Status PlainReader::ReadOnce(absl::Span<ReadOp> ops, const std::vector<size_t>& which,
                                   std::vector<const std::byte*>* data, std::vector<size_t>* again,
                                   absl::Status* cause) {
  std::vector<ReadOp> batch;
  batch.reserve(which.size());
  for (const size_t i : which) batch.push_back(ops[i]);
  const int64_t begin_ns = MonotonicNs();
  int64_t limit_ns = begin_ns + absl::ToInt64Nanoseconds(retry_.request_timeout);
  SLUICE_RETURN_IF_ERROR(source_->Start(batch));
  absl::Status failure;
  std::vector<bool> ended(ops.size());
  for (size_t left = batch.size(); left > 0;) {
    std::array<ReadEvent, 64> events;
    SLUICE_ASSIGN_OR_RETURN(const int count, source_->Poll(absl::MakeSpan(events)));
    for (int e = 0; e < count; ++e) {
      const ReadEvent& event = events[static_cast<size_t>(e)];
      const auto i = static_cast<size_t>(event.cookie);
      ended[i] = true;
      --left;
      reading_ns_ += MonotonicNs() - begin_ns;
      if (event.status.ok()) {
        (*data)[i] = ops[i].data + event.skew;
      } else if (IsTransient(event.status)) {
        again->push_back(i);
        *cause = event.status;
      } else {
        failure.Update(event.status);
      }
    }
    if (count > 0) continue;
    if (MonotonicNs() >= limit_ns) {
      for (const ReadOp& op : batch) {
        if (!ended[static_cast<size_t>(op.cookie)]) source_->Cancel(op.cookie);
      }
      limit_ns = MonotonicNs() + kAfterCancelNs;
    } else if (left > 0) {
      Wait(limit_ns);
    }
  }
  return failure;
}

absl::StatusOr<OpenedSource> OpenBaselineSource(const StreamOptions& stream,
                                                const InjectedDelay& delay, int in_flight_max) {
  if (stream.source.uri.empty()) return OpenGenerator(stream, delay);
  SLUICE_ASSIGN_OR_RETURN(const auto catalog, FindCatalog(stream));
  return OpenBaselineSource(stream, delay, catalog, in_flight_max);
}

absl::StatusOr<OpenedSource> OpenBaselineSource(const StreamOptions& stream,
                                                const InjectedDelay& delay, const Catalog& catalog,
                                                int in_flight_max) {
  if (stream.source.uri.empty()) return OpenGenerator(stream, delay);
  SLUICE_ASSIGN_OR_RETURN(const auto address, ParseSourceAddress(stream.source.uri));
  return OpenCatalog(address, stream, delay, catalog, in_flight_max);
}

void CopyToCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                int64_t item, const std::byte* src, int64_t offset, int64_t bytes,
                std::byte* cell) {
  if (bytes == 0) return;
  if (!transform) {
    std::memcpy(cell + offset, src, static_cast<size_t>(bytes));
    return;
  }
  const ItemNormalizer normalizer(*transform);
  Normalize(normalizer.PieceOf(normalizer.GridOf(items.ShapeOf(item)), offset, bytes, src, cell));
}

TensorView ViewOfCell(const absl::optional<ItemTransform>& transform, const StreamItems& items,
                      int64_t item, std::byte* cell) {
  const std::vector<int64_t> shape = items.ShapeOf(item);
  if (!transform) return DenseView(cell, shape, items.DTypeOf(item));
  return DenseView(cell, ItemNormalizer(*transform).ShapeOf(shape), transform->dst);
}

void AddReads(const SourceCounters& counters, const PlainReader& reader, int64_t copying_ns,
              StreamStats* stats) {
  stats->requests += counters.requests;
  stats->bytes_read += counters.bytes_read;
  stats->opens += counters.opens;
  stats->connections += counters.connections;
  stats->retries += reader.retries();
  stats->reading += absl::Nanoseconds(reader.reading_ns());
  stats->copying += absl::Nanoseconds(copying_ns);
}

absl::Status RunLoop(const BaselineJob& job, RankOutcome* outcome) {
  const StreamSource& source = job.stream->source;
  StreamStats& stats = outcome->stats;
  std::vector<std::byte> item(static_cast<size_t>(source.item_bytes));
  int64_t position = job.plan.NextPosition(0);
  int64_t making_ns = 0;
  while (!job.consumer->done()) {
    const int64_t number = job.plan.ItemAt(position);
    job.consumer->Asked();
    const int64_t begin_ns = MonotonicNs();
    if (absl::Status status = source.generator(number, absl::MakeSpan(item)); !status.ok()) {
      return Prefixed(absl::StrCat("making item ", number), status);
    }
    making_ns += MonotonicNs() - begin_ns;
    job.consumer->Arrived(true);
    job.consumer->Consume(number, job.plan.EpochOf(position),
                          DenseView(item.data(), {source.item_bytes}, DType::kU8));
    position = job.plan.NextPosition(position + 1);
    ++stats.requests;
    stats.bytes_read += source.item_bytes;
  }
  stats.opens = stats.slots_peak = stats.slots_max = 1;
  stats.budget_bytes_peak = stats.budget_bytes = source.item_bytes;
  stats.reading = absl::Nanoseconds(making_ns);
  return absl::OkStatus();
}

}  // namespace sluice::bench
