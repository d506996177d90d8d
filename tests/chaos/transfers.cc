// Runs of transfers, each with memory and values of its own.
#include "chaos/transfers.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "chaos/values.h"

namespace sluice::chaos {
namespace {

using nlohmann::json;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Calls `visit(index, offset)` for each element of a part: its number in the whole tensor, and
// where it lies in a view, in elements.
template <typename Visit>
void ForEach(const Part& part, const std::vector<int64_t>& shape,
             const std::vector<int64_t>& strides, const Visit& visit) {
  if (part.elements() == 0) return;
  std::vector<size_t> at(shape.size(), 0);
  while (true) {
    int64_t index = 0;
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      index = index * shape[d] + part.indices[d][at[d]];
      offset += static_cast<int64_t>(at[d]) * strides[d];
    }
    visit(index, offset);
    size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == part.indices[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

// Dense, or with `pad` elements between rows, or with the first dimension innermost.
std::vector<int64_t> StridesOf(const std::vector<int64_t>& shape, int64_t pad, bool transposed) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t k = 0; k < shape.size(); ++k) {
    const size_t d = transposed ? k : shape.size() - 1 - k;
    strides[d] = step;
    step = step * std::max<int64_t>(shape[d], 1) + (k == 0 ? pad : 0);
  }
  return strides;
}

int64_t ExtentOf(const TensorView& view) {
  int64_t last = 0;
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 0) return 0;
    last += (view.shape[d] - 1) * view.strides[d];
  }
  return (last + 1) * DTypeBytes(view.dtype);
}

}  // namespace

Layout LayoutOf(const json& from) {
  Layout layout;
  layout.mesh = Mesh::Create(from.at("sizes"), from.at("ranks")).value();
  for (const std::string text : from.at("placements")) {
    layout.placements.push_back(ParsePlacement(text).value());
  }
  return layout;
}

std::vector<int64_t> Part::shape() const {
  std::vector<int64_t> shape;
  for (const auto& along : indices) shape.push_back(static_cast<int64_t>(along.size()));
  return shape;
}

int64_t Part::elements() const {
  if (indices.empty()) return 0;
  int64_t elements = 1;
  for (const auto& along : indices) elements *= static_cast<int64_t>(along.size());
  return elements;
}

Part PartOf(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  Part part;
  const auto lists = oracle::OwnedLists(layout, shape, rank);
  if (!lists) return part;
  part.indices = *lists;
  const std::vector<int64_t> coordinates = *oracle::Coordinates(layout.mesh, rank);
  for (size_t m = 0; m < coordinates.size(); ++m) {
    if (layout.placements[m].kind != Placement::Kind::kPartial) continue;
    part.contribution = part.contribution * layout.mesh.sizes()[m] + coordinates[m];
  }
  return part;
}

Transfers::Transfers(Session* session, MemoryWatch* watch, Verdict* verdict, const json& specs)
    : session_(session), watch_(watch), verdict_(verdict) {
  for (const json& from : specs) {
    auto compiled = std::make_unique<Compiled>();
    compiled->spec.priority_class = from.at("priority");
    for (const json& each : from.at("tensors")) {
      TensorTransfer tensor;
      tensor.name = each.at("name");
      tensor.shape = each.at("shape").get<std::vector<int64_t>>();
      tensor.src_dtype = ParseDType(each.at("src_dtype").get<std::string>()).value();
      tensor.dst_dtype = ParseDType(each.at("dst_dtype").get<std::string>()).value();
      tensor.window = each.at("window");
      tensor.src = LayoutOf(each.at("src"));
      tensor.dst = LayoutOf(each.at("dst"));
      Tensor& own = compiled->tensors.emplace_back(
          Tensor{tensor.name, tensor.shape, tensor.src_dtype, tensor.dst_dtype,
                 PartOf(tensor.src, tensor.shape, session_->rank()),
                 PartOf(tensor.dst, tensor.shape, session_->rank())});
      for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
        if (tensor.src.placements[m].kind != Placement::Kind::kPartial) continue;
        own.contributions *= tensor.src.mesh.sizes()[m];
        own.op = tensor.src.placements[m].op;
      }
      own.below = std::min(ExactBelow(tensor.src_dtype), ExactBelow(tensor.dst_dtype));
      own.salt = Mix(std::hash<std::string>()(tensor.name));
      compiled->spec.tensors.push_back(std::move(tensor));
    }
    compiled_.push_back(std::move(compiled));
  }
}

