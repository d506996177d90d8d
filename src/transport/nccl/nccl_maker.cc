// Makes NCCL transports for users.
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/nccl.h"
#include "transport/nccl/nccl_transport.h"

namespace sluice {
namespace {

constexpr char kChannelsVariable[] = "NCCL_MAX_P2P_NCHANNELS";
// NCCL's own maximum between GPUs of one node.
constexpr int kChannelsMax = 32;
constexpr int kCtasMax = 64;  // MAXCHANNELS of NCCL

absl::Status CheckOption(absl::string_view name, const absl::optional<int>& value, int max) {
  if (!value || (*value >= 1 && *value <= max)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("NcclOptions: ", name, " is ", *value, ", not 1 to ", max));
}

absl::Status CheckOptions(const NcclOptions& options) {
  absl::Status status =
      CheckOption("max_channels_per_peer", options.max_channels_per_peer, kCtasMax);
  status.Update(CheckOption("min_ctas", options.min_ctas, kCtasMax));
  status.Update(CheckOption("max_ctas", options.max_ctas, kCtasMax));
  if (status.ok() && options.min_ctas && options.max_ctas &&
      *options.min_ctas > *options.max_ctas) {
    status = absl::InvalidArgumentError(absl::StrCat("NcclOptions: min_ctas is ", *options.min_ctas,
                                                     ", above max_ctas, ", *options.max_ctas));
  }
  if (status.ok() && options.timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("NcclOptions: timeout is not positive");
  }
  return status;
}

class NcclMaker final : public TransportMaker {
 public:
  NcclMaker(std::shared_ptr<Accelerator> accelerator, const NcclOptions& options)
      : accelerator_(std::move(accelerator)), options_(options) {}

  std::string name() const override { return "nccl"; }

  absl::StatusOr<std::unique_ptr<Transport>> Open(Fabric* fabric, Device* device) override {
    auto comm = NcclCommunicator::Connect(fabric, QueueOf(device, name()), options_);
    if (!comm.ok()) return comm.status();
    return std::make_unique<NcclTransport>(*std::move(comm), options_.register_staging);
  }

 private:
  const std::shared_ptr<Accelerator> accelerator_;  // outlives the transports
  const NcclOptions options_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<TransportMaker>> MakeNcclTransport(
    std::shared_ptr<Accelerator> accelerator, const NcclOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  if (options.max_channels_per_peer) {
    setenv(kChannelsVariable, absl::StrCat(*options.max_channels_per_peer).c_str(), 0);
  }
  return std::make_shared<NcclMaker>(std::move(accelerator), options);
}

int64_t NcclBytesEstimate(int peers, int channels) {
  constexpr int64_t kPerDirection = int64_t{10} << 20;
  return 2 * kPerDirection * peers * (channels > 0 ? channels : kChannelsMax);
}

}  // namespace sluice
