// Connections, their runs, and checkpoints.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session.h"
#include "session/checkpoint/describe_checkpoint.h"
#include "session/describe_session.h"
#include "sluice/checkpoint.h"
#include "sluice/error.h"
#include "sluice/transfer.h"
#include "values.h"

namespace sluice::python {
namespace {

// How long Ctrl-C may take to be heard in Run.wait.
constexpr absl::Duration kWaitSlice = absl::Milliseconds(50);

std::vector<ConnectTensor> HalfOf(nb::handle entries, bool target, int rank, Owners* owners) {
  std::vector<ConnectTensor> half;
  for (const nb::handle entry : entries) {
    NamedTensor read = NamedTensorOf(entry, rank);
    ConnectTensor tensor = {std::move(read.part)};
    if (!read.extra.is_none()) {
      int window = 0;
      if (!nb::try_cast(read.extra, window)) {
        throw nb::type_error(
            absl::StrCat("tensor \"", tensor.name, "\": the window has to be an int or None")
                .c_str());
      }
      tensor.window = window;
    }
    if (read.owner != nullptr) (*owners)[{target, tensor.name}] = std::move(read.owner);
    half.push_back(std::move(tensor));
  }
  return half;
}

// Makes a status of None, or of a text, the tensor that it is about or None, and a code.
absl::Status RefusalOf(nb::handle refusal) {
  if (refusal.is_none()) return absl::OkStatus();
  const auto [text, tensor, code] =
      nb::cast<std::tuple<std::string, std::optional<std::string>, int>>(refusal);
  ErrorFields fields;
  fields.tensor = tensor;
  return WithFields(absl::Status(static_cast<absl::StatusCode>(code), text), fields);
}

std::unique_ptr<PyConnection> ConnectRanks(const PySession& session, nb::handle sources,
                                           nb::handle targets, nb::dict renames, bool ignore_unused,
                                           bool late_targets, nb::handle priority) {
  Session* const on = session->Require();
  ConnectSpec own;
  auto owners = std::make_shared<Owners>();
  own.sources = HalfOf(sources, false, session->rank(), owners.get());
  own.targets = HalfOf(targets, true, session->rank(), owners.get());
  for (const auto& [target, source] : renames) {
    own.renames[nb::cast<std::string>(target)] = nb::cast<std::string>(source);
  }
  own.ignore_unused_sources = ignore_unused;
  own.late_targets = late_targets;
  if (!priority.is_none()) own.priority_class = nb::cast<int>(priority);
  session->Sweep();
  std::shared_ptr<SessionState> state = session.state();
  std::unique_ptr<Connection> connection = ValueOrRaise(
      session->desk().Call([state, on, own = std::move(own), owners] { return Connect(on, own); }));
  return std::make_unique<PyConnection>(std::make_shared<ConnectionState>(
      std::move(state), std::move(connection), std::move(owners)));
}

// The connection, for a call of its session's thread.
Connection* Require(const PyConnection& self) {
  static_cast<void>(self->session->Require());
  return self->connection.get();
}

Transfer* RequireTransfer(const PyConnection& self) {
  Transfer* const transfer = Require(self)->transfer();
  if (transfer == nullptr) {
    Raise(absl::FailedPreconditionError("the connection has been dropped"));
  }
  return transfer;
}

std::vector<std::string> NamesOf(const PyConnection& self) {
  std::vector<std::string> names;
  for (const TensorTransfer& tensor : RequireTransfer(self)->spec().tensors) {
    names.push_back(tensor.name);
  }
  return names;
}

nb::dict ConnectionStatsOf(const PyConnection& self) {
  const Transfer* const transfer = RequireTransfer(self);
  nb::dict values = DictOf(transfer->stats());
  values["tensors"] = transfer->spec().tensors.size();
  values["priority"] = transfer->spec().priority_class;
  return values;
}

std::unique_ptr<PyRun> StartRun(const PyConnection& self, nb::handle stream, bool events, bool late,
                                nb::handle version, nb::handle refusal, nb::handle keep) {
  Connection* const connection = Require(self);
  SessionState& session = *self->session;
  session.desk().Settle();
  session.Sweep();
  StartOptions options;
  options.events = events;
  options.late_destinations = late;
  options.refusal = RefusalOf(refusal);
  if (!stream.is_none()) {
    options.stream = StreamHandle{reinterpret_cast<void*>(nb::cast<uintptr_t>(stream))};
  }
  if (!version.is_none()) options.version = nb::cast<int64_t>(version);
  const Run run = ValueOrRaise(session.desk().CallHere([&] { return connection->Start(options); }));
  session.Began(run, self->owners);
  session.Supplied(run.number(), Hold(keep));
  return std::make_unique<PyRun>(std::make_shared<RunState>(RunState{self->session, run, false}));
}

void Rebind(const PyConnection& self, nb::handle sources, nb::handle targets) {
  Connection* const connection = Require(self);
  auto owners = std::make_shared<Owners>(*self->owners);
  const auto read = [&owners](nb::handle entries, bool target) {
    std::vector<Connection::NamedView> views;
    for (const nb::handle entry : entries) {
      const nb::tuple fields(nb::borrow(entry));
      if (fields.size() != 2 && fields.size() != 3) {
        throw nb::type_error("memory to bind is (name, view) or (name, view, owner)");
      }
      std::string name = nb::cast<std::string>(fields[0]);
      TensorView view = ViewOf(fields[1], name);
      (*owners)[{target, name}] = fields.size() == 3 ? Hold(fields[2]) : nullptr;
      views.emplace_back(std::move(name), std::move(view));
    }
    return views;
  };
  const std::vector<Connection::NamedView> source_views = read(sources, false);
  const std::vector<Connection::NamedView> target_views = read(targets, true);
  RaiseIfError(self->session->desk().CallHere(
      [&] { return connection->Rebind(source_views, target_views); }));
  self->owners = std::move(owners);
}

bool WaitForRun(const PyRun& self, nb::handle timeout) {
  if (self->done) return true;
  const absl::Duration limit = DurationOf(timeout, "timeout", absl::InfiniteDuration());
  SessionState& session = *self->session;
  const auto start = std::chrono::steady_clock::now();
  absl::Duration slice = absl::ZeroDuration();  // the first look is short
  while (true) {
    static_cast<void>(session.Require());
    const absl::StatusOr<bool> over =
        session.desk().CallHere([&] { return self->run.WaitFor(slice); });
    if (!over.ok()) {
      session.Sweep();
      Raise(over.status());
    }
    if (*over) {
      self->done = true;
      session.EndedWell(self->run.number());
      return true;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const absl::Duration left = limit - Since(start);
    if (left <= absl::ZeroDuration()) return false;
    slice = std::min(kWaitSlice, left);
  }
}

// Values that a call for a checkpoint holds until it is over.
struct CheckpointCall {
  std::string place;
  std::vector<CheckpointTensor> tensors;
  std::vector<Owner> owners;
  CheckpointOptions options;
};

// `given`: tensor, file, begin, bytes, dtype, shape, strides and offset. The package has checked
// it.
CheckpointEntry EntryOf(nb::handle given) {
  CheckpointEntry entry;
  entry.tensor = nb::cast<std::string>(given[0]);
  entry.file = nb::cast<std::string>(given[1]);
  entry.begin = nb::cast<int64_t>(given[2]);
  entry.bytes = nb::cast<int64_t>(given[3]);
  entry.dtype = DTypeOf(given[4]);
  entry.shape = nb::cast<std::vector<int64_t>>(given[5]);
  entry.strides = nb::cast<std::vector<int64_t>>(given[6]);
  entry.offset = nb::cast<std::vector<int64_t>>(given[7]);
  return entry;
}

std::shared_ptr<CheckpointCall> CheckpointCallOf(const PySession& session, std::string place,
                                                 nb::handle tensors, nb::dict options,
                                                 nb::dict metadata, nb::list catalog) {
  auto call = std::make_shared<CheckpointCall>();
  call->place = std::move(place);
  for (const nb::handle entry : tensors) {
    NamedTensor read = NamedTensorOf(entry, session->rank());
    CheckpointTensor tensor = {std::move(read.part)};
    if (!read.extra.is_none()) tensor.file_dtype = DTypeOf(read.extra);
    call->tensors.push_back(std::move(tensor));
    call->owners.push_back(std::move(read.owner));
  }
  call->options = OptionsOf<CheckpointOptions>(options);
  for (const auto& [key, text] : metadata) {
    call->options.metadata.emplace_back(nb::cast<std::string>(key), nb::cast<std::string>(text));
  }
  for (const nb::handle entry : catalog) call->options.catalog.push_back(EntryOf(entry));
  call->options.progress = &session->checkpoint_progress();
  return call;
}

}  // namespace

ConnectionState::~ConnectionState() {
  // A connection that a forked child inherits is its parent's.
  if (Ended() || !session->MadeInThisProcess()) static_cast<void>(connection.release());
}

void AddTransfers(nb::class_<PySession>& session) {
  session.def("connect", &ConnectRanks, nb::arg("sources"), nb::arg("targets"),
              nb::arg("renames") = nb::dict(), nb::arg("ignore_unused") = false,
              nb::arg("late_targets") = false, nb::arg("priority") = nb::none());
  session.def(
      "refuse",
      [](const PySession& self, std::string call, nb::handle refusal) {
        Session* const on = self->Require();
        RaiseIfError(
            self->desk().Call([state = self.state(), on, call = std::move(call),
                               why = RefusalOf(refusal)] { return on->Refuse(call, why); }));
      },
      nb::arg("call"), nb::arg("refusal"),
      "Raises on all ranks. In the place of a call that they make, named as in C++.");
}

// `place`: the name of the argument that says where the checkpoint is.
void AddCheckpointCall(nb::class_<PySession>& session, const char* name, const char* place,
                       decltype(&LoadCheckpoint) run) {
  session.def(
      name,
      [run](const PySession& self, std::string at, nb::handle tensors, nb::dict options,
            nb::dict metadata, nb::list catalog) {
        Session* const on = self->Require();
        auto call = CheckpointCallOf(self, std::move(at), tensors, options, metadata, catalog);
        return DictOf(ValueOrRaise(self->desk().Call([state = self.state(), on, call, run] {
          return run(on, call->place, call->tensors, call->options);
        })));
      },
      nb::arg(place), nb::arg("tensors"), nb::arg("options") = nb::dict(),
      nb::arg("metadata") = nb::dict(), nb::arg("catalog") = nb::list());
}

void AddCheckpoints(nb::class_<PySession>& session) {
  AddCheckpointCall(session, "load", "uri", &LoadCheckpoint);
  AddCheckpointCall(session, "save", "directory", &SaveCheckpoint);
  session.def(
      "checkpoint_info",
      [](const PySession& self, std::string uri, nb::dict options, nb::list catalog) {
        Session* const on = self->Require();
        auto call =
            CheckpointCallOf(self, std::move(uri), nb::list(), options, nb::dict(), catalog);
        const CheckpointInfo info =
            ValueOrRaise(self->desk().Call([state = self.state(), on, call] {
              return ReadCheckpointInfo(on, call->place, call->options);
            }));
        nb::dict metadata;
        for (const auto& [key, text] : info.metadata) metadata[key.c_str()] = text;
        return nb::make_tuple(nb::cast(info.tensors), metadata);
      },
      nb::arg("uri"), nb::arg("options") = nb::dict(), nb::arg("catalog") = nb::list(),
      "The tensors' names, and the texts that were saved with them.");
  session.def(
      "checkpoint_progress",
      [](const PySession& self) {
        const CheckpointProgress& progress = self->checkpoint_progress();
        return nb::make_tuple(progress.done.load(), progress.total.load());
      },
      "Bytes of the files that the latest load or save has done, and of all that it does; 0: "
      "not known yet. For any thread.");
}

void BindTransfers(nb::module_& module) {
  module.def(
      "check_checkpoint_options",
      [](nb::dict options) {
        OptionsOf<CheckpointOptions>(options);
        return options;
      },
      nb::arg("options"), "The options. Raises code 3, and names the one that is wrong.");
  module.def("checkpoint_option_types", &TypesOf<CheckpointOptions>, kOptionTypes);
  nb::class_<PyConnection>(module, "Connection",
                           "A transfer and this rank's memory for it. Belongs to its session's "
                           "thread, and keeps the session.")
      .def("names", &NamesOf, "The tensors, in the order in which events count them.")
      .def("stats", &ConnectionStatsOf)
      .def(
          "start", &StartRun, nb::arg("stream") = nb::none(), nb::arg("events") = false,
          nb::arg("late") = false, nb::arg("version") = nb::none(), nb::arg("refusal") = nb::none(),
          nb::arg("keep") = nb::none(),
          "Begins a run. It refers to `keep` until it is over, and to the owners of what is bound.")
      .def(
          "disown", [](const PyConnection& self) { self->owners = std::make_shared<Owners>(); },
          "Lets go of the owners of what is bound; runs in flight keep theirs. Whoever starts a "
          "run "
          "then has to `keep` the memory, or to bind other memory before.")
      .def("version",
           [](const PyConnection& self) -> nb::object {
             const absl::optional<int64_t> version = Require(self)->version();
             if (!version.has_value()) return nb::none();
             return nb::cast(*version);
           })
      .def("rebind", &Rebind, nb::arg("sources") = nb::list(), nb::arg("targets") = nb::list())
      .def("drop", [](const PyConnection& self) {
        Connection* const connection = Require(self);
        self->session->Sweep();
        RaiseIfError(self->session->desk().Call(
            [state = self.state(), connection] { return connection->Drop(); }));
        self->owners = std::make_shared<Owners>();
      });

  nb::class_<PyRun>(module, "Run", "A run that Connection.start has begun.")
      .def("wait", &WaitForRun, nb::arg("timeout") = nb::none(),
           "True once the run is over; False after `timeout` seconds. Raises how it failed.")
      .def("is_done",
           [](const PyRun& self) {
             if (self->done) return true;
             static_cast<void>(self->session->RequireAnywhere());
             return self->run.IsDone();
           })
      .def(
          "supply",
          [](const PyRun& self, int tensor, nb::handle view, nb::handle owner) {
            static_cast<void>(self->session->Require());
            const TensorView memory = ViewOf(view, absl::StrCat("#", tensor));
            RaiseIfError(
                self->session->desk().CallHere([&] { return self->run.Supply(tensor, memory); }));
            self->session->Supplied(self->run.number(), Hold(owner));
          },
          nb::arg("tensor"), nb::arg("view"), nb::arg("owner") = nb::none())
      .def("cancel",
           [](const PyRun& self) {
             static_cast<void>(self->session->Require());
             RaiseIfError(self->session->desk().CallHere([&] { return self->run.Cancel(); }));
           })
      .def_prop_ro("number", [](const PyRun& self) { return self->run.number(); });
}

}  // namespace sluice::python
