// Sessions: options, reports, memory, and how they end.
#include "session.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "session/describe_session.h"
#include "sluice/trace.h"
#include "values.h"

#ifdef SLUICE_PYTHON_CUDA
#include "sluice/cuda.h"
#endif
#ifdef SLUICE_PYTHON_NCCL
#include "sluice/nccl.h"
#endif

namespace sluice::python {
namespace {

// How long runs in flight may hold up the interpreter's end.
constexpr absl::Duration kEndTime = absl::Seconds(5);

// All sessions that have been made; guarded by the GIL, and never destroyed.
std::vector<std::weak_ptr<SessionState>>& AllSessions() {
  static auto* const all = new std::vector<std::weak_ptr<SessionState>>;
  return *all;
}

absl::Status ClosedError() { return absl::FailedPreconditionError("the session is closed"); }

// The ordinal of "cuda:N"; none of "cuda".
absl::optional<int> OrdinalOf(const std::string& name) {
  int ordinal = 0;
  if (name == "cuda") return absl::nullopt;
  if (name.rfind("cuda:", 0) == 0 && absl::SimpleAtoi(name.substr(5), &ordinal)) return ordinal;
  Raise(absl::InvalidArgumentError(
      absl::StrCat("there is no accelerator \"", name, "\"; there are cuda and cuda:N")));
}

#ifdef SLUICE_PYTHON_CUDA
std::shared_ptr<Accelerator> AcceleratorOf(const std::string& name) {
  CudaOptions options;
  if (const auto ordinal = OrdinalOf(name)) options.ordinal = *ordinal;
  const ReleasedGil released;
  absl::StatusOr<std::shared_ptr<Accelerator>> made = MakeCudaAccelerator(options);
  const TakenGil taken;
  return ValueOrRaise(std::move(made));
}
#else
std::shared_ptr<Accelerator> AcceleratorOf(const std::string& name) {
  OrdinalOf(name);
  Raise(absl::UnimplementedError(
      absl::StrCat("accelerator \"", name,
                   "\": this build of Sluice has no CUDA; build with -DSLUICE_PYTHON_CUDA=ON")));
}
#endif

std::shared_ptr<TransportMaker> TransportOf(const std::string& name,
                                            [[maybe_unused]] std::shared_ptr<Accelerator> device) {
#ifdef SLUICE_PYTHON_CUDA
  if (name == "cuda_ipc") return ValueOrRaise(MakeCudaIpcTransport(std::move(device)));
#endif
#ifdef SLUICE_PYTHON_NCCL
  if (name == "nccl") return ValueOrRaise(MakeNcclTransport(std::move(device)));
#endif
  if (name != "cuda_ipc" && name != "nccl") {
    Raise(absl::InvalidArgumentError(
        absl::StrCat("there is no transport \"", name, "\"; there are cuda_ipc and nccl")));
  }
  Raise(absl::UnimplementedError(
      absl::StrCat("transport \"", name,
                   "\" is not in this build of Sluice; build with -DSLUICE_PYTHON_CUDA=ON")));
}

// A place in a stream of the session's GPU, without the session.
#ifdef SLUICE_PYTHON_CUDA
using Mark = CudaMark;
#else
struct Mark {
  absl::Status HoldBack(StreamHandle) const { return absl::OkStatus(); }
  absl::StatusOr<bool> Passed() const { return true; }
};
#endif

StreamHandle HandleAt(uintptr_t stream) { return {reinterpret_cast<void*>(stream)}; }

Mark MarkOf(const PySession& session, [[maybe_unused]] uintptr_t stream) {
  const std::optional<int> ordinal = session->gpu();
  if (!ordinal) {
    Raise(absl::FailedPreconditionError(
        "stream is given, but the session was made without an accelerator"));
  }
#ifdef SLUICE_PYTHON_CUDA
  absl::StatusOr<Mark> made = absl::UnknownError("");
  {
    const ReleasedGil released;
    made = Mark::Make(*ordinal, HandleAt(stream));
  }
  return ValueOrRaise(std::move(made));
#else
  return {};
#endif
}

nb::list WiresOf(const SessionReport& report) {
  nb::list wires;
  for (const WireReport& wire : report.wires) {
    nb::dict one;
    one["rank"] = wire.rank;
    one["node"] = wire.node;
    one["wire"] = wire.wire;
    one["library"] = wire.library;
    one["why"] = wire.why;
    one["fell_back_from"] = wire.fell_back_from;
    wires.append(one);
  }
  return wires;
}

const char* NameOf(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::kNeedsMemory:
      return "needs_memory";
    case Event::Kind::kTensorDone:
      return "tensor_done";
    case Event::Kind::kFailed:
      return "failed";
  }
  return "";
}

TraceLog* RequireTrace(Session* session) {
  TraceLog* const trace = session->trace();
  if (trace == nullptr) {
    Raise(absl::FailedPreconditionError(
        "the session records no trace: make it with trace_events above 0"));
  }
  return trace;
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  if (!out) Raise(absl::FailedPreconditionError(absl::StrCat("cannot write the trace to ", path)));
}

nb::object BytesOf(const std::string& text) { return nb::bytes(text.data(), text.size()); }

std::string ChromeTraceOf(nb::handle parts) {
  std::vector<TracePart> read;
  for (const nb::handle part : parts) {
    const nb::tuple fields(nb::borrow(part));
    if (fields.size() != 3) {
      throw nb::type_error("a part of a trace is (content, clock offset in ns, label)");
    }
    const auto content = nb::cast<nb::bytes>(fields[0]);
    TracePart one;
    one.content.assign(content.c_str(), content.size());
    one.clock_offset_ns = nb::cast<int64_t>(fields[1]);
    one.label = nb::cast<std::string>(fields[2]);
    read.push_back(std::move(one));
  }
  absl::StatusOr<std::string> json;
  {
    const ReleasedGil released;
    json = ChromeTrace(read);
  }
  return ValueOrRaise(std::move(json));
}

}  // namespace

