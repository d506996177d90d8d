// Reads ranges of one object over HTTP through a source, in turns with `curl --parallel` at equally
// many connections. The server is whoever is at the URL. Not a test: bytes are not looked at.
//
// usage: http_bench BASE_URL NAME OBJECT_BYTES RANGE_BYTES READS CONNECTIONS PAIRS
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "storage/http/http_source.h"

namespace sluice {
namespace {

struct Load {
  std::string base;
  std::string name;
  int64_t object_bytes = 0;
  int64_t range_bytes = 0;
  int reads = 0;
  int connections = 0;
  int64_t Offset(int read) const { return read % (object_bytes / range_bytes) * range_bytes; }
};

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of RUSAGE_SELF or RUSAGE_CHILDREN.
double CpuSeconds(int who) {
  rusage usage;
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// As many reads are started as there are slots; each slot is filled again as soon as it is free.
class SourceLoad {
 public:
  explicit SourceLoad(const Load& load) : load_(load) {
    const size_t slots = 2 * static_cast<size_t>(load.connections);
    const auto bytes = static_cast<size_t>((load.range_bytes + 4095) / 4096 * 4096);
    for (size_t i = 0; i < slots; ++i) {
      slots_.push_back(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
      std::fill_n(slots_.back(), bytes, std::byte{1});
    }
  }
  ~SourceLoad() {
    for (std::byte* slot : slots_) std::free(slot);
  }

  double Run(Source* source) {
    const double begin = NowSeconds();
    next_ = 0;
    for (size_t i = 0; i < slots_.size(); ++i) Read(source, i);
    std::vector<ReadEvent> events(64);
    for (int ended = 0; ended < load_.reads;) {
      pollfd wait = {.fd = source->ready_fd(), .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
      absl::StatusOr<int> count = source->Poll(absl::MakeSpan(events));
      if (!count.ok()) Fail(count.status());
      for (int i = 0; i < *count; ++i) {
        const ReadEvent& event = events[static_cast<size_t>(i)];
        if (!event.status.ok()) Fail(event.status);
        Read(source, static_cast<size_t>(event.cookie));
      }
      ended += *count;
    }
    return NowSeconds() - begin;
  }

 private:
  void Read(Source* source, size_t slot) {
    if (next_ == load_.reads) return;
    const ReadOp op = {.offset = load_.Offset(next_++),
                       .bytes = load_.range_bytes,
                       .data = slots_[slot],
                       .cookie = slot};
    const absl::Status status = source->Start(absl::MakeConstSpan(&op, 1));
    if (!status.ok()) Fail(status);
  }

  const Load& load_;
  std::vector<std::byte*> slots_;
  int next_ = 0;
};

double RunCurl(const Load& load) {
  const std::string config = "/tmp/http_bench.curl";
  std::ofstream file(config);
  for (int i = 0; i < load.reads; ++i) {
    const int64_t offset = load.Offset(i);
    file << (i == 0 ? "" : "next\n") << "url=" << load.base << load.name << "\nrange=" << offset
         << "-" << offset + load.range_bytes - 1 << "\noutput=/dev/null\n";
  }
  file.close();
  const std::string command = "curl --silent --fail --parallel --parallel-max " +
                              std::to_string(load.connections) + " -K " + config + " 2>/dev/null";
  const double begin = NowSeconds();
  if (std::system(command.c_str()) != 0) Fail(absl::UnknownError("curl failed"));
  return NowSeconds() - begin;
}

int Main(char** argv) {
  const Load load = {
      argv[1],           argv[2], std::atoll(argv[3]), std::atoll(argv[4]), std::atoi(argv[5]),
      std::atoi(argv[6])};
  HttpOptions options;
  options.connections_per_host = options.connections_max = load.connections;
  absl::StatusOr<std::unique_ptr<Source>> source = MakeHttpSource(load.base, {load.name}, options);
  if (!source.ok()) Fail(source.status());
  SourceLoad ours(load);
  std::vector<double> ratios;
  const double gigabytes = static_cast<double>(load.range_bytes) * load.reads / 1e9;
  for (int pair = 0; pair < std::atoi(argv[7]); ++pair) {
    const double own = ours.Run(source->get());
    const double curl = RunCurl(load);
    ratios.push_back(curl / own);
    std::printf("source %.2f GB/s, curl %.2f GB/s, ratio %.3f\n", gigabytes / own, gigabytes / curl,
                ratios.back());
    std::fflush(stdout);
  }
  const double read = gigabytes * static_cast<double>(ratios.size());
  std::printf("CPU seconds per GB: source %.3f, curl %.3f\n", CpuSeconds(RUSAGE_SELF) / read,
              CpuSeconds(RUSAGE_CHILDREN) / read);
  std::sort(ratios.begin(), ratios.end());
  const SourceCounters& counters = (*source)->counters();
  const auto requests = static_cast<double>(counters.requests);
  std::printf("median ratio %.3f, %.3f to %.3f; reuse %.4f\n", ratios[ratios.size() / 2],
              ratios.front(), ratios.back(),
              1 - static_cast<double>(counters.connections) / requests);
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr,
                 "usage: http_bench BASE_URL NAME OBJECT_BYTES RANGE_BYTES READS CONNECTIONS "
                 "PAIRS\n");
    return 2;
  }
  return sluice::Main(argv);
}
