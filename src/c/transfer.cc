// Transfers and their runs.
#include "sluice/transfer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "c/call.h"
#include "c/convert.h"
#include "c/handles.h"
#include "c/metrics.h"
#include "c/structs.h"
#include "session/describe_session.h"
#include "sluice/connect.h"
#include "tensor/error_text.h"

namespace sluice::c {
namespace {

absl::Status SetTensor(absl::string_view name, const sluice_tensor& given, LayoutReader* layouts,
                       TensorTransfer* tensor) {
  if (given.name == nullptr) return IsNull(absl::StrCat(name, ".name"));
  tensor->name = given.name;
  SLUICE_ASSIGN_OR_RETURN(tensor->shape, ToShape(name, given.ndim, given.shape));
  SLUICE_ASSIGN_OR_RETURN(const DType src_dtype,
                          ToDType(absl::StrCat(name, ".src_dtype"), given.src_dtype));
  SLUICE_ASSIGN_OR_RETURN(const DType dst_dtype,
                          ToDType(absl::StrCat(name, ".dst_dtype"), given.dst_dtype));
  tensor->src_dtype = src_dtype;
  tensor->dst_dtype = dst_dtype;
  SLUICE_ASSIGN_OR_RETURN(Layout src,
                          layouts->Read(absl::StrCat(name, ".src"), given.src, given.ndim));
  SLUICE_ASSIGN_OR_RETURN(Layout dst,
                          layouts->Read(absl::StrCat(name, ".dst"), given.dst, given.ndim));
  tensor->src = std::move(src);
  tensor->dst = std::move(dst);
  tensor->window = given.window;
  return absl::OkStatus();
}

absl::StatusOr<TransferSpec> ToSpec(const sluice_tensor* tensors, int64_t count, int32_t priority) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<sluice_tensor> given,
                          ReadArray("tensors", tensors, count));
  TransferSpec spec;
  spec.priority_class = priority;
  spec.tensors.resize(given.size());
  LayoutReader layouts;
  for (size_t t = 0; t < given.size(); ++t) {
    const std::string name = absl::StrCat("tensors[", t, "]");
    SLUICE_RETURN_IF_ERROR(SetTensor(name, given[t], &layouts, &spec.tensors[t]));
  }
  return spec;
}

absl::Status SetHalf(absl::string_view name, const sluice_half& given, LayoutReader* layouts,
                     ConnectTensor* tensor) {
  if (given.window != 0) tensor->window = given.window == -1 ? 0 : given.window;
  return SetPart(name, given, layouts, tensor);
}

absl::StatusOr<std::vector<ConnectTensor>> ToHalves(absl::string_view name,
                                                    const sluice_half* halves, int64_t count,
                                                    LayoutReader* layouts) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<sluice_half> given, ReadArray(name, halves, count));
  std::vector<ConnectTensor> result(given.size());
  for (size_t t = 0; t < result.size(); ++t) {
    SLUICE_RETURN_IF_ERROR(SetHalf(absl::StrCat(name, "[", t, "]"), given[t], layouts, &result[t]));
  }
  return result;
}

absl::StatusOr<ConnectSpec> ToOwn(const sluice_own* given) {
  sluice_own read;
  SLUICE_RETURN_IF_ERROR(ReadStruct("sluice_own", given, &read));
  ConnectSpec own;
  LayoutReader layouts;
  SLUICE_ASSIGN_OR_RETURN(std::vector<ConnectTensor> sources,
                          ToHalves("sources", read.sources, read.num_sources, &layouts));
  SLUICE_ASSIGN_OR_RETURN(std::vector<ConnectTensor> targets,
                          ToHalves("targets", read.targets, read.num_targets, &layouts));
  own.sources = std::move(sources);
  own.targets = std::move(targets);
  SLUICE_ASSIGN_OR_RETURN(const auto renames, ReadFixed("renames", read.renames, read.num_renames));
  for (const sluice_rename& each : renames) {
    if (each.target == nullptr || each.source == nullptr) return IsNull("a name of `renames`");
    const auto [known, is_new] = own.renames.emplace(each.target, each.source);
    if (!is_new && known->second != each.source) {
      return absl::InvalidArgumentError(absl::StrCat("`renames` has two sources for '", each.target,
                                                     "': '", known->second, "' and '", each.source,
                                                     "'"));
    }
  }
  own.ignore_unused_sources = read.ignore_unused_sources != 0;
  own.late_targets = read.late_targets != 0;
  if (read.priority != 0) own.priority_class = read.priority;
  return own;
}

