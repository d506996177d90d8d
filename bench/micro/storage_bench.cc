// Reads a file from end to end through a file source, D reads of S bytes at a time. Says how fast
// and for how much of a processor, to be set against fio with the same D and S.
//
// usage: storage_bench FILE [--depth D] [--read-bytes S] [--engine uring|threads]
//                      [--access direct|buffered]
#include <poll.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/file/file_source.h"
#include "storage/source.h"

namespace sluice {
namespace {

struct Options {
  std::string file;
  int depth = 16;
  int64_t read_bytes = 1 << 20;
  std::string engine = "uring";
  std::string access = "direct";
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Of the process, in both modes.
double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

absl::StatusOr<std::unique_ptr<Source>> Make(const Options& options) {
  const std::filesystem::path path = std::filesystem::absolute(options.file);
  FileSourceOptions file_options;
  file_options.engine = options.engine == "uring" ? FileEngine::kUring : FileEngine::kThreads;
  file_options.access = options.access == "direct" ? FileAccess::kDirect : FileAccess::kBuffered;
  file_options.in_flight_max = options.depth;
  file_options.threads_max = options.depth;
  return MakeFileSource(path.parent_path(), {path.filename()}, file_options);
}

struct Freer {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Aligned, and touched, so that page faults are not taken for the cost of reading.
std::unique_ptr<std::byte, Freer> Memory(size_t bytes) {
  void* const memory = std::aligned_alloc(kReadAlignment, bytes);
  std::memset(memory, 1, bytes);
  return std::unique_ptr<std::byte, Freer>(static_cast<std::byte*>(memory));
}

// Keeps `depth` reads going until all whole ranges of the file are read. Returns the bytes.
absl::StatusOr<int64_t> ReadAll(const Options& options, int64_t file_bytes, Source* source,
                                std::byte* memory) {
  const auto read_bytes = static_cast<size_t>(options.read_bytes);
  const auto depth = static_cast<size_t>(options.depth);
  std::vector<ReadOp> ops;
  std::vector<ReadEvent> events(depth);
  std::vector<uint64_t> idle(depth);
  for (size_t i = 0; i < depth; ++i) idle[i] = i;
  int64_t next = 0;
  int64_t done = 0;
  const int64_t count = file_bytes / options.read_bytes;
  while (done < count) {
    ops.clear();
    for (; next < count && !idle.empty(); ++next) {
      const uint64_t slot = idle.back();
      idle.pop_back();
      ops.push_back({.offset = next * options.read_bytes,
                     .bytes = options.read_bytes,
                     .data = memory + slot * read_bytes,
                     .cookie = slot});
    }
    if (!ops.empty()) {
      absl::Status status = source->Start(ops);
      if (!status.ok()) return status;
    }
    pollfd wait = {.fd = source->ready_fd(), .events = POLLIN, .revents = 0};
    ppoll(&wait, 1, nullptr, nullptr);
    const absl::StatusOr<int> ended = source->Poll(absl::MakeSpan(events));
    if (!ended.ok()) return ended.status();
    for (int i = 0; i < *ended; ++i) {
      const ReadEvent& event = events[static_cast<size_t>(i)];
      if (!event.status.ok()) return event.status;
      idle.push_back(event.cookie);
      ++done;
    }
  }
  return done * options.read_bytes;
}

absl::Status Run(const Options& options) {
  std::error_code error;
  const auto file_bytes = static_cast<int64_t>(std::filesystem::file_size(options.file, error));
  if (error) return absl::NotFoundError(error.message());
  absl::StatusOr<std::unique_ptr<Source>> source = Make(options);
  if (!source.ok()) return source.status();
  const auto memory = Memory(static_cast<size_t>(options.depth * options.read_bytes));
  const double cpu_before = CpuSeconds();
  const auto before = std::chrono::steady_clock::now();
  const absl::StatusOr<int64_t> bytes = ReadAll(options, file_bytes, source->get(), memory.get());
  if (!bytes.ok()) return bytes.status();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - before;
  const double gib = static_cast<double>(*bytes) / (1 << 30);
  std::printf("bytes %lld  bytes_per_s %.4g  cpu_s_per_gib %.4f  requests %lld\n",
              static_cast<long long>(*bytes), static_cast<double>(*bytes) / wall.count(),
              (CpuSeconds() - cpu_before) / gib,
              static_cast<long long>((*source)->counters().requests));
  return absl::OkStatus();
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  sluice::Options options;
  CLI::App app("Reads a file through a source, and says what that cost.");
  app.add_option("file", options.file, "What to read")->required();
  app.add_option("--depth", options.depth, "Reads in flight")->check(CLI::Range(1, 4096));
  app.add_option("--read-bytes", options.read_bytes, "Of each, a multiple of 4096")
      ->check(CLI::Range(4096, 1 << 30));
  app.add_option("--engine", options.engine)->check(CLI::IsMember({"uring", "threads"}));
  app.add_option("--access", options.access)->check(CLI::IsMember({"direct", "buffered"}));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = sluice::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "storage_bench: %s\n", status.ToString().c_str());
  return 1;
}
