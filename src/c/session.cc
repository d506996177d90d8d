// Sessions: making them of local ranks, progress, memory, reports and their end.
#include "sluice/session.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c/call.h"
#include "c/convert.h"
#include "c/handles.h"
#include "c/metrics.h"
#include "c/structs.h"
#include "session/describe_session.h"
#include "sluice/fabric.h"
#include "sluice/trace.h"
#include "tensor/error_text.h"

namespace sluice::c {

void KnownRuns::Prepare() {
  const std::lock_guard lock(mutex_);
  if (runs_.size() == runs_.capacity() && static_cast<int64_t>(runs_.size()) < kRuns) {
    runs_.reserve(std::max<size_t>(16, std::min<size_t>(kRuns, 2 * runs_.size())));
  }
}

void KnownRuns::Add(const Run& run) {
  const std::lock_guard lock(mutex_);
  last_ = run.number();
  const auto at = static_cast<size_t>((last_ - 1) % kRuns);
  if (at < runs_.size()) {
    runs_[at] = run;
  } else {
    runs_.push_back(run);
  }
}

const Run* KnownRuns::At(int64_t number) const {
  if (number < 1 || number > last_ || number <= last_ - kRuns) return nullptr;
  return &runs_[static_cast<size_t>((number - 1) % kRuns)];
}

bool KnownRuns::IsOver(int64_t number) const {
  const std::lock_guard lock(mutex_);
  const Run* const run = At(number);
  return run == nullptr || run->IsDone();
}

absl::StatusOr<Run> KnownRuns::Find(int64_t number) const {
  const std::lock_guard lock(mutex_);
  if (const Run* const run = At(number); run != nullptr) return *run;
  if (number < 1 || number > last_) {
    return absl::NotFoundError(absl::StrCat("there has been no run ", number));
  }
  return absl::NotFoundError(absl::StrCat("run ", number, " is over; only the newest ", kRuns,
                                          " runs are known, to ", last_));
}

absl::Status GiveSession(absl::StatusOr<std::unique_ptr<Session>> made, const OwnOptions& own,
                         std::unique_ptr<World> world, sluice_session** session) {
  SLUICE_RETURN_IF_ERROR(own.status);
  auto handle = std::make_unique<sluice_session>();
  handle->owner = std::this_thread::get_id();
  handle->world = std::move(world);
  SLUICE_ASSIGN_OR_RETURN(handle->session, std::move(made));
  *session = handle.release();
  return absl::OkStatus();
}

OwnOptions::OwnOptions(const sluice_session_options* given) {
  absl::StatusOr<SessionOptions> read = Try([&] { return ToSessionOptions(given); });
  status = read.status();
  options = read.ok() ? *std::move(read) : BadSessionOptions(given);
}

absl::Status CheckSession(const sluice_session* session) {
  if (session == nullptr) return IsNull("session");
  if (session->owner == std::this_thread::get_id()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the session belongs to the thread that made it, and another one calls");
}

absl::Status Refuse(sluice_session* session, const char* call, const absl::Status& own) {
  session->session->Refuse(call, own).IgnoreError();
  return own;
}

namespace {

absl::Status CheckRank(const sluice_local& local, int32_t rank) {
  const auto count = static_cast<int64_t>(local.fabrics.size());
  if (rank >= 0 && rank < count) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(rank), " of ", count);
}

std::unique_ptr<Fabric> TakeFabric(sluice_local* local, int32_t rank) {
  const std::lock_guard lock(local->mutex);
  return std::move(local->fabrics[static_cast<size_t>(rank)]);
}

Metrics AllMetricsOf(const Session& session) {
  return MetricsOf(session.counters(), {{"slots", static_cast<double>(session.slots())},
                                        {"slot_bytes", static_cast<double>(session.slot_bytes())}});
}

}  // namespace
}  // namespace sluice::c

using sluice::c::CheckSession;
using sluice::c::Guard;
using sluice::c::IsNull;

