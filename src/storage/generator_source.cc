// The thread that makes items, and the queue before it.
#include "storage/generator_source.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/own_thread.h"
#include "storage/ready_flag.h"
#include "storage/source_check.h"
#include "storage/wake_set.h"

namespace sluice {
namespace {

class Generator : public GeneratorSource {
 public:
  Generator(GenerateItem generate, const GeneratorOptions& options, ReadyFlag ready)
      : generate_(std::move(generate)), options_(options), ready_(std::move(ready)) {}
  ~Generator() override;
  absl::Status StartThread();

  absl::string_view name() const override { return "generator"; }
  int64_t alignment() const override { return 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return ready_.fd(); }
  void UpdateEnded(int64_t item) override;

 private:
  struct Read {
    ReadOp op;
    int64_t begun_ns = ReadProgress::kNotBegun;
    absl::Status status;
  };
  using Reads = std::list<Read>;

  int64_t ItemOf(const ReadOp& op) const { return op.offset / options_.item_bytes; }
  absl::Status Check(absl::Span<const ReadOp> ops) const;
  void Work();
  bool MayBegin() const;  // with the lock
  absl::Status Generate(const ReadOp& op) const;

  const GenerateItem generate_;
  const GeneratorOptions options_;

  std::mutex mutex_;  // for all below
  std::condition_variable change_;
  ReadyFlag ready_;  // set while something is finished
  Reads free_;
  Reads queued_;
  Reads making_;  // one at most
  Reads finished_;
  std::optional<int64_t> made_;     // the last item
  std::optional<int64_t> updated_;  // the largest item that UpdateEnded was called for
  bool ending_ = false;

  std::thread thread_;
};

absl::Status Generator::StartThread() {
  absl::StatusOr<std::thread> thread = StartOwnThread([this] { Work(); });
  if (!thread.ok()) return thread.status();
  thread_ = *std::move(thread);
  return absl::OkStatus();
}

Generator::~Generator() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  change_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Generator::MayBegin() const {
  if (queued_.empty()) return false;
  if (!options_.after_update || !made_.has_value()) return true;
  return updated_.has_value() && *updated_ >= *made_;
}

void Generator::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    change_.wait(lock, [this] { return ending_ || MayBegin(); });
    if (ending_) return;
    making_.splice(making_.end(), queued_, queued_.begin());
    Read& read = making_.front();
    read.begun_ns = WakeSet::NowNs();
    lock.unlock();
    absl::Status status = Generate(read.op);
    lock.lock();
    // One that failed is updated by nobody.
    if (status.ok()) made_ = ItemOf(read.op);
    read.status = std::move(status);
    finished_.splice(finished_.end(), making_);
    ready_.Set(true);
  }
}

absl::Status Generator::Generate(const ReadOp& op) const {
  const int64_t item = ItemOf(op);
  const std::string what = absl::StrCat("making item ", item, ": ");
  try {
    absl::Status status = generate_(item, absl::MakeSpan(op.data, static_cast<size_t>(op.bytes)));
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(what, status.message()));
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat(what, "the generator threw: ", exception.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(what, "the generator threw what is no exception"));
  }
}

absl::Status Generator::Check(absl::Span<const ReadOp> ops) const {
  if (absl::Status status = CheckReadOps(ops, 1); !status.ok()) return status;
  for (const ReadOp& op : ops) {
    if (op.bytes == options_.item_bytes && op.offset % options_.item_bytes == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("a read of ", op.bytes, " bytes at ", op.offset,
                                                   " of items of ", options_.item_bytes));
  }
  return absl::OkStatus();
}

absl::Status Generator::Start(absl::Span<const ReadOp> ops) {
  if (absl::Status status = Check(ops); !status.ok()) return status;
  if (ops.empty()) return absl::OkStatus();
  {
    const std::lock_guard lock(mutex_);
    for (const ReadOp& op : ops) {
      if (free_.empty()) free_.emplace_back();
      queued_.splice(queued_.end(), free_, free_.begin());
      queued_.back().op = op;
      queued_.back().begun_ns = ReadProgress::kNotBegun;
      op.TellWaits();
    }
  }
  change_.notify_one();
  counters_.opens = 1;
  counters_.requests += static_cast<int64_t>(ops.size());
  return absl::OkStatus();
}

absl::StatusOr<int> Generator::Poll(absl::Span<ReadEvent> events) {
  const std::lock_guard lock(mutex_);
  for (const Read& read : making_) read.op.TellBegun(read.begun_ns);
  size_t count = 0;
  for (; count < events.size() && !finished_.empty(); ++count) {
    Read& read = finished_.front();
    if (read.status.ok()) counters_.bytes_read += read.op.bytes;
    if (read.begun_ns != ReadProgress::kNotBegun) read.op.TellBegun(read.begun_ns);
    events[count] = {.cookie = read.op.cookie, .status = std::move(read.status)};
    free_.splice(free_.end(), finished_, finished_.begin());
  }
  ready_.Set(!finished_.empty());
  return static_cast<int>(count);
}

void Generator::Cancel(uint64_t cookie) {
  const std::lock_guard lock(mutex_);
  const auto has_cookie = [cookie](const Read& read) { return read.op.cookie == cookie; };
  const auto read = std::find_if(queued_.begin(), queued_.end(), has_cookie);
  if (read == queued_.end()) return;
  read->status = absl::CancelledError(absl::StrCat("item ", ItemOf(read->op), " was cancelled"));
  finished_.splice(finished_.end(), queued_, read);
  ready_.Set(true);
}

void Generator::UpdateEnded(int64_t item) {
  {
    const std::lock_guard lock(mutex_);
    updated_ = std::max(updated_.value_or(item), item);
  }
  change_.notify_one();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GeneratorSource>> MakeGeneratorSource(
    GenerateItem generate, const GeneratorOptions& options) {
  if (options.item_bytes < 1 || generate == nullptr) {
    return absl::InvalidArgumentError("a generator makes items of at least a byte");
  }
  absl::StatusOr<ReadyFlag> ready = ReadyFlag::Make();
  if (!ready.ok()) return ready.status();
  auto source = std::make_unique<Generator>(std::move(generate), options, *std::move(ready));
  if (absl::Status status = source->StartThread(); !status.ok()) return status;
  return source;
}

}  // namespace sluice
