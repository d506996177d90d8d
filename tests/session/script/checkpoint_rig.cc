// What a session does with a checkpoint's run, told by a script.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "session/script/shard_rig.h"
#include "tensor/check.h"

namespace sluice::session_test {

using deadlock::ScriptWords;

CheckpointRig::CheckpointRig(ScriptWords& words) {
  parts_.rank = words.Take("rank", 0);
  const std::string flow = words.Take("flow", std::string("load"));
  parts_.flow = flow == "load" ? CheckpointFlow::kLoad : CheckpointFlow::kSave;
  parts_.files = absl::StrSplit(words.Take("files", std::string("a.st")), ',');
  tells_room_ = words.Take("room", std::string("no")) == "yes";
  options_.piece_bytes = words.Take("piece", 64);
  options_.budget_bytes = words.Take("budget", 65536);
  if (const int64_t slots = words.Take("slots", 0); slots > 0) options_.slots = slots;
  options_.retry.attempts_max = words.Take("attempts", 4);
  options_.retry.backoff = absl::ZeroDuration();
  options_.retry.request_timeout = absl::InfiniteDuration();
  auto device = std::make_unique<LogDevice>(DeviceTraits(), &log_, "block");
  const TransportTraits traits = {.name = "log"};
  auto transport = std::make_unique<LogTransport>(traits, &log_);
  device_ = device.get();
  transport_ = transport.get();
  parts_.device = std::move(device);
  parts_.transport = std::move(transport);
  const int alignment = words.Take("alignment", 1);
  if (flow != "load") return;
  auto source = std::make_unique<LogSource>(parts_.files, alignment, &log_);
  source_ = source.get();
  parts_.source = std::move(source);
}

bool CheckpointRig::ObeyOwn(ScriptWords& words) {
  const std::string& name = words.name();
  if (name == "tensor") {
    AddTensor(words);
  } else if (name == "go") {
    Go();
  } else if (name == "stats") {
    TellStats();
  } else {
    return ShardRunnerRig::ObeyOwn(words);
  }
  return true;
}

void CheckpointRig::AddTensor(ScriptWords& words) {
  CheckpointTensor tensor;
  tensor.name = words.RestFrom(1);
  tensor.shape = ShapeFrom(words.Take("shape", std::string("16")));
  const std::string type = words.Take("type", std::string("f32"));
  tensor.dtype = *ParseDType(type);
  tensor.layout = LayoutFrom(words.Take("layout", std::string("0:R")));
  CheckpointPlace place;
  place.object = words.Take("file", 0);
  place.begin = words.Take("begin", 0);
  place.dtype = tensor.dtype;
  place.file_dtype = *ParseDType(words.Take("file_type", type));
  absl::StatusOr<std::vector<int64_t>> shape = LocalShape(tensor.layout, tensor.shape, parts_.rank);
  SLUICE_CHECK(shape.ok(), "a script has no good layout");
  int64_t bytes = DTypeBytes(tensor.dtype);
  for (const int64_t size : *shape) bytes *= size;
  memory_.emplace_back(static_cast<size_t>(bytes));
  if (bytes > 0) log_.Name(memory_.back().data(), memory_.back().size(), tensor.name);
  tensor.view = DenseView(memory_.back().data(), *shape, tensor.dtype);
  const absl::Status bound =
      BindView(tensor.view, {*shape, tensor.dtype}, MemoryRules(), true, &place.view);
  SLUICE_CHECK(bound.ok(), "a script's views are good");
  parts_.places.push_back(place);
  tensors_.push_back(std::move(tensor));
}

void CheckpointRig::Go() {
  device_->set_unit_bytes(4096);
  absl::StatusOr<std::unique_ptr<CheckpointRun>> made =
      CheckpointRun::Make(std::move(parts_), tensors_, options_);
  if (!made.ok()) return log_.Write(StatusText(made.status()));
  run_ = *std::move(made);
  if (!tells_room_) log_.Take();
}

void CheckpointRig::Drive() {
  if (run_ != nullptr) ShardRunnerRig::Drive();
}

void CheckpointRig::TellStats() {
  const CheckpointStats stats = run_->stats();
  log_.Write(absl::StrCat("pieces ", stats.pieces, ", of files ", stats.file_pieces, " with ",
                          stats.file_bytes, " bytes; sent ", stats.sent_bytes, "; retries ",
                          stats.retries, "; slots ", stats.slots_peak, " of ", stats.slots_max));
}

void CheckpointRig::End() { run_.reset(); }

}  // namespace sluice::session_test