absl::StatusOr<std::vector<Connection::NamedView>> ToNamedViews(absl::string_view name,
                                                                const sluice_half* halves,
                                                                int64_t count) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<sluice_half> given, ReadArray(name, halves, count));
  std::vector<Connection::NamedView> views;
  for (const sluice_half& half : given) {
    const std::string each = absl::StrCat(name, "[", views.size(), "]");
    if (half.name == nullptr) return IsNull(absl::StrCat(each, ".name"));
    SLUICE_ASSIGN_OR_RETURN(TensorView view, ToMemory(absl::StrCat(each, ".memory"), half.memory));
    views.emplace_back(half.name, std::move(view));
  }
  return views;
}

absl::Status CheckTransfer(const sluice_transfer* transfer) {
  return transfer == nullptr ? IsNull("transfer") : CheckSession(transfer->session);
}

size_t CountOf(const sluice_transfer& transfer) { return transfer.transfer->spec().tensors.size(); }

// One view for each tensor; null: none of this side.
absl::StatusOr<std::vector<TensorView>> ToSide(absl::string_view name, const sluice_views* side,
                                               size_t count) {
  std::vector<TensorView> views(count);
  if (side == nullptr) return views;
  for (size_t t = 0; t < count; ++t) {
    SLUICE_ASSIGN_OR_RETURN(views[t], ToMemory(absl::StrCat(name, "[", t, "]"), side[t]));
  }
  return views;
}

// A run that a caller wants to start.
struct Begin {
  std::vector<TensorView> src;
  std::vector<TensorView> dst;
  StartOptions options;
};

absl::Status ReadBegin(const sluice_transfer& transfer, const sluice_views* src,
                       const sluice_views* dst, const sluice_start_options* options, Begin* begin) {
  sluice_start_options read;
  SLUICE_RETURN_IF_ERROR(ReadOptions("sluice_start_options", options, &read));
  begin->options.events = read.events != 0;
  begin->options.late_destinations = read.late != 0;
  if (transfer.connection != nullptr) {
    if (read.version != 0) begin->options.version = read.version;
    if (src == nullptr && dst == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "`src` and `dst` are for compiled transfers: sluice_rebind gives a connected one memory");
  }
  if (read.version != 0) {
    return absl::InvalidArgumentError("`version` is for connected transfers");
  }
  SLUICE_ASSIGN_OR_RETURN(begin->src, ToSide("src", src, CountOf(transfer)));
  SLUICE_ASSIGN_OR_RETURN(begin->dst, ToSide("dst", dst, CountOf(transfer)));
  return absl::OkStatus();
}

absl::StatusOr<Run> Start(sluice_transfer* transfer, const Begin& begin) {
  if (transfer->connection != nullptr) return transfer->connection->Start(begin.options);
  return transfer->session->session->Start(transfer->transfer, begin.src, begin.dst, begin.options);
}

absl::Status StartRun(sluice_transfer* transfer, const sluice_views* src, const sluice_views* dst,
                      const sluice_start_options* options, sluice_run* number) {
  Begin begin;
  absl::Status own = number == nullptr ? IsNull("run") : absl::OkStatus();
  if (own.ok()) own = Try([&] { return ReadBegin(*transfer, src, dst, options, &begin); });
  KnownRuns& runs = transfer->session->runs;
  runs.Prepare();
  // A run that is refused is begun, and fails on every rank.
  StartOptions refused;
  refused.refusal = own;
  const absl::StatusOr<Run> run =
      own.ok() ? Start(transfer, begin)
               : transfer->session->session->Start(transfer->transfer, {}, {}, refused);
  if (run.ok()) runs.Add(*run);
  if (!own.ok()) return own;
  if (!run.ok()) return run.status();
  *number = run->number();
  return absl::OkStatus();
}

absl::StatusOr<Run> FindRun(const sluice_session* session, sluice_run run) {
  SLUICE_RETURN_IF_ERROR(CheckSession(session));
  return session->runs.Find(run);
}