std::shared_ptr<SessionState> SessionState::Make(std::unique_ptr<Session> session,
                                                 uint64_t thread) {
  std::shared_ptr<SessionState> state(new SessionState(std::move(session), thread));
  std::vector<std::weak_ptr<SessionState>>& all = AllSessions();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const std::weak_ptr<SessionState>& one) { return one.expired(); }),
            all.end());
  all.push_back(state);
  return state;
}

SessionState::SessionState(std::unique_ptr<Session> session, uint64_t thread)
    : session_(std::move(session)),
      thread_(thread),
      rank_(session_->rank()),
      size_(session_->size()),
      timeout_(session_->options().timeout),
      progress_thread_(session_->options().progress_thread),
      accelerator_(session_->options().accelerator) {}

SessionState::~SessionState() {
  if (session_ == nullptr) return;
  if (Ended() || !made_here_.Holds() || !CloseSession(close_limit()).ok()) Leak();
}

void SessionState::Leak() {
  static_cast<void>(session_.release());
  new std::map<int64_t, Kept>(std::move(kept_));  // on purpose
}

Session* SessionState::Require() {
  made_here_.Require("session");
  if (closed()) Raise(ClosedError());
  if (!Mine()) {
    Raise(absl::FailedPreconditionError(
        "the session belongs to the thread that made it, and this is another one"));
  }
  if (!orphans_.empty() && desk_.Idle()) {
    std::vector<std::shared_ptr<StreamState>> orphans = std::move(orphans_);
    orphans_.clear();
    const ReleasedGil released;
    for (const std::shared_ptr<StreamState>& stream : orphans) CloseStream(stream.get());
    orphans.clear();
  }
  return session_.get();
}

Session* SessionState::RequireAnywhere() {
  made_here_.Require("session");
  if (closed()) Raise(ClosedError());
  return session_.get();
}

void SessionState::Began(const Run& run, std::shared_ptr<const Owners> owners) {
  kept_[run.number()] = Kept{run, std::move(owners), {}};
}

void SessionState::Supplied(int64_t run, Owner owner) {
  if (owner == nullptr) return;
  const auto kept = kept_.find(run);
  if (kept != kept_.end()) kept->second.supplied.push_back(std::move(owner));
}

void SessionState::EndedWell(int64_t run) {
  const auto kept = kept_.find(run);
  if (kept == kept_.end()) return;
  // Dropped after the map is as it has to be: what it drops may run code of Python.
  const Kept dropped = std::move(kept->second);
  kept_.erase(kept);
}

void SessionState::Sweep() {
  std::vector<int64_t> over;
  for (const auto& [number, kept] : kept_) {
    if (!kept.run.IsDone()) continue;
    const absl::Status status = kept.run.WaitFor(absl::ZeroDuration()).status();
    // A cancelled run asks nothing of its memory any more, unless the session has failed.
    const bool well = status.ok() || (absl::IsCancelled(status) && session_->Poll().ok());
    if (well) over.push_back(number);
  }
  for (const int64_t number : over) EndedWell(number);
}

