// What a session does with its runner, told by a script.
#include "session/script/run_rig.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensor/check.h"

namespace sluice::session_test {
namespace {

using deadlock::ScriptWords;

bool Says(ScriptWords& words, const std::string& key, bool otherwise) {
  return words.Take(key, std::string(otherwise ? "yes" : "no")) == "yes";
}

std::string RoleText(Role role) {
  if (role == Role::kLocal) return "local";
  std::vector<std::string> parts;
  if (Has(role, Role::kContributor)) parts.emplace_back("contributor");
  if (Has(role, Role::kOwner)) parts.emplace_back("owner");
  if (Has(role, Role::kSource)) parts.emplace_back("source");
  if (Has(role, Role::kDestination)) parts.emplace_back("destination");
  return absl::StrJoin(parts, " and ");
}

}  // namespace

RunRig::RunRig(ScriptWords& words)
    : rank_(words.Take("rank", 0)), nodes_(RanksFrom(words.Take("nodes", std::string("0,0")))) {
  options_.bucket_bytes = words.Take("bucket", 64);
  options_.max_in_flight = words.Take("in_flight", 2);
  options_.slots = words.Take("slots", 0);
  options_.node_of_rank = nodes_;
  TransportTraits traits;
  traits.name = "log";
  traits.staged_only = Says(words, "staged", false);
  traits.in_stream_order = Says(words, "order", false);
  traits.in_groups = Says(words, "groups", false);
  traits.takes_folds = Says(words, "folds", false);
  traits.takes_rows = Says(words, "rows", true);
  auto device = std::make_unique<LogDevice>(DeviceTraits(), &log_, "slot");
  auto transport = std::make_unique<LogTransport>(traits, &log_);
  device_ = device.get();
  transport_ = transport.get();
  runner_ = std::make_unique<Runner>(std::move(device), std::move(transport), options_.slots,
                                     options_.max_in_flight, Runner::Trace());
}

void RunRig::End() { runner_.reset(); }

bool RunRig::ObeyOwn(ScriptWords& words) {
  const std::string& name = words.name();
  if (name == "tensor") {
    AddTensor(words);
  } else if (name == "plan") {
    Plan(words);
  } else if (name == "start") {
    Start(words);
  } else if (name == "supply" || name == "freeze" || name == "cut" || name == "report") {
    TransferRun* const run = FindRun(words);
    const int bucket = words.Take("bucket", -1);
    if (run == nullptr) return true;
    if (name == "supply") Supply(run, words.RestFrom(2));
    if (name == "freeze") {
      log_.Write(absl::StrCat("nothing above ", runner_->Freeze(run).ToString()));
    }
    if (name == "cut") runner_->Cut(run, IdOf(*run, bucket));
    if (name == "report") TellReport(*run, IdOf(*run, bucket));
  } else if (name == "pass") {
    device_->Pass(words.RestFrom(1));
  } else {
    Tell(words);
  }
  return true;
}

void RunRig::AddTensor(ScriptWords& words) {
  TensorTransfer tensor = {.name = words.RestFrom(1),
                           .shape = ShapeFrom(words.Take("shape", std::string("16")))};
  const std::string type = words.Take("type", std::string("f32"));
  tensor.src_dtype = *ParseDType(type);
  tensor.dst_dtype = *ParseDType(words.Take("to", type));
  tensor.src = LayoutFrom(words.Take("src", std::string("0:R")));
  tensor.dst = LayoutFrom(words.Take("dst", std::string("1:R")));
  tensor.window = words.Take("window", 0);
  spec_.tensors.push_back(std::move(tensor));
}

TensorView RunRig::Allocate(const std::string& name, const Layout& layout,
                            const std::vector<int64_t>& whole, DType dtype) {
  const std::vector<int64_t> shape = *LocalShape(layout, whole, rank_);
  int64_t bytes = DTypeBytes(dtype);
  for (const int64_t size : shape) bytes *= size;
  memory_.emplace_back(static_cast<size_t>(bytes));
  if (bytes > 0) log_.Name(memory_.back().data(), memory_.back().size(), name);
  return DenseView(memory_.back().data(), shape, dtype);
}

void RunRig::Plan(ScriptWords& words) {
  spec_.priority_class = words.Take("class", 0);
  const bool tells_room = Says(words, "room", false);
  SLUICE_CHECK(ValidateSpec(spec_, static_cast<int>(nodes_.size())).ok(), "no good transfer");
  absl::StatusOr<std::unique_ptr<CompiledTransfer>> made =
      CompiledTransfer::Make(std::exchange(spec_, TransferSpec()), options_, rank_, 0);
  SLUICE_CHECK(made.ok(), "no good plan");
  Planned planned{*std::move(made), {}, {}};
  CompiledTransfer* const transfer = planned.transfer.get();
  transfer->number = static_cast<int>(plans_.size());
  transfer->memory = runner_->MemoryRulesFor(nullptr);
  transfer->cut = CutFor(NeedOf(transfer->plan()), {options_.slots, options_.max_in_flight, 0});
  slot_bytes_ = std::max(slot_bytes_, static_cast<size_t>((transfer->slot_bytes() + 63) / 64 * 64));
  device_->set_unit_bytes(slot_bytes_);
  const absl::Status prepared = runner_->Prepare(transfer);
  if (!tells_room) log_.Take();
  TellPlan(*transfer);
  if (!prepared.ok()) return log_.Write(absl::StrCat("not prepared: ", StatusText(prepared)));
  for (const TensorTransfer& tensor : transfer->spec().tensors) {
    planned.src.push_back(
        Allocate(tensor.name + ".src", tensor.src, tensor.shape, tensor.src_dtype));
    planned.dst.push_back(
        Allocate(tensor.name + ".dst", tensor.dst, tensor.shape, tensor.dst_dtype));
  }
  plans_.push_back(std::move(planned));
}

// Buckets that differ by their rounds alone are one line.
void RunRig::TellPlan(const CompiledTransfer& transfer) {
  const std::vector<Bucket>& buckets = transfer.plan().buckets;
  for (size_t first = 0, next; first < buckets.size(); first = next) {
    const Bucket& bucket = buckets[first];
    BucketIdFields fields = bucket.id.fields();
    for (next = first + 1; next < buckets.size(); ++next) {
      ++fields.round;
      if (buckets[next].id != BucketId(fields) || buckets[next].role != bucket.role) break;
    }
    const size_t last = next - 1;
    log_.Write(absl::StrCat("bucket ", first, " is ", bucket.id.ToString(), ": ",
                            RoleText(bucket.role), ", channel ", bucket.channel,
                            last > first ? absl::StrCat("; so is each to ", last) : ""));
  }
}

void RunRig::Start(ScriptWords& words) {
  Planned& planned = plans_[static_cast<size_t>(words.Take("of", 0))];
  StartOptions options;
  options.late_destinations = Says(words, "late", false);
  options.events = Says(words, "events", false);
  if (Says(words, "stream", false)) options.stream = StreamHandle();
  auto run = std::make_unique<TransferRun>(planned.transfer.get(), &events_);
  run->Reset(++last_run_, options);
  std::vector<TensorView> dst = planned.dst;
  for (TensorView& view : dst) view.data = options.late_destinations ? nullptr : view.data;
  absl::Status status = run->Bind(planned.src, dst);
  SLUICE_CHECK(status.ok(), "a script's views are good");
  if (run->in_stream()) status = runner_->BeginInStream(run.get());
  SLUICE_CHECK(status.ok(), "fakes take a stream");
  runner_->Add(run.get());
  run->Release();
  runs_.push_back(std::move(run));
}

TransferRun* RunRig::FindRun(const ScriptWords& words) {
  const int64_t id = words.number();
  const auto found =
      std::find_if(runs_.begin(), runs_.end(), [id](const auto& run) { return run->id() == id; });
  if (found != runs_.end()) return found->get();
  log_.Write(absl::StrCat("run ", id, " is not in flight"));
  return nullptr;
}

BucketId RunRig::IdOf(const TransferRun& run, int bucket) const {
  if (bucket < 0) return BucketId();
  const std::vector<Bucket>& buckets = run.transfer().plan().buckets;
  return buckets[static_cast<size_t>(bucket)].id.WithRun(static_cast<uint64_t>(run.id()));
}

void RunRig::Supply(TransferRun* run, absl::string_view name) {
  const absl::Span<const absl::string_view> names = run->transfer().names();
  const auto found = std::find(names.begin(), names.end(), name);
  SLUICE_CHECK(found != names.end(), "a script supplies no tensor");
  const size_t tensor = static_cast<size_t>(found - names.begin());
  const TensorView& view = plans_[static_cast<size_t>(run->transfer().number)].dst[tensor];
  const absl::Status status = run->Supply(static_cast<int>(tensor), view);
  if (!status.ok()) log_.Write(StatusText(status));
}

void RunRig::Poison(const absl::Status& status) {
  if (!poison_.ok()) return;
  poison_ = status;
  runner_->Poison(status);
  for (const std::unique_ptr<TransferRun>& run : runs_) run->Fail(status);
  log_.Write(absl::StrCat("failed: ", StatusText(status)));
}

void RunRig::Drive() {
  bool moved = poison_.ok();
  while (moved) {
    const absl::StatusOr<bool> polled = runner_->Poll();
    if (!polled.ok()) Poison(polled.status());
    moved = polled.ok() && *polled;
    moved = (poison_.ok() && EndRuns()) || moved;
    TellEvents();
  }
  if (poison_.ok()) return;
  TellEvents();
  // A session calls it again and again: what one call has taken in the next one sees.
  if (settled_ || (!runner_->Settle() && !runner_->Settle())) return;
  settled_ = true;
  log_.Write("settled");
}

bool RunRig::EndRuns() {
  for (size_t i = 0; i < runs_.size(); ++i) {
    TransferRun* const run = runs_[i].get();
    if (!run->done()) continue;
    if (run->in_stream()) {
      const absl::StatusOr<bool> ended = runner_->EndInStream(run);
      if (!ended.ok()) Poison(ended.status());
      if (!ended.ok() || !*ended) continue;
    }
    TellEvents();
    log_.Write(absl::StrCat("run ", run->id(), run->cut() ? " is cancelled" : " is done"));
    runner_->Remove(run);
    runs_.erase(runs_.begin() + static_cast<ptrdiff_t>(i));
    return true;
  }
  return false;
}

void RunRig::TellEvents() {
  for (; !events_.empty(); events_.pop_front()) {
    const RunEvent& next = events_.front();
    for (const std::unique_ptr<TransferRun>& run : runs_) {
      if (next.mark == 0 || run->id() != next.run) continue;
      SLUICE_CHECK(run->HoldBack(next.mark).ok(), "a fake's fence holds back");
    }
    const Event& event = next.event;
    const RunId id = next.run;
    const auto name = [this, &event, id]() -> std::string {
      for (const std::unique_ptr<TransferRun>& run : runs_) {
        if (run->id() != id) continue;
        return std::string(run->transfer().names()[static_cast<size_t>(event.tensor)]);
      }
      return "?";
    };
    switch (event.kind) {
      case Event::Kind::kNeedsMemory:
        log_.Write(absl::StrCat("run ", id, " needs memory for ", name()));
        break;
      case Event::Kind::kTensorDone:
        log_.Write(absl::StrCat("run ", id, ": ", name(), " is done"));
        break;
      case Event::Kind::kFailed:
        log_.Write(absl::StrCat("run ", id, " failed: ", StatusText(event.status)));
        break;
    }
  }
}

void RunRig::Tell(ScriptWords& words) {
  const std::string& name = words.name();
  if (name == "stall") return WriteLines(runner_->DescribeStall().text(), &log_);
  if (name == "oldest") return TellOldest();
  SLUICE_CHECK(name == "counters", "a script has an unknown event");
  const SessionCounters c = runner_->counters();
  log_.Write(absl::StrCat("finished ", c.buckets_finished, "; peaks: buckets ", c.buckets_peak,
                          ", bytes ", c.staging_bytes_peak, ", operations ", c.operations_peak));
}

void RunRig::TellOldest() {
  BucketQuestion question;
  std::vector<int> members;
  if (!runner_->OldestBucket(&question, &members)) return log_.Write("no bucket");
  log_.Write(absl::StrCat("oldest is ", question.id.ToString(), " of ranks ",
                          absl::StrJoin(members, ",")));
}

void RunRig::TellReport(const TransferRun& run, const BucketId& id) {
  const BucketQuestion question = {id, run.transfer().number, run.lane()};
  log_.Write(DescribeReport(question, runner_->Report(run, id), Silence()).text());
}

}  // namespace sluice::session_test
