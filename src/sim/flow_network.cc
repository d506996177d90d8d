// Shares of ports, their clocks, and lists of the flows through each of them.
#include "sim/flow_network.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tensor/check.h"

namespace sluice::sim {
namespace {

constexpr double kPsPerSecond = 1e12;
// An end event's number: the kind, the port, and the low bits of its version.
constexpr int kKindShift = 60;
constexpr int kVersionBits = 28;
constexpr uint32_t kVersionMask = (1u << kVersionBits) - 1;
// Clocks are sums of rounded numbers.
constexpr double kToleranceBytes = 1e-3;

}  // namespace

FlowNetwork::FlowNetwork(const NetworkModel& model, int ranks, uint64_t end_kind)
    : model_(model), ranks_(ranks), end_kind_(end_kind) {
  Port port;
  port.rate = model.port_rate / kPsPerSecond;
  ports_.assign(2 * static_cast<size_t>(ranks), port);
  if (model.kind == NetworkModel::Kind::kNodes) {
    const int nodes = (ranks + model.ranks_per_node - 1) / model.ranks_per_node;
    port.rate = model.nic_rate / kPsPerSecond;
    ports_.insert(ports_.end(),
                  2 * static_cast<size_t>(nodes) * static_cast<size_t>(model.nics_per_node), port);
  }
}

bool FlowNetwork::SameNode(int src, int dst) const {
  return src / model_.ranks_per_node == dst / model_.ranks_per_node;
}

TimePs FlowNetwork::LatencyPs(int src, int dst) const {
  const bool far = model_.kind == NetworkModel::Kind::kNodes && !SameNode(src, dst);
  return std::llround((far ? model_.nic_latency : model_.latency) * kPsPerSecond);
}

std::array<int32_t, 2> FlowNetwork::PortsOf(int src, int dst) const {
  if (model_.kind == NetworkModel::Kind::kPorts || SameNode(src, dst)) {
    return {2 * src + kOut, 2 * dst + kIn};
  }
  const auto nic = [this](int rank) {
    const int node = rank / model_.ranks_per_node;
    return node * model_.nics_per_node + rank % model_.ranks_per_node % model_.nics_per_node;
  };
  return {2 * (ranks_ + nic(src)) + kOut, 2 * (ranks_ + nic(dst)) + kIn};
}

void FlowNetwork::Start(int src, int dst, int64_t bytes, int32_t cookie) {
  int32_t index = static_cast<int32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Flow& flow = FlowAt(index);
  flow.left = static_cast<double>(bytes);
  flow.port = PortsOf(src, dst);
  flow.cookie = cookie;
  flow.held_by = kNeither;
  for (const Side side : {kOut, kIn}) {
    PortAt(flow.port[side]).bytes += bytes;
    Link(index, side);
  }
  ++active_;
}

void FlowNetwork::End(const Event& event, std::vector<int32_t>* cookies) {
  const auto index = static_cast<int32_t>(event.number >> kVersionBits & 0xffffffffu);
  Port& port = PortAt(index);
  if ((port.version & kVersionMask) != (event.number & kVersionMask)) return;
  const double clock = port.ClockAt(event.time) + kToleranceBytes;
  Renew(index);
  while (DropStaleMarks(&port) && port.marks.front().at <= clock) {
    const int32_t ended = port.marks.front().flow;
    Flow& flow = FlowAt(ended);
    ++flow.version;
    Unlink(ended, kOut);
    Unlink(ended, kIn);
    cookies->push_back(flow.cookie);
    free_.push_back(ended);
    --active_;
  }
}

// Takes away the marks on top that are of flows which have ended, or are held back by their other
// port. False if none is left.
bool FlowNetwork::DropStaleMarks(Port* port) {
  while (!port->marks.empty()) {
    const Mark& mark = port->marks.front();
    if (FlowAt(mark.flow).version == mark.version) return true;
    std::pop_heap(port->marks.begin(), port->marks.end(), std::greater<>());
    port->marks.pop_back();
  }
  return false;
}

void FlowNetwork::Settle(TimePs now, EventQueue* queue) {
  for (const int32_t index : touched_) {
    Port& port = PortAt(index);
    port.clock = port.ClockAt(now);
    port.since = now;
    port.share = port.flows > 0 ? port.rate / port.flows : 0;
  }
  for (const int32_t index : touched_) {
    const Side side = index % 2 == kOut ? kOut : kIn;
    for (int32_t flow = PortAt(index).first; flow >= 0; flow = FlowAt(flow).next[side]) {
      HoldBack(flow, now);
    }
    PortAt(index).touched = false;
  }
  touched_.clear();
  for (const int32_t index : renewed_) Schedule(index, now, queue);
  renewed_.clear();
}

// Gives a flow to the port that has less for it.
void FlowNetwork::HoldBack(int32_t index, TimePs now) {
  Flow& flow = FlowAt(index);
  const double out = PortAt(flow.port[kOut]).share;
  const double in = PortAt(flow.port[kIn]).share;
  if (flow.held_by != kNeither && out == in) return;
  const Side side = out <= in ? kOut : kIn;
  if (side == flow.held_by) return;
  if (flow.held_by != kNeither) flow.left -= PortAt(flow.port[flow.held_by]).ClockAt(now);
  Port& port = PortAt(flow.port[side]);
  flow.left = port.ClockAt(now) + std::max(0.0, flow.left);
  flow.held_by = side;
  port.marks.push_back({flow.left, index, ++flow.version});
  std::push_heap(port.marks.begin(), port.marks.end(), std::greater<>());
  Renew(flow.port[side]);
}

void FlowNetwork::Schedule(int32_t index, TimePs now, EventQueue* queue) {
  Port& port = PortAt(index);
  port.renewed = false;
  ++port.version;
  if (!DropStaleMarks(&port)) return;
  const double left = std::max(0.0, port.marks.front().at - port.ClockAt(now));
  queue->Push({now + static_cast<TimePs>(std::ceil(left / port.share)),
               end_kind_ << kKindShift | static_cast<uint64_t>(index) << kVersionBits |
                   (port.version & kVersionMask)});
}

TimePs FlowNetwork::LinkBoundPs() const {
  double longest = 0;
  for (const Port& port : ports_) {
    longest = std::max(longest, static_cast<double>(port.bytes) / port.rate);
  }
  return static_cast<TimePs>(std::ceil(longest));
}

void FlowNetwork::Touch(int32_t index) {
  Port& port = PortAt(index);
  Renew(index);
  if (port.touched) return;
  port.touched = true;
  touched_.push_back(index);
}

void FlowNetwork::Renew(int32_t index) {
  Port& port = PortAt(index);
  if (port.renewed) return;
  port.renewed = true;
  renewed_.push_back(index);
}

void FlowNetwork::Link(int32_t index, Side side) {
  Flow& flow = FlowAt(index);
  Port& port = PortAt(flow.port[side]);
  flow.previous[side] = -1;
  flow.next[side] = port.first;
  if (port.first >= 0) FlowAt(port.first).previous[side] = index;
  port.first = index;
  ++port.flows;
  Touch(flow.port[side]);
}

void FlowNetwork::Unlink(int32_t index, Side side) {
  const Flow& flow = FlowAt(index);
  Port& port = PortAt(flow.port[side]);
  if (flow.previous[side] >= 0) {
    FlowAt(flow.previous[side]).next[side] = flow.next[side];
  } else {
    port.first = flow.next[side];
  }
  if (flow.next[side] >= 0) FlowAt(flow.next[side]).previous[side] = flow.previous[side];
  --port.flows;
  SLUICE_CHECK(port.flows >= 0, "a port with fewer than no flows");
  Touch(flow.port[side]);
}

}  // namespace sluice::sim
