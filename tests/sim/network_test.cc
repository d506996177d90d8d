// Shares of ports, against the definition and by hand.
#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "sim/flow_network.h"

namespace sluice::sim {
namespace {

constexpr double kRate = 1e9;  // a byte takes a nanosecond
constexpr TimePs kPsPerByte = 1000;

// Bytes that go from one rank to another, from a time on.
struct OracleFlow {
  int src = 0;
  int dst = 0;
  double bytes = 0;
  double begin_s = 0;
};

// When each of the flows ends, in seconds. Every rank has one port of `rate` bytes per second each
// way. A flow gets the smaller of its ports' equal shares. From one change to the next everything
// is computed anew: count, divide, find the first end.
std::vector<double> EndsByDefinition(const std::vector<OracleFlow>& flows, double rate) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> left, ends(flows.size(), kNever);
  for (const OracleFlow& flow : flows) left.push_back(flow.bytes);
  double now = 0;
  while (std::count(ends.begin(), ends.end(), kNever) > 0) {
    std::map<int, int> out, in;
    const auto flows_now = [&](size_t i) { return flows[i].begin_s <= now && ends[i] == kNever; };
    for (size_t i = 0; i < flows.size(); ++i) {
      if (!flows_now(i)) continue;
      ++out[flows[i].src];
      ++in[flows[i].dst];
    }
    const auto rate_of = [&](size_t i) {
      return std::min(rate / out[flows[i].src], rate / in[flows[i].dst]);
    };
    double next = kNever;
    for (size_t i = 0; i < flows.size(); ++i) {
      if (flows_now(i)) next = std::min(next, now + left[i] / rate_of(i));
      if (flows[i].begin_s > now) next = std::min(next, flows[i].begin_s);
    }
    std::vector<size_t> over;
    for (size_t i = 0; i < flows.size(); ++i) {
      if (!flows_now(i)) continue;
      left[i] -= rate_of(i) * (next - now);
      if (left[i] <= 1e-6 * flows[i].bytes) over.push_back(i);
    }
    now = next;
    for (const size_t i : over) ends[i] = now;
  }
  return ends;
}

NetworkModel Ports() {
  NetworkModel model = *NetworkModelNamed("ports");
  model.port_rate = kRate;
  return model;
}

// When flow i of `flows` ends, in ps.
std::vector<TimePs> Ends(const NetworkModel& model, int ranks,
                         const std::vector<OracleFlow>& flows) {
  constexpr uint64_t kEnd = 3;
  FlowNetwork network(model, ranks, kEnd);
  EventQueue queue;
  const auto begin_of = [&](size_t i) { return static_cast<TimePs>(flows[i].begin_s * 1e12); };
  for (size_t i = 0; i < flows.size(); ++i) queue.Push({begin_of(i), i});
  std::vector<TimePs> ends(flows.size(), -1);
  while (!queue.empty()) {
    const TimePs now = queue.top().time;
    while (!queue.empty() && queue.top().time == now) {
      const Event event = queue.top();
      queue.Pop();
      if (event.number < flows.size()) {
        const OracleFlow& flow = flows[event.number];
        network.Start(flow.src, flow.dst, static_cast<int64_t>(flow.bytes),
                      static_cast<int32_t>(event.number));
        continue;
      }
      std::vector<int32_t> ended;
      network.End(event, &ended);
      for (const int32_t flow : ended) ends[static_cast<size_t>(flow)] = now;
    }
    network.Settle(now, &queue);
  }
  EXPECT_EQ(network.active(), 0);
  return ends;
}

TEST(FlowNetworkTest, AFlowGetsTheSmallerShareOfItsPorts) {
  // Rank 2 receives three flows: each has a third, also that of rank 3, which sends nothing else.
  // What rank 0 has left is not given to its second flow.
  const std::vector<TimePs> ends =
      Ends(Ports(), 5, {{0, 2, 1000}, {1, 2, 1000}, {3, 2, 1000}, {0, 4, 1000}});
  EXPECT_EQ(ends, (std::vector<TimePs>{3000 * kPsPerByte, 3000 * kPsPerByte, 3000 * kPsPerByte,
                                       2000 * kPsPerByte}));
}

TEST(FlowNetworkTest, EmptyFlowsEndAtOnce) {
  EXPECT_EQ(Ends(Ports(), 2, {{0, 1, 0}, {0, 1, 10}}), (std::vector<TimePs>{0, 10 * kPsPerByte}));
}

TEST(FlowNetworkTest, RanksOfANodeShareItsNics) {
  NetworkModel model = *NetworkModelNamed("nodes");
  model.ranks_per_node = 4;
  model.nics_per_node = 2;
  model.port_rate = 10 * kRate;
  model.nic_rate = kRate;
  // Ranks 0 and 2 use the first NIC, 1 the second; within the node nobody does.
  const std::vector<TimePs> ends =
      Ends(model, 8, {{0, 4, 1000}, {2, 6, 1000}, {1, 5, 1000}, {0, 3, 1000}});
  EXPECT_EQ(ends, (std::vector<TimePs>{2000 * kPsPerByte, 2000 * kPsPerByte, 1000 * kPsPerByte,
                                       100 * kPsPerByte}));
}

TEST(FlowNetworkTest, LatencyDependsOnTheNode) {
  NetworkModel model = *NetworkModelNamed("h100");
  model.latency = 1e-6;
  model.nic_latency = 4e-6;
  const FlowNetwork network(model, 16, 0);
  EXPECT_EQ(network.LatencyPs(0, 7), 1000000);
  EXPECT_EQ(network.LatencyPs(7, 8), 4000000);
}

TEST(FlowNetworkTest, LinkBoundIsOfTheBusiestPort) {
  FlowNetwork network(Ports(), 3, 0);
  network.Start(0, 1, 100, 0);
  network.Start(0, 2, 200, 1);
  network.Start(1, 2, 150, 2);
  EXPECT_EQ(network.LinkBoundPs(), 350 * kPsPerByte);
}

TEST(FlowNetworkTest, AgreesWithTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 6);
    std::vector<OracleFlow> flows(1 + random() % 24);
    for (OracleFlow& flow : flows) {
      flow.src = static_cast<int>(random()) & 0xff;
      flow.src %= ranks;
      flow.dst = (flow.src + 1 + static_cast<int>(random() % 1000) % (ranks - 1)) % ranks;
      // Few sizes and times, so that many things happen together.
      flow.bytes = 1000.0 * static_cast<double>(1 + random() % 4);
      flow.begin_s = 1e-6 * static_cast<double>(random() % 4);
    }
    const std::vector<TimePs> ends = Ends(Ports(), ranks, flows);
    const std::vector<double> expected = EndsByDefinition(flows, kRate);
    for (size_t i = 0; i < flows.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(ends[i]), expected[i] * 1e12, 2e3)
          << "round " << round << ", flow " << i;  // clocks are whole ps, and add up
    }
  }
}

TEST(NetworkModelTest, BadOnesAreRefused) {
  EXPECT_EQ(NetworkModelNamed("none").status().code(), absl::StatusCode::kNotFound);
  for (const std::string& name : NetworkModelNames()) {
    EXPECT_TRUE(ValidateNetworkModel(*NetworkModelNamed(name)).ok()) << name;
    EXPECT_NE(NetworkModelNamed(name)->Describe().find(name), std::string::npos);
  }
  NetworkModel model;
  model.port_rate = 0;
  EXPECT_EQ(ValidateNetworkModel(model).code(), absl::StatusCode::kInvalidArgument);
  model = NetworkModel();
  model.latency = -1;
  EXPECT_EQ(ValidateNetworkModel(model).code(), absl::StatusCode::kInvalidArgument);
  model = NetworkModel();
  model.nics_per_node = 0;
  EXPECT_EQ(ValidateNetworkModel(model).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::sim
