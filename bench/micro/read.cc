// micro-bench read: ranges of one object through a source, D of S bytes at a time.
//
// A file is read from end to end, to be set against fio with the same D and S. An object over HTTP
// is read in turns with `curl --parallel` at D connections. Bytes are not looked at.
//
//   micro-bench read FILE --depth 16 --read-bytes 1048576
//   micro-bench read http://HOST/OBJECT --object-bytes N --rounds 5
#include <poll.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "device/host_memory.h"
#include "memory/usage.h"
#include "micro/commands.h"
#include "report/spread.h"
#include "storage/file/file_source.h"
#include "storage/http/http_source.h"
#include "storage/source.h"
#include "tensor/round.h"

namespace sluice::bench {
namespace {

struct ReadOptions {
  std::string object;  // a file's path, or a URL
  int64_t object_bytes = 0;
  int64_t read_bytes = 1 << 20;
  int depth = 16;
  int rounds = 1;
  std::string engine = "uring";
  std::string access = "direct";

  bool is_http() const { return absl::StartsWith(object, "http"); }
  int64_t reads() const { return object_bytes / read_bytes; }
};

absl::StatusOr<std::unique_ptr<Source>> Open(const ReadOptions& o) {
  const std::string path = o.is_http() ? o.object : std::filesystem::absolute(o.object).string();
  const size_t slash = path.rfind('/') + 1;
  if (o.is_http()) {
    HttpOptions options;
    options.connections_per_host = options.connections_max = o.depth;
    return MakeHttpSource(path.substr(0, slash), {path.substr(slash)}, options);
  }
  FileSourceOptions options;
  options.engine = o.engine == "uring" ? FileEngine::kUring : FileEngine::kThreads;
  options.access = o.access == "direct" ? FileAccess::kDirect : FileAccess::kBuffered;
  options.in_flight_max = options.threads_max = o.depth;
  return MakeFileSource(path.substr(0, slash), {path.substr(slash)}, options);
}

// Keeps `slots` reads going until all whole ranges of the object are read.
absl::Status ReadAll(const ReadOptions& o, size_t slots, std::byte* memory, Source* source) {
  std::vector<ReadEvent> events(slots);
  const auto room = static_cast<size_t>(RoundUp(o.read_bytes, kReadAlignment));
  int64_t next = 0;
  const auto read = [&](uint64_t slot) {
    if (next == o.reads()) return absl::OkStatus();
    const ReadOp op = {.offset = next++ * o.read_bytes,
                       .bytes = o.read_bytes,
                       .data = memory + slot * room,
                       .cookie = slot};
    return source->Start(absl::MakeConstSpan(&op, 1));
  };
  absl::Status status;
  for (size_t slot = 0; slot < slots; ++slot) status.Update(read(slot));
  for (int64_t done = 0; status.ok() && done < o.reads();) {
    pollfd wait = {.fd = source->ready_fd(), .events = POLLIN, .revents = 0};
    poll(&wait, 1, -1);
    const absl::StatusOr<int> ended = source->Poll(absl::MakeSpan(events));
    if (!ended.ok()) return ended.status();
    for (int i = 0; i < *ended; ++i, ++done) {
      status.Update(events[static_cast<size_t>(i)].status);
      status.Update(read(events[static_cast<size_t>(i)].cookie));
    }
  }
  return status;
}

absl::Status Curl(const ReadOptions& o, const std::string& config) {
  const std::string command = absl::StrCat("curl --silent --fail --parallel --parallel-max ",
                                           o.depth, " -K ", config, " 2>/dev/null");
  return std::system(command.c_str()) == 0 ? absl::OkStatus() : absl::UnknownError("curl failed");
}

std::string WriteCurlConfig(const ReadOptions& o) {
  std::string path = std::filesystem::temp_directory_path() / "micro-bench-read.curl";
  std::ofstream file(path);
  for (int64_t i = 0; i < o.reads(); ++i) {
    file << (i == 0 ? "" : "next\n") << "url=" << o.object << "\nrange=" << i * o.read_bytes << "-"
         << (i + 1) * o.read_bytes - 1 << "\noutput=/dev/null\n";
  }
  return path;
}

absl::Status MeasureReads(ReadOptions o) {
  if (!o.is_http()) {
    std::error_code error;
    o.object_bytes = static_cast<int64_t>(std::filesystem::file_size(o.object, error));
    if (error) return absl::NotFoundError(error.message());
  }
  if (o.reads() < 1) return absl::InvalidArgumentError("the object is smaller than one read");
  absl::StatusOr<std::unique_ptr<Source>> source = Open(o);
  if (!source.ok()) return source.status();
  // More than connections, so that each has its next request at once.
  const auto slots = static_cast<size_t>(o.is_http() ? 2 * o.depth : o.depth);
  const size_t bytes = slots * static_cast<size_t>(RoundUp(o.read_bytes, kReadAlignment));
  absl::StatusOr<DeviceMemory> memory = MapHostMemory(bytes, "reads");
  if (!memory.ok()) return memory.status();
  std::memset(memory->data(), 1, bytes);  // page faults are no cost of reading
  const std::string config = o.is_http() ? WriteCurlConfig(o) : "";
  const double gigabytes = static_cast<double>(o.reads() * o.read_bytes) / 1e9;
  std::vector<double> ratios;
  for (int round = 0; round < o.rounds; ++round) {
    const double cpu_s = UsageNow().cpu_s;
    const int64_t begin = MonotonicNs();
    absl::Status status = ReadAll(o, slots, memory->data(), source->get());
    const int64_t between = MonotonicNs();
    if (status.ok() && o.is_http()) status = Curl(o, config);
    if (!status.ok()) return status;
    const auto own_ns = static_cast<double>(between - begin);
    std::printf("%.2f GB/s, %.3f CPU seconds per GB", gigabytes / own_ns * 1e9,
                (UsageNow().cpu_s - cpu_s) / gigabytes);
    if (o.is_http()) {
      ratios.push_back(static_cast<double>(MonotonicNs() - between) / own_ns);
      std::printf("; curl's time over ours %.3f", ratios.back());
    }
    std::printf("\n");
  }
  const SourceCounters& counters = (*source)->counters();
  std::printf("%lld requests, %lld connections", static_cast<long long>(counters.requests),
              static_cast<long long>(counters.connections));
  if (o.is_http()) {
    std::printf("; median ratio %.3f (%.3f-%.3f)", Median(ratios), Quantile(ratios, 0.25),
                Quantile(ratios, 0.75));
  }
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace

Work AddRead(CLI::App* app) {
  const auto o = std::make_shared<ReadOptions>();
  app->add_option("object", o->object, "a file, or a URL")->required();
  app->add_option("--object-bytes", o->object_bytes, "of an object over HTTP");
  app->add_option("--depth", o->depth, "reads in flight, or connections")
      ->check(CLI::Range(1, 4096));
  app->add_option("--read-bytes", o->read_bytes, "of each read")->check(CLI::Range(1, 1 << 30));
  app->add_option("--rounds", o->rounds, "over the whole object")->check(CLI::Range(1, 1000));
  app->add_option("--engine", o->engine, "of files")->check(CLI::IsMember({"uring", "threads"}));
  app->add_option("--access", o->access, "to files")->check(CLI::IsMember({"direct", "buffered"}));
  return [o] { return MeasureReads(*o); };
}

}  // namespace sluice::bench
