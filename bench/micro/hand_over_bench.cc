// What it costs a consumer to take an item that is there and to give it back. The item is one of a
// stream with a progress thread, or of a queue with a mutex and condition variables of that depth.
//
// usage: hand_over_bench [--seconds S] [--depth D] [--json FILE]
//
// All ways are measured in turns. A turn waits until items are there, then takes and releases half
// a depth of them. Either these are the last ones, so that nothing else goes on, or the other
// thread fills up meanwhile. A turn in which one was not there does not count. Numbers are checked.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "job/exit_codes.h"
#include "micro/locked_queue.h"
#include "sluice/local.h"
#include "sluice/session.h"
#include "sluice/stream.h"

namespace sluice::bench {
namespace {

constexpr int64_t kItems = 4096;
constexpr int64_t kItemBytes = 64;
constexpr int64_t kEndless = int64_t{1} << 40;
constexpr int64_t kEpochs = int64_t{1} << 20;  // more than a run gets to
// Between turns, so that the other thread can fill up again. It grows as long as that is too short.
constexpr absl::Duration kShortestPause = absl::Microseconds(500);
constexpr absl::Duration kLongestPause = absl::Milliseconds(200);

struct Options {
  double seconds = 3;
  int depth = 256;
  std::string json_file;
};

int64_t NowNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A file of items, in a folder of its own that goes with this object.
class ItemFile {
 public:
  ItemFile()
      : folder_(std::filesystem::temp_directory_path() / absl::StrCat("hand-over-", getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream file(folder_ / "items.bin", std::ios::binary);
    std::string bytes(kItemBytes, '\0');
    for (int64_t item = 0; item < kItems; ++item) {
      std::memcpy(bytes.data(), &item, sizeof(item));
      file << bytes;
    }
  }
  ~ItemFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ItemFile(const ItemFile&) = delete;
  ItemFile& operator=(const ItemFile&) = delete;

  std::string uri() const { return absl::StrCat("buffered:", folder_.string()); }

 private:
  const std::filesystem::path folder_;
};

class StreamWay {
 public:
  // Of `items` of the file, or of all of them again and again: kEndless.
  static absl::StatusOr<StreamWay> Open(Session* session, const std::string& uri, int depth,
                                        int64_t items) {
    StreamOptions options;
    options.source.uri = uri;
    options.source.format = ItemFormat::kRaw;
    options.source.item_bytes = kItemBytes;
    options.order.epochs = items == kEndless ? kEpochs : 1;
    if (items != kEndless) options.selection.end = items;
    options.reads.slots = 64;
    options.reads.budget_bytes = int64_t{1} << 20;
    options.buffers.count = depth;
    auto stream = OpenStream(session, options);
    if (!stream.ok()) return stream.status();
    StreamWay way;
    way.stream_ = *std::move(stream);
    return way;
  }

  // As LockedQueue's.
  absl::StatusOr<bool> TakeAndRelease(int64_t* item) {
    const bool was_there = stream_->Ready();
    absl::StatusOr<Lease> lease = stream_->Next();
    if (!lease.ok()) return lease.status();
    if (lease->end()) return absl::DataLossError("the stream has ended");
    *item = lease->item();
    lease->Release();
    return was_there;
  }

 private:
  std::unique_ptr<Stream> stream_;
};

absl::StatusOr<std::unique_ptr<Session>> MakeSession() {
  auto fabrics = MakeLocalFabric(1);
  if (!fabrics.ok()) return fabrics.status();
  SessionOptions options;
  options.progress_thread = true;
  return Session::Create(std::move(fabrics->front()), options);
}

// Of one way: a number for each turn that counts.
struct Turns {
  explicit Turns(const char* way) : name(way) {}

