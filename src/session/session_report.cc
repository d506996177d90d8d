// One entry for each other rank, and the text that joins equal ones.
#include "session/session_report.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "session/peers/agreement.h"

namespace sluice {
namespace {

// Messages carry what the kernel does not copy.
WireReport DirectWire(DirectNode* node, int peer, const WireReport& messages) {
  WireReport report;
  report.wire = "direct";
  report.why = "shared memory of this node";
  const DirectPeer& other = node->peers()[static_cast<size_t>(node->PeerOf(peer))];
  if (other.reads() && other.writes_here()) return report;
  absl::StrAppend(&report.why, ", for memory from AllocateShared; other memory goes by ",
                  messages.wire, ", because ", DescribeLimit(node->limit()));
  return report;
}

WireReport NearWire(const SessionOptions& options, const RunTransport& carrier, int peer,
                    WireReport messages) {
  if (carrier.direct != nullptr) return DirectWire(&carrier.direct->node(), peer, messages);
  if (!carrier.why_not_direct.empty()) {
    messages.fell_back_from = "direct";
    messages.why = carrier.why_not_direct;
  } else if (options.accelerator == nullptr && !options.direct) {
    absl::StrAppend(&messages.why, "; SessionOptions::direct is false");
  }
  return messages;
}

WireReport WireTo(const Fabric& fabric, const SessionOptions& options, const RunTransport& carrier,
                  int peer) {
  WireReport report;
  const absl::Span<const int> nodes = fabric.node_of_rank();
  const int node = nodes[static_cast<size_t>(peer)];
  if (options.transport != nullptr) {
    report.wire = options.transport->name();
    report.why = "SessionOptions::transport";
  } else {
    report = fabric.DescribeWire(peer);
    if (node == nodes[static_cast<size_t>(fabric.rank())]) {
      report = NearWire(options, carrier, peer, std::move(report));
    }
  }
  if (options.accelerator != nullptr && carrier.transport != nullptr &&
      !carrier.transport->traits().takes_device_memory) {
    absl::StrAppend(&report.why, "; device memory goes through the host");
  }
  report.rank = peer;
  report.node = node;
  return report;
}

std::string TextOf(const WireReport& wire) {
  return absl::StrCat(
      wire.wire, wire.library.empty() ? "" : absl::StrCat(" by ", wire.library),
      wire.fell_back_from.empty() ? "" : absl::StrCat(", not ", wire.fell_back_from), " (",
      wire.why, ")");
}

}  // namespace

SessionReport MakeSessionReport(const Fabric& fabric, const SessionOptions& options,
                                const RunTransport& carrier) {
  SessionReport report;
  report.rank = fabric.rank();
  for (int peer = 0; peer < fabric.size(); ++peer) {
    if (peer != fabric.rank()) report.wires.push_back(WireTo(fabric, options, carrier, peer));
  }
  return report;
}

std::string SessionReport::ToString() const {
  std::vector<std::pair<std::string, std::vector<int>>> groups;  // in the order of first ranks
  for (const WireReport& wire : wires) {
    const std::string text = TextOf(wire);
    auto group = groups.begin();
    while (group != groups.end() && group->first != text) ++group;
    if (group == groups.end()) group = groups.insert(group, {text, {}});
    group->second.push_back(wire.rank);
  }
  std::string text = absl::StrCat("rank ", rank);
  if (groups.empty()) absl::StrAppend(&text, " is alone");
  for (const auto& [what, ranks] : groups) {
    absl::StrAppend(&text, &what == &groups.front().first ? "" : ";", " to ",
                    NamedRanks(ranks).text(), ": ", what);
  }
  return text;
}

}  // namespace sluice
