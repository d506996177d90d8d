// Names and ranges of the flags.
#include "gpu/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/flag_list.h"
#include "job/flags.h"

namespace sluice::bench {
namespace {

absl::Status CheckName(const std::string& flag, const std::string& name,
                       const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": there is no \"", name, "\"; there are: ", absl::StrJoin(known, ", ")));
}

}  // namespace

void AddGpuFlags(CLI::App* app, GpuOptions* o) {
  const char* group = "GPU";
  AddFlags(
      app,
      FlagGroups{
          {group,
           {{"--device", &o->device, "memory of both sides: cpu or cuda [cpu]"},
            {"--src-device", &o->src_device, "memory of the sources [as --device]"},
            {"--dst-device", &o->dst_device, "memory of the targets [as --device]"},
            {"--transport", &o->transport_text,
             "direct (one copy between ranks of a node, mpi between nodes; host memory), mpi "
             "(device memory: through pinned memory), nccl, or cuda_ipc (ranks of one node) "
             "[direct for host memory, otherwise mpi]"},
            {"--max-channels-per-peer", &o->max_channels_per_peer,
             "most channels of NCCL to one rank: each takes memory [NCCL's choice]", Within(1, 64)},
            {"--min-ctas", &o->min_ctas, "least thread blocks of an NCCL kernel", Within(1, 64)},
            {"--max-ctas", &o->max_ctas, "most thread blocks of an NCCL kernel", Within(1, 64)},
            {"--register-staging", &o->register_staging,
             "stage every bucket in memory that NCCL registers [straight from and into "
             "tensors]"}}}});
  OrAuto(app->add_option("--gpu", o->ordinal,
                         "number of this rank's device [auto: its place on the host]")
             ->check(CLI::Range(-1, 1023))
             ->group(group),
         "-1");
}

absl::Status CheckGpuOptions(GpuOptions* options) {
  for (std::string* side : {&options->src_device, &options->dst_device}) {
    if (side->empty()) *side = options->device;
  }
  options->transport = options->uses_device() ? "mpi" : "direct";
  if (!options->transport_text.empty()) options->transport = options->transport_text;
  const std::vector<std::string> devices = {"cpu", "cuda"};
  absl::Status status = CheckName("--device", options->device, devices);
  if (status.ok()) status = CheckName("--src-device", options->src_device, devices);
  if (status.ok()) status = CheckName("--dst-device", options->dst_device, devices);
  if (status.ok()) {
    status = CheckName("--transport", options->transport, {"direct", "mpi", "nccl", "cuda_ipc"});
  }
  if (!status.ok()) return status;
  if (options->transport == "direct" && options->uses_device()) {
    return absl::InvalidArgumentError("--transport direct is for host memory");
  }
  const bool ctas = options->min_ctas > 0 || options->max_ctas > 0;
  const bool for_nccl = ctas || options->max_channels_per_peer > 0 || options->register_staging;
  if (options->transport != "nccl" && for_nccl) {
    return absl::InvalidArgumentError(
        "--max-channels-per-peer, --min-ctas, --max-ctas and --register-staging go with "
        "--transport nccl");
  }
  if (ctas && options->max_ctas > 0 && options->min_ctas > options->max_ctas) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min-ctas ", options->min_ctas, " is above --max-ctas ", options->max_ctas));
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