  const char* name;
  std::vector<double> wall_ns;  // of an item
  std::vector<double> cpu_ns;   // of the consumer's thread alone
  int64_t left_out = 0;
  int64_t wrong = 0;
  absl::Duration pause = kShortestPause;
};

// `*next`: the number that is due.
template <typename Way>
absl::Status TakeTurn(Way* way, int items, int64_t* next, Turns* turns) {
  absl::SleepFor(turns->pause);
  std::vector<int64_t> numbers(static_cast<size_t>(items));
  bool all_there = true;
  const int64_t cpu_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
  const int64_t wall_ns = NowNs(CLOCK_MONOTONIC);
  for (int64_t& number : numbers) {
    const absl::StatusOr<bool> was_there = way->TakeAndRelease(&number);
    if (!was_there.ok()) return was_there.status();
    all_there = all_there && *was_there;
  }
  const auto wall = static_cast<double>(NowNs(CLOCK_MONOTONIC) - wall_ns);
  const auto cpu = static_cast<double>(NowNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
  for (const int64_t number : numbers) turns->wrong += number == (*next)++ % kItems ? 0 : 1;
  if (!all_there) {
    ++turns->left_out;
    turns->pause = std::min(2 * turns->pause, kLongestPause);
    return absl::OkStatus();
  }
  turns->wall_ns.push_back(wall / items);
  turns->cpu_ns.push_back(cpu / items);
  return absl::OkStatus();
}

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

std::string SpreadJson(const std::vector<double>& values) {
  return absl::StrFormat("{\"median\": %.2f, \"q1\": %.2f, \"q3\": %.2f}", Quantile(values, 0.5),
                         Quantile(values, 0.25), Quantile(values, 0.75));
}

std::string WayJson(const Turns& turns) {
  return absl::StrFormat(
      " \"%s\": {\"wall_ns\": %s, \"cpu_ns\": %s, \"turns\": %d, \"left_out\": %d, "
      "\"wrong\": %d}",
      turns.name, SpreadJson(turns.wall_ns), SpreadJson(turns.cpu_ns), turns.wall_ns.size(),
      turns.left_out, turns.wrong);
}

// All ways, each with its turn in a round.
class Ways {
 public:
  explicit Ways(const Options& options) : options_(options) {}

  absl::Status Open() {
    auto session = MakeSession();
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    auto filled = StreamWay::Open(session_.get(), file_.uri(), options_.depth, kEndless);
    if (!filled.ok()) return filled.status();
    filled_stream_ = *std::move(filled);
    return absl::OkStatus();
  }

  absl::Status Round() {
    const int items = options_.depth / 2;
    auto stream = StreamWay::Open(session_.get(), file_.uri(), options_.depth, items);
    if (!stream.ok()) return stream.status();
    int64_t next = 0;
    absl::Status status = TakeTurn(&*stream, items, &next, &turns_[0]);
    if (!status.ok()) return status;
    LockedQueue queue(options_.depth, kItemBytes, items, kItems);
    next = 0;
    status = TakeTurn(&queue, items, &next, &turns_[1]);
    if (status.ok()) status = TakeTurn(&filled_stream_, items, &next_of_stream_, &turns_[2]);
    if (status.ok()) status = TakeTurn(&filled_queue_, items, &next_of_queue_, &turns_[3]);
    return status;
  }

  std::string Json() const {
    std::vector<std::string> ways;
    for (const Turns& turns : turns_) ways.push_back(WayJson(turns));
    return absl::StrFormat("{\"depth\": %d, \"turn_items\": %d, \"item_bytes\": %d,\n%s}\n",
                           options_.depth, options_.depth / 2, kItemBytes,
                           absl::StrJoin(ways, ",\n"));
  }

  void Print() const {
    for (const Turns& turns : turns_) {
      std::printf("%-16s %8.1f ns an item (%.1f-%.1f), %.1f of the processor; %zu turns, ",
                  turns.name, Quantile(turns.wall_ns, 0.5), Quantile(turns.wall_ns, 0.25),
                  Quantile(turns.wall_ns, 0.75), Quantile(turns.cpu_ns, 0.5), turns.wall_ns.size());
      std::printf("%lld left out\n", static_cast<long long>(turns.left_out));
    }
  }

  absl::Status Check() const {
    for (const Turns& turns : turns_) {
      if (turns.wrong > 0) {
        return absl::DataLossError(
            absl::StrCat(turns.name, ": ", turns.wrong, " items were not the next ones"));
      }
      if (turns.wall_ns.empty()) {
        return absl::DeadlineExceededError(
            absl::StrCat(turns.name, ": no turn found all of its items there; --seconds may help"));
      }
    }
    return absl::OkStatus();
  }

 private:
  const Options options_;
  const ItemFile file_;
  std::unique_ptr<Session> session_;
  StreamWay filled_stream_;  // ends before its session
  LockedQueue filled_queue_{options_.depth, kItemBytes, kEndless, kItems};
  int64_t next_of_stream_ = 0;
  int64_t next_of_queue_ = 0;
  std::array<Turns, 4> turns_ = {Turns("stream"), Turns("queue"), Turns("stream, filling"),
                                 Turns("queue, filling")};
};

absl::Status RunHere(const Options& options) {
  Ways ways(options);
  absl::Status status = ways.Open();
  const absl::Time end = absl::Now() + absl::Seconds(options.seconds);
  while (status.ok() && absl::Now() < end) status = ways.Round();
  if (!status.ok()) return status;
  ways.Print();
  if (!options.json_file.empty()) {
    std::ofstream file(options.json_file);
    if (!(file << ways.Json() << std::flush)) {
      return absl::UnavailableError(absl::StrCat("cannot write ", options.json_file));
    }
  }
  return ways.Check();
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  sluice::bench::Options options;
  CLI::App app("What handing one item over costs: a stream's, and a queue's with a lock");
  app.add_option("--seconds", options.seconds, "how long, for all ways together [3]")
      ->check(CLI::Range(0.01, 3600.0));
  app.add_option("--depth", options.depth, "items that can be there at once [256]")
      ->check(CLI::Range(2, 8192));
  app.add_option("-J,--json", options.json_file, "write the results here");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : sluice::bench::kBadUsageExit;
  }
  const absl::Status status = sluice::bench::RunHere(options);
  if (!status.ok()) std::fprintf(stderr, "hand_over_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : sluice::bench::kFailedExit;
}
