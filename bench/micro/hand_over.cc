// micro-bench hand-over: what it costs a consumer to take an item that is there and to give it
// back. The item is one of a stream with a progress thread, or of a queue with a mutex and
// condition variables of that depth.
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
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "micro/commands.h"
#include "micro/locked_queue.h"
#include "report/spread.h"
#include "sluice/fabric.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "sluice/stream.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

constexpr int64_t kItems = 4096;
constexpr int64_t kItemBytes = 64;
constexpr int64_t kEndless = int64_t{1} << 40;
constexpr int64_t kEpochs = int64_t{1} << 20;  // more than a run gets to
// Between turns, so that the other thread can fill up again. It grows as long as that is too short.
constexpr absl::Duration kShortestPause = absl::Microseconds(500);
constexpr absl::Duration kLongestPause = absl::Milliseconds(200);

struct HandOverOptions {
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
    StreamWay way;
    SLUICE_ASSIGN_OR_RETURN(way.stream_, OpenStream(session, options));
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
  SLUICE_ASSIGN_OR_RETURN(auto fabrics, MakeLocalFabric(1));
  SessionOptions options;
  options.progress_thread = true;
  return Session::Create(std::move(fabrics.front()), options);
}

// Of one way: a number for each turn that counts.
struct Turns {
  explicit Turns(const char* way) : name(way) {}

  const char* name;
  std::vector<double> wall_ns;  // of an item
  std::vector<double> cpu_ns;   // of the consumer's thread alone
  int64_t left_out = 0;
  int64_t wrong = 0;
  int64_t next = 0;  // the number that is due
  absl::Duration pause = kShortestPause;
};

template <typename Way>
absl::Status TakeTurn(Way* way, int items, Turns* turns) {
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
  for (const int64_t number : numbers) turns->wrong += number == turns->next++ % kItems ? 0 : 1;
  if (!all_there) {
    ++turns->left_out;
    turns->pause = std::min(2 * turns->pause, kLongestPause);
    return absl::OkStatus();
  }
  turns->wall_ns.push_back(wall / items);
  turns->cpu_ns.push_back(cpu / items);
  return absl::OkStatus();
}

// All ways, each with its turn in a round.
class Ways {
 public:
  explicit Ways(const HandOverOptions& options) : options_(options) {}

  absl::Status Open() {
    SLUICE_ASSIGN_OR_RETURN(session_, MakeSession());
    return OpenStream(kEndless, &filled_stream_);
  }

  absl::Status Round() {
    const int items = options_.depth / 2;
    StreamWay stream;
    absl::Status status = OpenStream(items, &stream);
    turns_[0].next = turns_[1].next = 0;
    if (status.ok()) status = TakeTurn(&stream, items, &turns_[0]);
    LockedQueue queue(options_.depth, kItemBytes, items, kItems);
    if (status.ok()) status = TakeTurn(&queue, items, &turns_[1]);
    if (status.ok()) status = TakeTurn(&filled_stream_, items, &turns_[2]);
    if (status.ok()) status = TakeTurn(&filled_queue_, items, &turns_[3]);
    return status;
  }

  // Prints and writes what was measured. DataLoss for wrong numbers.
  absl::Status Report() const {
    nlohmann::ordered_json json = {
        {"depth", options_.depth}, {"turn_items", options_.depth / 2}, {"item_bytes", kItemBytes}};
    const auto spread = [](const std::vector<double>& values) {
      return nlohmann::ordered_json({{"median", Median(values)},
                                     {"q1", Quantile(values, 0.25)},
                                     {"q3", Quantile(values, 0.75)}});
    };
    absl::Status status;
    for (const Turns& turns : turns_) {
      absl::PrintF("%-16s %8.1f ns an item (%.1f-%.1f), %.1f of the processor; %d turns, ",
                   turns.name, Median(turns.wall_ns), Quantile(turns.wall_ns, 0.25),
                   Quantile(turns.wall_ns, 0.75), Median(turns.cpu_ns), turns.wall_ns.size());
      absl::PrintF("%d left out\n", turns.left_out);
      json[turns.name] = {{"wall_ns", spread(turns.wall_ns)},
                          {"cpu_ns", spread(turns.cpu_ns)},
                          {"turns", turns.wall_ns.size()},
                          {"left_out", turns.left_out},
                          {"wrong", turns.wrong}};
      if (turns.wrong > 0) {
        status.Update(absl::DataLossError(
            absl::StrCat(turns.name, ": ", turns.wrong, " items were not the next ones")));
      } else if (turns.wall_ns.empty()) {
        status.Update(absl::DeadlineExceededError(absl::StrCat(
            turns.name, ": no turn found all of its items there; --seconds may help")));
      }
    }
    if (options_.json_file.empty()) return status;
    const absl::Status written = WriteFile(options_.json_file, json.dump(1) + "\n");
    return written.ok() ? status : written;
  }

 private:
  absl::Status OpenStream(int64_t items, StreamWay* way) {
    SLUICE_ASSIGN_OR_RETURN(*way,
                            StreamWay::Open(session_.get(), file_.uri(), options_.depth, items));
    return absl::OkStatus();
  }

  const HandOverOptions& options_;
  const ItemFile file_;
  std::unique_ptr<Session> session_;
  StreamWay filled_stream_;  // ends before its session
  LockedQueue filled_queue_{options_.depth, kItemBytes, kEndless, kItems};
  std::array<Turns, 4> turns_ = {Turns("stream"), Turns("queue"), Turns("stream, filling"),
                                 Turns("queue, filling")};
};

absl::Status MeasureHandOver(const HandOverOptions& options) {
  Ways ways(options);
  absl::Status status = ways.Open();
  const absl::Time end = absl::Now() + absl::Seconds(options.seconds);
  while (status.ok() && absl::Now() < end) status = ways.Round();
  return status.ok() ? ways.Report() : status;
}

}  // namespace

Work AddHandOver(CLI::App* app) {
  const auto options = std::make_shared<HandOverOptions>();
  app->add_option("--seconds", options->seconds, "how long, for all ways together [3]")
      ->check(CLI::Range(0.01, 3600.0));
  app->add_option("--depth", options->depth, "items that can be there at once [256]")
      ->check(CLI::Range(2, 8192));
  app->add_option("-J,--json", options->json_file, "write the results here");
  return [options] { return MeasureHandOver(*options); };
}

}  // namespace sluice::bench
