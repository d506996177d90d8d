// The presets, and what a model's parameters may be.
#include "sim/network_model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice::sim {
namespace {

// A copy reads what it writes, and reaches about this much of the memory's rate.
constexpr double kCopyEfficiency = 0.7;
constexpr double CopyRate(double memory_rate) { return kCopyEfficiency * memory_rate / 2; }

std::vector<NetworkModel> Presets() {
  NetworkModel ports;
  NetworkModel nodes;
  nodes.name = "nodes";
  nodes.kind = NetworkModel::Kind::kNodes;
  nodes.port_rate = 450e9;
  nodes.latency = 3e-6;
  nodes.nics_per_node = 1;
  NetworkModel h100 = nodes;
  h100.name = "h100";
  h100.nics_per_node = 8;
  h100.copy_rate = CopyRate(3.35e12);
  NetworkModel gb200 = h100;
  gb200.name = "gb200";
  gb200.ranks_per_node = 72;
  gb200.nics_per_node = 72;
  gb200.port_rate = 900e9;
  gb200.copy_rate = CopyRate(8e12);
  return {ports, nodes, h100, gb200};
}

std::string Gigabytes(double rate) { return absl::StrCat(rate / 1e9, " GB/s"); }
std::string Microseconds(double seconds) { return absl::StrCat(seconds * 1e6, " us"); }

absl::Status OutOfRange(absl::string_view parameter, double value, absl::string_view range) {
  return absl::InvalidArgumentError(
      absl::StrCat("network model: ", parameter, " is ", value, "; it must be ", range));
}

}  // namespace

std::string NetworkModel::Describe() const {
  std::string text =
      absl::StrCat(name, " (", Gigabytes(port_rate), " per port, ", Microseconds(latency));
  if (kind == Kind::kNodes) {
    absl::StrAppend(&text, "; nodes of ", ranks_per_node, " ranks with ", nics_per_node,
                    " NICs of ", Gigabytes(nic_rate), ", ", Microseconds(nic_latency));
  }
  absl::StrAppend(&text, "; ", copies_block ? "blocking copies " : "copies ", Gigabytes(copy_rate),
                  ", ", Microseconds(copy_latency), folds ? "; folds)" : ")");
  return text;
}

absl::StatusOr<NetworkModel> NetworkModelNamed(absl::string_view name) {
  for (NetworkModel& model : Presets()) {
    if (model.name == name) return std::move(model);
  }
  return absl::NotFoundError(absl::StrCat("there is no network model '", name, "'; there are ",
                                          absl::StrJoin(NetworkModelNames(), ", ")));
}

std::vector<std::string> NetworkModelNames() {
  std::vector<std::string> names;
  for (const NetworkModel& model : Presets()) names.push_back(model.name);
  return names;
}

absl::Status ValidateNetworkModel(const NetworkModel& model) {
  struct Check {
    absl::string_view name;
    double value;
    double least;
    double most;
    absl::string_view range;
  };
  constexpr absl::string_view kRates = "1e6 to 1e15 bytes per second";
  constexpr absl::string_view kTimes = "0 to 1 second";
  constexpr absl::string_view kCounts = "1 to 65536";
  const Check checks[] = {
      {"port_rate", model.port_rate, 1e6, 1e15, kRates},
      {"nic_rate", model.nic_rate, 1e6, 1e15, kRates},
      {"copy_rate", model.copy_rate, 1e6, 1e15, kRates},
      {"latency", model.latency, 0, 1, kTimes},
      {"nic_latency", model.nic_latency, 0, 1, kTimes},
      {"copy_latency", model.copy_latency, 0, 1, kTimes},
      {"ranks_per_node", static_cast<double>(model.ranks_per_node), 1, 65536, kCounts},
      {"nics_per_node", static_cast<double>(model.nics_per_node), 1, 65536, kCounts},
  };
  for (const Check& check : checks) {
    if (!(check.value >= check.least && check.value <= check.most)) {
      return OutOfRange(check.name, check.value, check.range);
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice::sim
