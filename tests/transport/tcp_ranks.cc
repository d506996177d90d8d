// Links that find each other by their addresses, without a store.
#include "transport/tcp_ranks.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "session/base/backoff.h"
#include "transport/tcp/tcp_fabric.h"

namespace sluice {
TcpLinksOptions TcpTestOptions(int rank, int size) {
  TcpLinksOptions options;
  options.rank = rank;
  options.size = size;
  options.bind = "127.0.0.1";
  options.secret = "known to all of them";
  options.world = 77;
  return options;
}

std::vector<std::shared_ptr<TcpLinks>> MakeTcpLinks(
    int size, const std::function<void(TcpLinksOptions*)>& change) {
  std::vector<std::shared_ptr<TcpLinks>> links;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < size; ++rank) {
    TcpLinksOptions options = TcpTestOptions(rank, size);
    if (change != nullptr) change(&options);
    auto made = TcpLinks::Listen(options);
    EXPECT_TRUE(made.ok()) << made.status();
    links.push_back(*std::move(made));
    addresses.push_back(links.back()->address());
  }
  for (const auto& each : links) {
    const absl::Status status = each->SetPeers(addresses);
    EXPECT_TRUE(status.ok()) << status;
  }
  return links;
}

void ConnectAll(const std::vector<std::shared_ptr<TcpLinks>>& links) {
  const int size = static_cast<int>(links.size());
  for (const auto& each : links) {
    for (int dst = 0; dst < size; ++dst) {
      if (dst != each->rank()) each->Connect(dst);
    }
  }
  const auto progress = [&links] {
    for (const auto& each : links) each->Progress();
  };
  EXPECT_TRUE(PollAllUntil(progress, [&links, size] {
    for (const auto& each : links) {
      for (int dst = 0; dst < size; ++dst) {
        if (dst != each->rank() && !each->IsConnected(dst)) return false;
      }
    }
    return true;
  })) << "not all are connected";
}

std::vector<std::unique_ptr<Fabric>> MakeTcpFabrics(
    const std::vector<std::shared_ptr<TcpLinks>>& links, int number) {
  std::vector<std::unique_ptr<Fabric>> fabrics;
  for (const auto& each : links) {
    TcpFabricOptions options;
    options.links = each;
    options.number = number;
    for (size_t rank = 0; rank < links.size(); ++rank) {
      options.node_of_rank.push_back(static_cast<int>(rank));
    }
    auto fabric = MakeTcpFabric(std::move(options));
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    fabrics.push_back(*std::move(fabric));
  }
  return fabrics;
}

bool PollAllUntil(const std::function<void()>& progress, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  Backoff idle;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    progress();
    idle.Pause();
  }
  return true;
}

}  // namespace sluice