bool Transfers::Compile(const json& op) {
  Compiled& compiled = *compiled_.at(op.at("transfer").get<size_t>());
  const auto transfer = session_->Compile(compiled.spec);
  if (!verdict_->Take(transfer.status(), "Compile")) return false;
  compiled.transfer = *transfer;
  return true;
}

int64_t Transfers::ValueOf(const Tensor& tensor, uint64_t seed, int64_t index,
                           int64_t contribution) const {
  const uint64_t hash = Mix(seed ^ tensor.salt,
                            Mix(static_cast<uint64_t>(index), static_cast<uint64_t>(contribution)));
  return static_cast<int64_t>(hash % static_cast<uint64_t>(tensor.below));
}

int64_t Transfers::ResultOf(const Tensor& tensor, uint64_t seed, int64_t index) const {
  int64_t result = ValueOf(tensor, seed, index, 0);
  for (int64_t k = 1; k < tensor.contributions; ++k) {
    const int64_t value = ValueOf(tensor, seed, index, k);
    result = tensor.op == ReduceOp::kSum   ? result + value
             : tensor.op == ReduceOp::kMax ? std::max(result, value)
                                           : std::min(result, value);
  }
  return result;
}

TensorView Transfers::AddView(const Part& part, DType dtype, int64_t pad, bool transposed,
                              Memory* memory) {
  TensorView view;
  view.dtype = dtype;
  if (!part.indices.empty()) {
    view.shape = part.shape();
    view.strides = StridesOf(view.shape, pad, transposed);
    memory->pages.emplace_back(watch_, static_cast<size_t>(ExtentOf(view)));
    view.data = memory->pages.back().data();
  }
  memory->views.push_back(view);
  return view;
}

void Transfers::FillSource(StartedRun* run, size_t number) {
  const Tensor& tensor = run->compiled->tensors[number];
  const TensorView& view = run->src.views[number];
  std::byte* const data = static_cast<std::byte*>(view.data);
  ForEach(tensor.src, tensor.shape, view.strides, [&](int64_t index, int64_t offset) {
    Encode(ValueOf(tensor, run->seed, index, tensor.src.contribution), view.dtype,
           data + offset * DTypeBytes(view.dtype));
  });
}

bool Transfers::Start(const json& op) {
  auto run = std::make_unique<StartedRun>();
  run->compiled = compiled_.at(op.at("transfer")).get();
  run->seed = op.at("seed");
  const size_t rank = static_cast<size_t>(session_->rank());
  const bool late = op.at("late").at(rank);
  run->withhold = op.at("withhold").at(rank);
  run->supply_ns = op.at("supply_ms").at(rank).get<int64_t>() * 1'000'000;
  const int64_t pad = op.at("pad").at(rank);
  const bool transposed = op.at("transposed").at(rank);
  const auto& tensors = run->compiled->tensors;
  // Views point into pages, which stay where they are.
  for (const Tensor& tensor : tensors) {
    AddView(tensor.src, tensor.src_dtype, pad, transposed, &run->src);
    AddView(tensor.dst, tensor.dst_dtype, pad, false, &run->dst);
  }
  for (size_t i = 0; i < tensors.size(); ++i) FillSource(run.get(), i);
  run->checked.assign(tensors.size(), false);
  StartOptions options;
  options.events = op.at("events");
  options.late_destinations = late;
  std::vector<TensorView> dst = run->dst.views;
  if (late) {
    for (TensorView& view : dst) view.data = nullptr;
  }
  const auto started = session_->Start(run->compiled->transfer, run->src.views, dst, options);
  // What an unfinished run was given stays, whatever happens.
  if (!verdict_->Take(started.status(), "Start")) {
    static_cast<void>(run.release());
    return false;
  }
  run->id = *started;
  runs_.push_back(std::move(run));
  ++verdict_->counts["runs"];
  return true;
}

