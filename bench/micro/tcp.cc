// Messages between two threads over TCP links of loopback: GB/s for one size, several in flight.
//
//   build/bin/micro-bench --benchmark_filter=BM_Tcp --benchmark_min_time=1
//
// Both ends share the machine's cores, so a figure is one of this machine.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "sluice/transport.h"
#include "transport/tcp/tcp_links.h"

namespace sluice {
namespace {

constexpr int kInFlight = 4;

std::vector<std::shared_ptr<TcpLinks>> MakePair() {
  std::vector<std::shared_ptr<TcpLinks>> links;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    TcpLinksOptions options;
    options.rank = rank;
    options.size = 2;
    options.bind = "127.0.0.1";
    links.push_back(*TcpLinks::Listen(options));
    addresses.push_back(links.back()->address());
  }
  for (const auto& each : links) {
    if (!each->SetPeers(addresses).ok()) std::abort();
  }
  return links;
}

// One rank's end of a stream of messages: as many as may be are always in flight.
class Stream {
 public:
  Stream(TcpLinks& links, TransportOp::Kind kind, size_t bytes)
      : kind_(kind), peer_(1 - links.rank()), bytes_(bytes), transport_(*links.OpenTransport(0)) {
    if (!transport_->Reserve(kInFlight).ok()) std::abort();
    for (std::vector<std::byte>& each : memory_) each.assign(bytes, std::byte{1});
    for (uint64_t n = 0; n < kInFlight; ++n) Start(n);
  }
  // How many have ended.
  int Poll() {
    TransportEvent events[kInFlight];
    const absl::StatusOr<int> count = transport_->Poll(absl::MakeSpan(events));
    if (!count.ok()) std::abort();
    for (int i = 0; i < *count; ++i) {
      if (!events[i].status.ok()) {
        std::cerr << events[i].status << "\n";
        std::abort();
      }
      Start(events[i].cookie);
    }
    return *count;
  }

 private:
  void Start(uint64_t n) {
    const TransportOp op = {kind_, peer_, 0, memory_[n].data(), bytes_, n};
    if (!transport_->Start({op}).ok()) std::abort();
  }

  const TransportOp::Kind kind_;
  const int peer_;
  const size_t bytes_;
  std::vector<std::byte> memory_[kInFlight];
  const std::unique_ptr<Transport> transport_;  // ends before its memory
};

void BM_Tcp(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto links = MakePair();
  std::atomic<bool> stop{false};
  std::thread receiver([&] {
    Stream stream(*links[1], TransportOp::Kind::kReceive, bytes);
    while (!stop.load()) {
      if (stream.Poll() == 0) std::this_thread::yield();
    }
  });
  {
    Stream stream(*links[0], TransportOp::Kind::kSend, bytes);
    // The first ones wait for the connection, and for the other thread's memory.
    for (int n = 0; n < 2 * kInFlight;) n += stream.Poll();
    for (auto _ : state) {
      while (stream.Poll() == 0) std::this_thread::yield();
    }
    stop = true;
    receiver.join();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}
BENCHMARK(BM_Tcp)->RangeMultiplier(4)->Range(4 << 10, 64 << 20)->UseRealTime();

}  // namespace
}  // namespace sluice