absl::Status SessionState::CloseStreams() {
  for (const std::weak_ptr<StreamState>& one : streams_) {
    const std::shared_ptr<StreamState> stream = one.lock();
    if (stream == nullptr) continue;
    if (IsInUse(*stream)) {
      return absl::FailedPreconditionError("another thread uses a stream of the session");
    }
    CloseStream(stream.get());
  }
  streams_.clear();
  orphans_.clear();
  return absl::OkStatus();
}

absl::Status SessionState::CloseSession(absl::Duration limit) {
  if (absl::Status status = CloseStreams(); !status.ok()) return status;
  const auto start = std::chrono::steady_clock::now();
  for (const auto& [number, kept] : kept_) {
    // How it has ended does not matter: Close knows whether anything is under way.
    const absl::StatusOr<bool> over =
        kept.run.WaitFor(std::max(absl::ZeroDuration(), limit - Since(start)));
    if (over.ok() && !*over) {
      return absl::DeadlineExceededError(
          absl::StrCat("run ", number, " is still in flight after ", absl::FormatDuration(limit)));
    }
  }
  if (absl::Status status = session_->Close(); !status.ok()) return status;
  session_.reset();
  kept_.clear();
  return absl::OkStatus();
}

void SessionState::Close(absl::Duration limit) {
  made_here_.Require("session");
  if (!Mine() && !closed()) static_cast<void>(Require());
  desk_.Settle();
  if (session_ == nullptr) return;
  closing_ = true;
  const std::shared_ptr<SessionState> self = shared_from_this();
  RaiseIfError(desk_.Call([self, limit] {
    absl::Status status = self->CloseSession(limit);
    self->closing_ = false;
    return status;
  }));
}

void SessionState::CloseAll() {
  std::vector<std::shared_ptr<SessionState>> open;
  for (const std::weak_ptr<SessionState>& one : AllSessions()) {
    std::shared_ptr<SessionState> state = one.lock();
    if (state != nullptr) open.push_back(std::move(state));
  }
  for (std::shared_ptr<SessionState>& state : open) {
    const bool unused = state->desk_.Idle() && state->made_here_.Holds() && !state->closed();
    const ReleasedGil released;
    if (unused) {
      state->closing_ = true;
      if (!state->CloseSession(std::min(state->timeout_, kEndTime)).ok()) state->Leak();
      state->closing_ = false;
    }
    new std::shared_ptr<SessionState>(std::move(state));  // on purpose: no destructors any more
  }
}

namespace {

// Session options, with names of what is yet to be opened.
struct GivenOptions {
  GivenOptions() { options.progress_thread = true; }  // Python computes for long between its calls

  SessionOptions options;
  absl::optional<std::string> accelerator;
  absl::optional<std::string> transport;
};

template <typename Visitor, MaybeConst<GivenOptions> Struct>
void Describe(Visitor& v, Struct& o) {
  Describe(v, o.options);
  v.Field("accelerator", o.accelerator, {});
  v.Field("transport", o.transport, {});
}

}  // namespace

SessionOptions SessionOptionsOf(nb::dict options) {
  auto given = OptionsOf<GivenOptions>(options);
  SessionOptions& made = given.options;
  if (given.accelerator) made.accelerator = AcceleratorOf(*given.accelerator);
  if (given.transport) made.transport = TransportOf(*given.transport, made.accelerator);
  return made;
}