bool Transfers::Cancel(const json& op) {
  const size_t back = op.at("back");  // from the newest run on
  if (back >= runs_.size()) return true;
  const Run id = runs_[runs_.size() - 1 - back]->id;
  return verdict_->Take(id.Cancel(), "Cancel");
}

Transfers::StartedRun* Transfers::Find(Run id) {
  for (const auto& run : runs_) {
    if (run->id == id) return run.get();
  }
  return nullptr;
}

bool Transfers::Advance() {
  Event event;
  while (session_->PollEvent(&event)) {
    StartedRun* const run = Find(event.run);
    if (run == nullptr) continue;
    if (event.kind == Event::Kind::kTensorDone) {
      Check(run, static_cast<size_t>(event.tensor), "at TensorDone");
    } else if (event.kind == Event::Kind::kNeedsMemory && !run->withhold) {
      due_.push_back({NowNs() + run->supply_ns, event.run, event.tensor});
    }
  }
  for (size_t i = 0; i < due_.size();) {
    if (due_[i].at_ns > NowNs()) {
      ++i;
      continue;
    }
    const Due due = due_[i];
    due_.erase(due_.begin() + static_cast<ptrdiff_t>(i));
    StartedRun* const run = Find(due.run);
    // A run that was cancelled meanwhile needs no memory any more.
    if (run == nullptr || due.run.IsDone()) continue;
    const absl::Status status =
        due.run.Supply(due.tensor, run->dst.views[static_cast<size_t>(due.tensor)]);
    if (status.code() == absl::StatusCode::kFailedPrecondition) continue;
    if (!verdict_->Take(status, "Supply")) return false;
    ++verdict_->counts["supplied"];
  }
  return true;
}

bool Transfers::Finish() {
  while (true) {
    const absl::Status polled = session_->Poll();
    if (!verdict_->Take(polled, "Poll")) return false;
    if (!Advance()) return false;
    const bool done =
        std::all_of(runs_.begin(), runs_.end(), [](const auto& run) { return run->id.IsDone(); });
    if (done) break;
    std::this_thread::yield();
  }
  for (const auto& run : runs_) {
    const absl::Status status = run->id.Wait();
    if (status.code() == absl::StatusCode::kCancelled) {
      ++verdict_->counts["cancelled"];
      continue;
    }
    if (!verdict_->Take(status, absl::StrCat("Wait for run ", run->id.number()))) return false;
    for (size_t i = 0; i < run->checked.size(); ++i) Check(run.get(), i, "at the end");
  }
  runs_.clear();
  due_.clear();
  return Advance();
}

void Transfers::Check(StartedRun* run, size_t number, const char* when) {
  const Tensor& tensor = run->compiled->tensors[number];
  if (tensor.dst.indices.empty()) return;
  const TensorView& view = run->dst.views[number];
  const size_t width = static_cast<size_t>(DTypeBytes(view.dtype));
  const size_t extent = static_cast<size_t>(ExtentOf(view));
  const TensorPages want(watch_, extent);  // poisoned like the destination
  ForEach(tensor.dst, tensor.shape, view.strides, [&](int64_t index, int64_t offset) {
    Encode(ResultOf(tensor, run->seed, index), view.dtype,
           want.data() + static_cast<size_t>(offset) * width);
  });
  ++verdict_->counts["tensors"];
  const std::byte* const got = static_cast<const std::byte*>(view.data);
  if (extent == 0 || std::memcmp(want.data(), got, extent) == 0) return;
  const auto differs = std::mismatch(want.data(), want.data() + extent, got);
  verdict_->Wrong(absl::StrCat("run ", run->id.number(), " (seed ", run->seed, "), tensor ",
                               tensor.name, " ", when, ": byte ", differs.first - want.data(),
                               " of ", extent));
}

}  // namespace sluice::chaos
