// The threads that make items, and the queue before them.
#include "storage/generator_source.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "storage/own_thread.h"
#include "storage/ready_flag.h"
#include "storage/sized_item.h"
#include "storage/source_check.h"
#include "storage/wake_set.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

class Generator : public GeneratorSource {
 public:
  Generator(GenerateItem generate, const GeneratorOptions& options, ReadyFlag ready)
      : generate_(std::move(generate)),
        options_(options),
        stored_bytes_(options.sized ? StoredBytes(options.item_bytes) : options.item_bytes),
        batches_(options.batches),
        ready_(std::move(ready)) {}
  ~Generator() override;
  absl::Status StartThreads();

  absl::string_view name() const override { return "generator"; }
  int64_t alignment() const override { return 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return ready_.fd(); }
  void Allow(int64_t batches, int64_t updates) override;
  int64_t staleness_max() const override { return staleness_max_.load(std::memory_order_relaxed); }

 private:
  struct Read {
    ReadOp op;
    int64_t begun_ns = ReadProgress::kNotBegun;
    int64_t length = 0;  // once it is made
    absl::Status status;
  };
  using Reads = std::list<Read>;

  int64_t ItemOf(const ReadOp& op) const { return op.offset / stored_bytes_; }
  absl::Status Check(absl::Span<const ReadOp> ops) const;
  void Queue(const ReadOp& op);  // with the lock
  bool MayBegin() const;         // with the lock
  bool Begin(Reads::iterator* read);
  void Work();
  void Wake();
  void Generate(Read* read) const;
  absl::StatusOr<int64_t> Call(const ReadOp& op) const;
  absl::Status CheckLength(int64_t length) const;

  const GenerateItem generate_;
  const GeneratorOptions options_;
  const int64_t stored_bytes_;

  // How far reads may begin. `updates_` is written first and read last.
  std::atomic<int64_t> batches_;
  std::atomic<int64_t> updates_{0};
  std::atomic<int64_t> staleness_max_{0};
  std::atomic<uint32_t> changes_{0};  // threads without work wait for the next one
  std::atomic<bool> ending_{false};

  std::mutex mutex_;  // for all below
  ReadyFlag ready_;   // set while something is finished
  Reads free_;
  Reads queued_;  // by batch
  Reads making_;
  Reads finished_;

  std::vector<std::thread> threads_;
};

absl::Status Generator::StartThreads() {
  for (int i = 0; i < options_.threads; ++i) {
    SLUICE_ASSIGN_OR_RETURN(std::thread thread, StartOwnThread([this] { Work(); }));
    threads_.push_back(std::move(thread));
  }
  return absl::OkStatus();
}

Generator::~Generator() {
  ending_.store(true);
  Wake();
  for (std::thread& thread : threads_) thread.join();
}

void Generator::Wake() {
  changes_.fetch_add(1, std::memory_order_release);
  changes_.notify_all();
}

void Generator::Allow(int64_t batches, int64_t updates) {
  updates_.store(updates, std::memory_order_release);
  if (batches_.exchange(batches, std::memory_order_acq_rel) != batches) Wake();
}

bool Generator::MayBegin() const {
  return !queued_.empty() && queued_.front().op.batch < batches_.load(std::memory_order_acquire);
}

bool Generator::Begin(Reads::iterator* read) {
  const std::lock_guard lock(mutex_);
  if (!MayBegin()) return false;
  making_.splice(making_.end(), queued_, queued_.begin());
  *read = std::prev(making_.end());
  (*read)->begun_ns = MonotonicNs();
  const int64_t staleness = (*read)->op.batch - updates_.load(std::memory_order_acquire);
  if (staleness > staleness_max()) staleness_max_.store(staleness, std::memory_order_relaxed);
  return true;
}

void Generator::Work() {
  while (true) {
    // Whatever comes after this look is a change.
    const uint32_t seen = changes_.load(std::memory_order_acquire);
    if (ending_.load()) return;
    Reads::iterator read;
    if (!Begin(&read)) {
      changes_.wait(seen, std::memory_order_acquire);
      continue;
    }
    Generate(&*read);
    const std::lock_guard lock(mutex_);
    finished_.splice(finished_.end(), making_, read);
    ready_.Set(true);
  }
}