void BindSession(nb::module_& module) {
  nb::class_<MemoryState>(module, "Memory", "Host memory that ranks of a node copy to fastest.")
      .def_prop_ro(
          "ptr",
          [](const MemoryState& self) { return reinterpret_cast<uintptr_t>(self.data.get()); })
      .def_prop_ro("nbytes", [](const MemoryState& self) { return self.bytes; })
      .def("__len__", [](const MemoryState& self) { return self.bytes; })
      .def_prop_ro("memory",
                   [](nb::handle self) {
                     const auto* memory = nb::inst_ptr<MemoryState>(self);
                     return MemoryAt(memory->data.get(), memory->bytes, self);
                   })
      .def("__buffer__",
           [](nb::handle self, int /*flags*/) {
             const auto* memory = nb::inst_ptr<MemoryState>(self);
             return MemoryAt(memory->data.get(), memory->bytes, self);
           })
      .def_prop_ro("__array_interface__", [](const MemoryState& self) {
        nb::dict interface;
        interface["shape"] = nb::make_tuple(self.bytes);
        interface["typestr"] = "|u1";
        interface["data"] = nb::make_tuple(reinterpret_cast<uintptr_t>(self.data.get()), false);
        interface["version"] = 3;
        return interface;
      });

  nb::class_<Mark>(module, "Mark", "A place in a stream of a GPU.")
      .def(
          "hold_back",
          [](const Mark& self, uintptr_t stream) {
            absl::Status status;
            {
              const ReleasedGil released;
              status = self.HoldBack(HandleAt(stream));
            }
            RaiseIfError(status);
          },
          nb::arg("stream"), "What the stream gets from now on comes after the place.")
      .def(
          "passed", [](const Mark& self) { return ValueOrRaise(self.Passed()); },
          "True once its stream has got past it. Does not wait.");
  nb::class_<PySession> session(module, "Session",
                                "One rank's end of a group of ranks. Belongs to its thread.");
  session.def_prop_ro("rank", [](const PySession& self) { return self->rank(); })
      .def_prop_ro("size", [](const PySession& self) { return self->size(); })
      .def_prop_ro("slots", [](const PySession& self) { return self->RequireAnywhere()->slots(); })
      .def_prop_ro("slot_bytes",
                   [](const PySession& self) { return self->RequireAnywhere()->slot_bytes(); })
      .def_prop_ro("closed", [](const PySession& self) { return self->closed(); })
      .def_prop_ro(
          "gpu", [](const PySession& self) { return nb::cast(self->gpu()); },
          "The number of the GPU whose memory tensors may be in; None: of no GPU.")
      .def("mark", &MarkOf, nb::arg("stream"),
           "The end of what a stream of that GPU holds now. For any thread.")
      .def(
          "allocate",
          [](const PySession& self, int64_t bytes) {
            Session* const on = self->Require();
            absl::StatusOr<std::shared_ptr<std::byte>> data = self->desk().Call(
                [state = self.state(), on, bytes] { return on->AllocateShared(bytes); });
            return MemoryState{ValueOrRaise(std::move(data)), static_cast<size_t>(bytes)};
          },
          nb::arg("bytes"))
      .def("poll",
           [](const PySession& self) {
             Session* const on = self->Require();
             RaiseIfError(self->desk().CallHere([on] { return on->Poll(); }));
             self->Sweep();
           })
      .def("next_event",
           [](const PySession& self) -> nb::object {
             Session* const on = self->Require();
             Event event;
             if (!self->desk().CallHere([&] { return on->PollEvent(&event); })) {
               return nb::none();
             }
             return nb::make_tuple(NameOf(event.kind), event.run.number(), event.tensor,
                                   std::string(event.status.message()));
           })
      .def(
          "close",
          [](const PySession& self, nb::handle timeout) {
            self->Close(DurationOf(timeout, "timeout", self->close_limit()));
          },
          nb::arg("timeout") = nb::none(), "Without a timeout: in little more than the session's.")
      .def("report",
           [](const PySession& self) { return self->RequireAnywhere()->Report().ToString(); })
      .def("wires",
           [](const PySession& self) { return WiresOf(self->RequireAnywhere()->Report()); })
      .def("counters",
           [](const PySession& self) {
             Session* const on = self->Require();
             return DictOf(self->desk().CallHere([on] { return on->counters(); }));
           })
      .def("reset_counters",
           [](const PySession& self) {
             Session* const on = self->Require();
             self->desk().CallHere([on] {
               on->ResetCounters();
               return true;
             });
           })
      .def("trace",
           [](const PySession& self) {
             TraceLog* const trace = RequireTrace(self->Require());
             return BytesOf(self->desk().CallHere([trace] { return trace->Serialize(); }));
           })
      .def("clear_trace",
           [](const PySession& self) {
             TraceLog* const trace = RequireTrace(self->Require());
             self->desk().CallHere([trace] {
               trace->Clear();
               return true;
             });
           })
      .def(
          "write_trace",
          [](const PySession& self, nb::handle path) {
            TraceLog* const trace = RequireTrace(self->Require());
            const std::string json = self->desk().CallHere([trace] { return ChromeTrace(*trace); });
            WriteText(nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path)), json);
          },
          nb::arg("path"));
  AddTransfers(session);
  AddStreams(session);
  AddCheckpoints(session);

  module.def(
      "check_session_options",
      [](nb::dict options, bool devices) {
        if (devices) {
          SessionOptionsOf(options);
        } else {
          OptionsOf<GivenOptions>(options);
        }
        return options;
      },
      nb::arg("options"), nb::arg("devices") = false,
      "The options. Raises code 3, and names the one that is wrong. `devices`: one that cannot be "
      "had is wrong, too.");
  module.def("session_option_types", &TypesOf<GivenOptions>, kOptionTypes);
  module.def("chrome_trace", &ChromeTraceOf, nb::arg("parts"),
             "JSON text of the traces (content, clock offset in ns, label) of several ranks.");
}

}  // namespace sluice::python