// The handle of a transfer to come, whose session has room for it.
std::unique_ptr<sluice_transfer> NewTransfer(sluice_session* session) {
  auto handle = std::make_unique<sluice_transfer>();
  handle->session = session;
  session->transfers.reserve(session->transfers.size() + 1);
  return handle;
}

void Keep(std::unique_ptr<sluice_transfer> handle, sluice_transfer** transfer) {
  *transfer = handle.get();
  handle->session->transfers.push_back(std::move(handle));
}

absl::Status Drop(sluice_transfer* transfer) {
  SLUICE_RETURN_IF_ERROR(transfer->connection == nullptr
                             ? transfer->session->session->Drop(transfer->transfer)
                             : transfer->connection->Drop());
  std::vector<std::unique_ptr<sluice_transfer>>& all = transfer->session->transfers;
  for (auto each = all.begin(); each != all.end(); ++each) {
    if (each->get() != transfer) continue;
    all.erase(each);
    break;
  }
  return absl::OkStatus();
}

int32_t KindOf(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kNeedsMemory:
      return SLUICE_NEEDS_MEMORY;
    case Event::Kind::kTensorDone:
      return SLUICE_TENSOR_DONE;
    case Event::Kind::kFailed:
      return SLUICE_RUN_FAILED;
  }
  return SLUICE_RUN_FAILED;
}

absl::StatusOr<sluice_status> NextEvent(sluice_session* session, sluice_event* given) {
  if (given == nullptr) return IsNull("event");
  // Before an event is taken, which would be lost.
  SLUICE_RETURN_IF_ERROR(CheckSize("sluice_event", given->size));
  Event event;
  if (!session->session->PollEvent(&event)) return SLUICE_PENDING;
  session->event_message = static_cast<std::string>(event.status.message());
  sluice_event value = SLUICE_EVENT_INIT;
  value.run = event.run.number();
  value.tensor = event.tensor;
  value.kind = KindOf(event.kind);
  value.status = -event.status.raw_code();
  if (event.kind == Event::Kind::kFailed) value.message = session->event_message.c_str();
  SLUICE_RETURN_IF_ERROR(WriteStruct("sluice_event", value, given));
  return SLUICE_OK;
}

}  // namespace
}  // namespace sluice::c

using sluice::c::CheckSession;
using sluice::c::CheckTransfer;
using sluice::c::Guard;
using sluice::c::IsNull;

sluice_status sluice_compile(sluice_session* session, const sluice_tensor* tensors,
                             int64_t num_tensors, int32_t priority, sluice_transfer** transfer) {
  return Guard("sluice_compile", [&]() -> absl::Status {
    sluice::c::Clear(transfer);
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    absl::StatusOr<sluice::TransferSpec> spec = IsNull("transfer");
    if (transfer != nullptr) {
      spec = sluice::c::Try([&] { return sluice::c::ToSpec(tensors, num_tensors, priority); });
    }
    if (!spec.ok()) return sluice::c::Refuse(session, "Compile", spec.status());
    auto handle = sluice::c::NewTransfer(session);
    SLUICE_ASSIGN_OR_RETURN(handle->transfer, session->session->Compile(*spec));
    sluice::c::Keep(std::move(handle), transfer);
    return absl::OkStatus();
  });
}

sluice_status sluice_connect(sluice_session* session, const sluice_own* own,
                             sluice_transfer** transfer) {
  return Guard("sluice_connect", [&]() -> absl::Status {
    sluice::c::Clear(transfer);
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    absl::StatusOr<sluice::ConnectSpec> spec = IsNull("transfer");
    if (transfer != nullptr) spec = sluice::c::Try([&] { return sluice::c::ToOwn(own); });
    if (!spec.ok()) return sluice::c::Refuse(session, "Connect", spec.status());
    auto handle = sluice::c::NewTransfer(session);
    SLUICE_ASSIGN_OR_RETURN(handle->connection, sluice::Connect(session->session.get(), *spec));
    handle->transfer = handle->connection->transfer();
    sluice::c::Keep(std::move(handle), transfer);
    return absl::OkStatus();
  });
}

