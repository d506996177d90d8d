// A session's checkpoints: loaded and saved by all ranks together.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINTS_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINTS_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "session/base/memory_rules.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "session/peers/peers.h"
#include "sluice/checkpoint.h"
#include "sluice/session.h"
#include "sluice/transport.h"

namespace sluice {

class CheckpointFiles;
struct CheckpointInput;
class CheckpointRun;
struct CheckpointRunParts;
class Sink;
struct SourceAddress;
struct StoredArrays;

// All calls are collective, and wait; no run is in flight. `rules`: what the session's device
// takes. Errors are those of Session. Thread: the session's.
class Checkpoints {
 public:
  // Both must outlive this object.
  Checkpoints(Peers* peers, const SessionOptions* options) : peers_(peers), options_(options) {}

  absl::StatusOr<CheckpointStats> Load(const std::string& uri,
                                       absl::Span<const CheckpointTensor> tensors,
                                       const CheckpointOptions& options, const MemoryRules& rules);
  absl::StatusOr<CheckpointInfo> Info(const std::string& uri, const CheckpointOptions& options);
  absl::StatusOr<CheckpointStats> Save(const std::string& directory,
                                       absl::Span<const CheckpointTensor> tensors,
                                       const CheckpointOptions& options, const MemoryRules& rules);

 private:
  absl::Status UseCatalog(const std::string& uri, absl::Span<const CheckpointTensor> tensors,
                          const CheckpointOptions& options, const MemoryRules& rules,
                          CheckpointInput* input, StoredArrays* arrays);
  absl::Status AgreeOnInput(const char* call, const CheckpointInput& input, size_t tensors);
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport();
  absl::StatusOr<std::unique_ptr<Device>> OpenDevice();
  // `find`: how rank 0 finds it.
  absl::StatusOr<CheckpointCatalog> ShareCatalog(
      const CheckpointOptions& options, Transport* transport,
      absl::FunctionRef<absl::StatusOr<CheckpointCatalog>(const WorkStop&)> find);
  // Passes what rank 0 finds on to all ranks, as text.
  absl::Status ShareFound(const char* call, const CheckpointOptions& options, Transport* transport,
                          OwnWorkFunction find, std::string* text);
  // Whether each rank takes its parts from a mapping by itself: all are on one node, and may.
  absl::StatusOr<bool> SharesMapping(const SourceAddress& address, const CheckpointRunParts& parts,
                                     const absl::Status& own);
  // Carries `run` on until it is done on all ranks.
  absl::Status Carry(const char* call, const CheckpointOptions& options, CheckpointRun* run);
  absl::StatusOr<CheckpointStats> SaveInto(CheckpointFiles* files, std::unique_ptr<Sink>* sink,
                                           const std::string& directory,
                                           absl::Span<const CheckpointTensor> tensors,
                                           const CheckpointOptions& options,
                                           const MemoryRules& rules);

  Peers* const peers_;
  const SessionOptions* const options_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_CHECKPOINTS_H_
