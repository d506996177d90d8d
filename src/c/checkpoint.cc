// Checkpoints: loads and saves.
#include "sluice/checkpoint.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "c/call.h"
#include "c/convert.h"
#include "c/handles.h"
#include "c/metrics.h"
#include "c/structs.h"
#include "session/checkpoint/describe_checkpoint.h"
#include "tensor/error_text.h"

namespace sluice::c {
namespace {

absl::Status SetTensor(absl::string_view name, const sluice_checkpoint_tensor& given,
                       LayoutReader* layouts, CheckpointTensor* tensor) {
  SLUICE_RETURN_IF_ERROR(SetPart(name, given, layouts, tensor));
  if (given.ndim == 0) tensor->shape.clear();
  if (given.file_dtype != SLUICE_NO_DTYPE) {
    SLUICE_ASSIGN_OR_RETURN(tensor->file_dtype,
                            ToDType(absl::StrCat(name, ".file_dtype"), given.file_dtype));
  }
  return absl::OkStatus();
}

struct CheckpointCall {
  std::string place;
  std::vector<CheckpointTensor> tensors;
  CheckpointOptions options;
};

absl::Status ReadTensors(const sluice_checkpoint_tensor* tensors, int64_t count,
                         CheckpointCall* call) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<sluice_checkpoint_tensor> given,
                          ReadArray("tensors", tensors, count));
  call->tensors.resize(given.size());
  LayoutReader layouts;
  for (size_t t = 0; t < given.size(); ++t) {
    const std::string name = absl::StrCat("tensors[", t, "]");
    SLUICE_RETURN_IF_ERROR(SetTensor(name, given[t], &layouts, &call->tensors[t]));
  }
  return absl::OkStatus();
}

std::vector<int64_t> NumbersOf(const int64_t* numbers, int32_t count) {
  if (numbers == nullptr) return {};
  return std::vector<int64_t>(numbers, numbers + count);
}

absl::Status ReadCatalog(const sluice_checkpoint_entry* entries, int64_t count,
                         std::vector<CheckpointEntry>* catalog) {
  if (entries == nullptr && count == 0) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(const std::vector<sluice_checkpoint_entry> given,
                          ReadArray("catalog", entries, count));
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string name = absl::StrCat("catalog[", i, "]");
    const sluice_checkpoint_entry& one = given[i];
    if (one.ndim < 0 || one.ndim > kMaxTensorDims) {
      return absl::InvalidArgumentError(absl::StrCat(name, ".ndim is ", one.ndim));
    }
    if (one.ndim > 0 && one.shape == nullptr) return IsNull(absl::StrCat(name, ".shape"));
    CheckpointEntry& entry = catalog->emplace_back();
    entry.tensor = TextOf(one.tensor);
    entry.file = TextOf(one.file);
    entry.begin = one.begin;
    entry.bytes = one.bytes;
    SLUICE_ASSIGN_OR_RETURN(entry.dtype, ToDType(absl::StrCat(name, ".dtype"), one.dtype));
    entry.shape = NumbersOf(one.shape, one.ndim);
    entry.strides = NumbersOf(one.strides, one.ndim);
    entry.offset = NumbersOf(one.offset, one.ndim);
  }
  return absl::OkStatus();
}

absl::Status ReadCheckpointOptions(const sluice_checkpoint_options* given,
                                   CheckpointOptions* options) {
  sluice_checkpoint_options read;
  SLUICE_RETURN_IF_ERROR(ReadOptions("sluice_checkpoint_options", given, &read));
  options->ca_file = TextOf(read.ca_file);
  options->s3.endpoint = TextOf(read.s3_endpoint);
  options->s3.region = TextOf(read.s3_region);
  if (read.budget_bytes != 0) options->budget_bytes = read.budget_bytes;
  if (read.slots != 0) options->slots = read.slots;
  if (read.piece_bytes != 0) options->piece_bytes = read.piece_bytes;
  if (read.shard_bytes_max != 0) options->shard_bytes_max = read.shard_bytes_max;
  if (read.attempts_max != 0) options->retry.attempts_max = read.attempts_max;
  if (read.connections != 0) options->connections = read.connections;
  SLUICE_RETURN_IF_ERROR(ReadCatalog(read.catalog, read.num_entries, &options->catalog));
  SLUICE_RETURN_IF_ERROR(ReadTime("timeout_s", read.timeout_s, &options->timeout));
  SLUICE_RETURN_IF_ERROR(ReadTime("backoff_s", read.backoff_s, &options->retry.backoff));
  return ReadTime("request_timeout_s", read.request_timeout_s, &options->retry.request_timeout);
}

// Reads this rank's call.
absl::Status ReadCall(absl::string_view place_name, const char* place,
                      const sluice_checkpoint_tensor* tensors, int64_t num_tensors,
                      const sluice_checkpoint_options* options, const sluice_metric* metrics,
                      const int64_t* count, CheckpointCall* call) {
  return Try([&] {
    absl::Status read = place == nullptr ? IsNull(place_name) : absl::OkStatus();
    call->place = TextOf(place);
    read.Update(CheckMetricsRoom(metrics, count));
    read.Update(ReadTensors(tensors, num_tensors, call));
    read.Update(ReadCheckpointOptions(options, &call->options));
    return read;
  });
}

absl::Status End(const absl::StatusOr<CheckpointStats>& stats, sluice_metric* metrics,
                 int64_t* count) {
  if (!stats.ok()) return stats.status();
  return WriteMetrics(MetricsOf(*stats), metrics, count);
}

}  // namespace
}  // namespace sluice::c

sluice_status sluice_checkpoint_load(sluice_session* session, const char* uri,
                                     const sluice_checkpoint_tensor* tensors, int64_t num_tensors,
                                     const sluice_checkpoint_options* options,
                                     sluice_metric* metrics, int64_t* count) {
  return sluice::c::Guard("sluice_checkpoint_load", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckSession(session));
    sluice::c::CheckpointCall call;
    const absl::Status own =
        sluice::c::ReadCall("uri", uri, tensors, num_tensors, options, metrics, count, &call);
    if (!own.ok()) return sluice::c::Refuse(session, "LoadCheckpoint", own);
    return sluice::c::End(
        sluice::LoadCheckpoint(session->session.get(), call.place, call.tensors, call.options),
        metrics, count);
  });
}

sluice_status sluice_checkpoint_save(sluice_session* session, const char* directory,
                                     const sluice_checkpoint_tensor* tensors, int64_t num_tensors,
                                     const sluice_checkpoint_options* options,
                                     sluice_metric* metrics, int64_t* count) {
  return sluice::c::Guard("sluice_checkpoint_save", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckSession(session));
    sluice::c::CheckpointCall call;
    const absl::Status own = sluice::c::ReadCall("directory", directory, tensors, num_tensors,
                                                 options, metrics, count, &call);
    if (!own.ok()) return sluice::c::Refuse(session, "SaveCheckpoint", own);
    return sluice::c::End(
        sluice::SaveCheckpoint(session->session.get(), call.place, call.tensors, call.options),
        metrics, count);
  });
}
