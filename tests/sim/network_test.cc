// Shares of ports, against the definition and by hand.
#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "sim/flow_network.h"
#include "sim/fluid_oracle.h"

namespace sluice::sim {
namespace {

constexpr double kRate = 1e9;  // a byte takes a nanosecond
constexpr TimePs kPsPerByte = 1000;

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

TEST(FlowNetworkTest, OneFlowHasItsPortsToItself) {
  EXPECT_EQ(Ends(Ports(), 2, {{0, 1, 5000}}), std::vector<TimePs>{5000 * kPsPerByte});
}

TEST(FlowNetworkTest, FlowsShareAPortEqually) {
  // Two halves until the short one ends, then all for the other.
  EXPECT_EQ(Ends(Ports(), 3, {{0, 1, 1000}, {0, 2, 3000}}),
            (std::vector<TimePs>{2000 * kPsPerByte, 4000 * kPsPerByte}));
}

TEST(FlowNetworkTest, AFlowGetsTheSmallerShareOfItsPorts) {
  // Rank 2 receives three flows: each has a third, also that of rank 3, which sends nothing else.
  // What rank 0 has left is not given to its second flow.
  const std::vector<TimePs> ends =
      Ends(Ports(), 5, {{0, 2, 1000}, {1, 2, 1000}, {3, 2, 1000}, {0, 4, 1000}});
  EXPECT_EQ(ends, (std::vector<TimePs>{3000 * kPsPerByte, 3000 * kPsPerByte, 3000 * kPsPerByte,
                                       2000 * kPsPerByte}));
}

TEST(FlowNetworkTest, TheOtherDirectionIsAnotherPort) {
  EXPECT_EQ(Ends(Ports(), 2, {{0, 1, 1000}, {1, 0, 1000}}),
            (std::vector<TimePs>{1000 * kPsPerByte, 1000 * kPsPerByte}));
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