sluice_status sluice_rebind(sluice_transfer* transfer, const sluice_half* sources,
                            int64_t num_sources, const sluice_half* targets, int64_t num_targets) {
  return Guard("sluice_rebind", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckTransfer(transfer));
    if (transfer->connection == nullptr) {
      return absl::FailedPreconditionError("the transfer is not a connected one");
    }
    SLUICE_ASSIGN_OR_RETURN(const auto of_sources,
                            sluice::c::ToNamedViews("sources", sources, num_sources));
    SLUICE_ASSIGN_OR_RETURN(const auto of_targets,
                            sluice::c::ToNamedViews("targets", targets, num_targets));
    return transfer->connection->Rebind(of_sources, of_targets);
  });
}

int64_t sluice_transfer_count(const sluice_transfer* transfer) {
  return transfer == nullptr ? -1 : static_cast<int64_t>(sluice::c::CountOf(*transfer));
}

const char* sluice_transfer_name(const sluice_transfer* transfer, int64_t tensor) {
  if (tensor < 0 || tensor >= sluice_transfer_count(transfer)) return nullptr;
  return transfer->transfer->spec().tensors[static_cast<size_t>(tensor)].name.c_str();
}

sluice_status sluice_transfer_metrics(sluice_transfer* transfer, sluice_metric* metrics,
                                      int64_t* count) {
  return Guard("sluice_transfer_metrics", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckTransfer(transfer));
    return sluice::c::WriteMetrics(sluice::c::MetricsOf(transfer->transfer->stats()), metrics,
                                   count);
  });
}

sluice_status sluice_transfer_drop(sluice_transfer* transfer) {
  return Guard("sluice_transfer_drop", [&]() -> absl::Status {
    if (transfer == nullptr) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(CheckTransfer(transfer));
    return sluice::c::Drop(transfer);
  });
}

sluice_status sluice_start(sluice_transfer* transfer, const sluice_views* src,
                           const sluice_views* dst, const sluice_start_options* options,
                           sluice_run* run) {
  return Guard("sluice_start", [&]() -> absl::Status {
    sluice::c::Clear(run);
    SLUICE_RETURN_IF_ERROR(CheckTransfer(transfer));
    return sluice::c::StartRun(transfer, src, dst, options, run);
  });
}

sluice_status sluice_wait(sluice_session* session, sluice_run run, double timeout_s) {
  return Guard("sluice_wait", [&]() -> absl::StatusOr<sluice_status> {
    SLUICE_ASSIGN_OR_RETURN(const sluice::Run found, sluice::c::FindRun(session, run));
    SLUICE_ASSIGN_OR_RETURN(const auto timeout, sluice::c::ArgumentTime(timeout_s));
    SLUICE_ASSIGN_OR_RETURN(const bool over, found.WaitFor(timeout));
    return over ? SLUICE_OK : SLUICE_PENDING;
  });
}

int32_t sluice_is_done(const sluice_session* session, sluice_run run) {
  if (session == nullptr) return -1;
  return session->runs.IsOver(run) ? 1 : 0;
}

sluice_status sluice_supply(sluice_session* session, sluice_run run, int64_t tensor,
                            const sluice_views* memory) {
  return Guard("sluice_supply", [&]() -> absl::Status {
    SLUICE_ASSIGN_OR_RETURN(const sluice::Run found, sluice::c::FindRun(session, run));
    if (memory == nullptr) return IsNull("memory");
    if (tensor < 0 || tensor > INT32_MAX) {
      return absl::InvalidArgumentError(absl::StrCat("there is no tensor ", tensor));
    }
    SLUICE_ASSIGN_OR_RETURN(const sluice::TensorView view, sluice::c::ToMemory("memory", *memory));
    return found.Supply(static_cast<int>(tensor), view);
  });
}

sluice_status sluice_cancel(sluice_session* session, sluice_run run) {
  return Guard("sluice_cancel", [&]() -> absl::Status {
    const absl::StatusOr<sluice::Run> found = sluice::c::FindRun(session, run);
    return found.ok() ? found->Cancel() : found.status();
  });
}

int64_t sluice_transfer_version(const sluice_transfer* transfer) {
  if (transfer == nullptr || transfer->connection == nullptr) return 0;
  return transfer->connection->version().value_or(0);
}

sluice_status sluice_next_event(sluice_session* session, sluice_event* event) {
  return Guard("sluice_next_event", [&]() -> absl::StatusOr<sluice_status> {
    SLUICE_RETURN_IF_ERROR(CheckSession(session));
    return sluice::c::NextEvent(session, event);
  });
}