void Generator::Generate(Read* read) const {
  const absl::StatusOr<int64_t> length = Call(read->op);
  read->status = length.ok() ? CheckLength(*length) : length.status();
  if (!read->status.ok()) {
    read->status =
        MakeError(read->status.code(), "making item ", ItemOf(read->op), ": ", read->status);
    return;
  }
  read->length = *length;
  if (options_.sized) StoreLength(read->op.data, stored_bytes_, *length);
}

absl::StatusOr<int64_t> Generator::Call(const ReadOp& op) const {
  try {
    return generate_(ItemOf(op), absl::MakeSpan(op.data, static_cast<size_t>(options_.item_bytes)));
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat("the generator threw: ", exception.what()));
  } catch (...) {
    return absl::InternalError("the generator threw what is no exception");
  }
}

absl::Status Generator::CheckLength(int64_t length) const {
  if (length < 0 || length > options_.item_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the generator returned ", length,
                                                   " bytes, of at most ", options_.item_bytes));
  }
  if (length % options_.element_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the generator returned ", length,
                                                   " bytes, which are not whole elements of ",
                                                   options_.element_bytes));
  }
  return absl::OkStatus();
}

absl::Status Generator::Check(absl::Span<const ReadOp> ops) const {
  SLUICE_RETURN_IF_ERROR(CheckReadOps(ops, 1));
  for (const ReadOp& op : ops) {
    if (op.bytes == stored_bytes_ && op.offset % stored_bytes_ == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("a read of ", op.bytes, " bytes at ", op.offset,
                                                   " of items of ", stored_bytes_));
  }
  return absl::OkStatus();
}

// Reads come in the order of their batches, but for those that are tried again.
void Generator::Queue(const ReadOp& op) {
  if (free_.empty()) free_.emplace_back();
  auto before = queued_.end();
  while (before != queued_.begin() && std::prev(before)->op.batch > op.batch) --before;
  const auto read = free_.begin();
  queued_.splice(before, free_, read);
  read->op = op;
  read->begun_ns = ReadProgress::kNotBegun;
  op.TellWaits();
}

absl::Status Generator::Start(absl::Span<const ReadOp> ops) {
  SLUICE_RETURN_IF_ERROR(Check(ops));
  if (ops.empty()) return absl::OkStatus();
  bool may_begin = false;
  {
    const std::lock_guard lock(mutex_);
    for (const ReadOp& op : ops) Queue(op);
    may_begin = MayBegin();
  }
  if (may_begin) Wake();
  counters_.opens = 1;
  counters_.requests += static_cast<int64_t>(ops.size());
  return absl::OkStatus();
}

absl::StatusOr<int> Generator::Poll(absl::Span<ReadEvent> events) {
  const std::lock_guard lock(mutex_);
  if (!making_.empty()) {
    const int64_t now_ns = MonotonicNs();
    for (const Read& read : making_) {
      read.op.TellBegun(read.begun_ns);
      read.op.TellMoved(now_ns);  // as long as the callback takes
    }
  }
  size_t count = 0;
  for (; count < events.size() && !finished_.empty(); ++count) {
    Read& read = finished_.front();
    if (read.status.ok()) counters_.bytes_read += read.length;
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

}  // namespace

absl::StatusOr<std::unique_ptr<GeneratorSource>> MakeGeneratorSource(
    GenerateItem generate, const GeneratorOptions& options) {
  if (options.item_bytes < 1 || options.element_bytes < 1 || generate == nullptr) {
    return absl::InvalidArgumentError("a generator makes items of at least a byte");
  }
  if (options.threads < 1) {
    return absl::InvalidArgumentError("a generator needs a thread");
  }
  SLUICE_ASSIGN_OR_RETURN(ReadyFlag ready, ReadyFlag::Make());
  auto source = std::make_unique<Generator>(std::move(generate), options, std::move(ready));
  SLUICE_RETURN_IF_ERROR(source->StartThreads());
  return source;
}

}  // namespace sluice