sluice_status sluice_local_create(int32_t count, sluice_local** local) {
  return Guard("sluice_local_create", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("local", local));
    SLUICE_ASSIGN_OR_RETURN(auto fabrics, sluice::MakeLocalFabric(count));
    auto handle = std::make_unique<sluice_local>();
    handle->fabrics = std::move(fabrics);
    *local = handle.release();
    return absl::OkStatus();
  });
}

sluice_status sluice_local_session(sluice_local* local, int32_t rank,
                                   const sluice_session_options* options,
                                   sluice_session** session) {
  return Guard("sluice_local_session", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("session", session));
    if (local == nullptr) return IsNull("local");
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckRank(*local, rank));
    const sluice::c::OwnOptions own(options);
    std::unique_ptr<sluice::Fabric> fabric = sluice::c::TakeFabric(local, rank);
    if (fabric == nullptr) {
      return sluice::MakeError(absl::StatusCode::kFailedPrecondition, sluice::RankInWords(rank),
                               " has had its session");
    }
    return sluice::c::GiveSession(sluice::Session::Create(std::move(fabric), own.options), own,
                                  nullptr, session);
  });
}

void sluice_local_destroy(sluice_local* local) { delete local; }

int32_t sluice_session_rank(const sluice_session* session) {
  return session == nullptr ? -1 : session->session->rank();
}

int32_t sluice_session_count(const sluice_session* session) {
  return session == nullptr ? -1 : session->session->size();
}

sluice_status sluice_session_close(sluice_session* session) {
  return Guard("sluice_session_close", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    return session->session->Close();
  });
}

sluice_status sluice_session_destroy(sluice_session* session) {
  return Guard("sluice_session_destroy", [&]() -> absl::Status {
    if (session == nullptr) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    {
      const std::lock_guard lock(session->streams_mutex);
      if (session->stream_calls > 0) {
        return absl::FailedPreconditionError("another thread is in a call of a stream");
      }
    }
    delete session;
    return absl::OkStatus();
  });
}

sluice_status sluice_poll(sluice_session* session) {
  return Guard("sluice_poll", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    return session->session->Poll();
  });
}

sluice_status sluice_allocate(sluice_session* session, int64_t bytes, sluice_memory** memory) {
  return Guard("sluice_allocate", [&]() -> absl::Status {
    sluice::c::Clear(memory);
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    auto handle = std::make_unique<sluice_memory>();
    // A rank whose call is wrong takes part all the same, so that the others hear of it.
    auto data = session->session->AllocateShared(memory == nullptr ? -1 : bytes);
    if (memory == nullptr) return IsNull("memory");
    if (!data.ok()) return data.status();
    handle->data = *std::move(data);
    *memory = handle.release();
    return absl::OkStatus();
  });
}

void* sluice_memory_data(const sluice_memory* memory) {
  return memory == nullptr ? nullptr : memory->data.get();
}

void sluice_memory_destroy(sluice_memory* memory) { delete memory; }

sluice_status sluice_session_report(const sluice_session* session, char* text, size_t* bytes) {
  return Guard("sluice_session_report", [&]() -> absl::Status {
    if (session == nullptr) return IsNull("session");
    return sluice::c::WriteBytes(session->session->Report().ToString(), 1, text, bytes);
  });
}

sluice_status sluice_session_trace(sluice_session* session, char* text, size_t* bytes) {
  return Guard("sluice_session_trace", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    sluice::TraceLog* const log = session->session->trace();
    if (log == nullptr) {
      return absl::FailedPreconditionError(
          "nothing is recorded: trace_events is 0, or this is a forked child");
    }
    return sluice::c::WriteBytes(sluice::ChromeTrace(*log), 1, text, bytes);
  });
}

sluice_status sluice_session_metrics(sluice_session* session, sluice_metric* metrics,
                                     int64_t* count) {
  return Guard("sluice_session_metrics", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    return sluice::c::WriteMetrics(sluice::c::AllMetricsOf(*session->session), metrics, count);
  });
}

sluice_status sluice_session_reset_metrics(sluice_session* session) {
  return Guard("sluice_session_reset_metrics", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    session->session->ResetCounters();
    return absl::OkStatus();
  });
}
