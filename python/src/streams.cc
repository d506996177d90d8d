// Streams, their leases, and generators written in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "session.h"
#include "session/stream/describe_stream.h"
#include "sluice/stream.h"
#include "values.h"

#ifdef SLUICE_PYTHON_CUDA
#include "sluice/cuda.h"
#endif

// DLPack's managed tensor up to its deleter, which is all that is called here
// (https://dmlc.github.io/dlpack/latest/c_api.html).
#include <dlpack/dlpack.h>

namespace sluice::python {

// A stream with the leases that other threads have dropped.
class StreamState {
 public:
  StreamState(std::shared_ptr<SessionState> on, std::unique_ptr<Stream> opened)
      : session(std::move(on)), stream(std::move(opened)), items(stream->items()) {}
  // Without the GIL.
  ~StreamState() {
    if (stream == nullptr) return;
    if (Ended() || !made_here.Holds()) {
      static_cast<void>(stream.release());
      new std::vector<std::shared_ptr<void>>(std::move(dropped));  // on purpose
      return;
    }
    CloseStream(this);
  }

  // The desk of its calls: with a progress thread the stream may have a thread of its own.
  Desk& desk() { return session->has_progress_thread() ? own_desk : session->desk(); }
  // Whether the calling thread is the stream's.
  bool Mine() const {
    return session->has_progress_thread() ? thread == ThreadNumber() : session->Mine();
  }

  // The stream, for a call of its thread. Raises as SessionState::Require.
  Stream* Require() {
    made_here.Require("stream");
    if (!session->has_progress_thread()) {
      static_cast<void>(session->Require());
    } else {
      static_cast<void>(session->RequireAnywhere());
      // The thread that takes the first batch is the stream's.
      if (thread == 0) thread = ThreadNumber();
      if (!Mine()) {
        Raise(absl::FailedPreconditionError(
            "the stream belongs to the thread that took its first batch, and this is another one"));
      }
    }
    if (stream == nullptr) Raise(absl::FailedPreconditionError("the stream is closed"));
    return stream.get();
  }

  // Lets go of what holds a lease: now where that is allowed, else with the stream's next call.
  void Drop(std::shared_ptr<void> held) {
    if (Mine() && desk().Idle()) {
      held.reset();
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    dropped.push_back(std::move(held));
  }
  // On the stream's thread, or when nobody uses it.
  void ReleaseDropped() {
    std::vector<std::shared_ptr<void>> now;
    const std::lock_guard<std::mutex> lock(mutex);
    now.swap(dropped);
  }

  const std::shared_ptr<SessionState> session;
  std::unique_ptr<Stream> stream;
  const int64_t items;
  const MadeHere made_here;
  uint64_t thread = 0;
  Desk own_desk;
  // The result of a call whose caller was interrupted; guarded by the desk.
  std::optional<absl::StatusOr<Lease>> late;

 private:
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> dropped;
};

void CloseStream(StreamState* stream) {
  if (stream->stream == nullptr) return;
  stream->late.reset();
  stream->ReleaseDropped();
  stream->stream.reset();
}

bool IsInUse(const StreamState& stream) { return !stream.own_desk.Idle(); }

PyStream::~PyStream() {
  const std::shared_ptr<StreamState>& stream = state();
  if (stream == nullptr || stream->stream == nullptr || Ended()) return;
  if (!stream->made_here.Holds()) return;
  if (!stream->desk().Idle()) {
    stream->session->CloseLater(stream);
    return;
  }
  const ReleasedGil released;
  CloseStream(stream.get());
}

namespace {

bool IsOnGpu(const Lease& lease) {
  return lease.items() > 0 && lease.view(0).device == DeviceKind::kCuda;
}

// A lease that a batch and tensors share. The last of them to let go gives the memory back, once
// the streams that read it have got past what they hold then.
class Lent {
 public:
  explicit Lent(Lease given) : lease(std::move(given)) {}
  // On the stream's thread, or when nobody uses it.
  ~Lent() {
    if (readers.empty()) return;
    // An error says that the GPU does nothing any more.
    for (size_t i = 1; i < readers.size(); ++i) JoinFirst(readers[i]).IgnoreError();
    lease.Release(readers[0]).IgnoreError();
  }

  void ReadIn(StreamHandle stream) {
    for (const StreamHandle& reader : readers) {
      if (reader.value == stream.value) return;
    }
    readers.push_back(stream);
  }

  // A tensor by DLPack begins and ends, of this item or, with -1, of all. Thread: any.
  void BeginExport(int64_t item) {
    const std::lock_guard<std::mutex> lock(mutex_);
    exports_.push_back(item);
  }
  void EndExport(int64_t item) {
    const std::lock_guard<std::mutex> lock(mutex_);
    exports_.erase(std::find(exports_.begin(), exports_.end(), item));
  }
  std::vector<int64_t> exports() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return exports_;
  }

  Lease lease;
  std::vector<StreamHandle> readers;  // with the GIL, until the last reference goes

 private:
  absl::Status JoinFirst([[maybe_unused]] StreamHandle reader) const {
#ifdef SLUICE_PYTHON_CUDA
    const absl::StatusOr<CudaMark> mark = CudaMark::Make(lease.view(0).device_ordinal, reader);
    return mark.ok() ? mark->HoldBack(readers[0]) : mark.status();
#else
    return absl::OkStatus();
#endif
  }

  std::mutex mutex_;
  std::vector<int64_t> exports_;
};

// One reference to a lease. Whichever thread drops it, the lease is given back where it may be.
class Share {
 public:
  Share(std::shared_ptr<StreamState> stream, std::shared_ptr<Lent> lent)
      : stream_(std::move(stream)), lent_(std::move(lent)) {}
  ~Share() { GiveBack(); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  void GiveBack() {
    if (lent_ == nullptr) return;
    if (Ended() || !stream_->made_here.Holds()) {
      new std::shared_ptr<Lent>(std::move(lent_));  // on purpose
      return;
    }
    stream_->Drop(std::move(lent_));
    lent_ = nullptr;
  }

  const std::shared_ptr<StreamState>& stream() const { return stream_; }
  const std::shared_ptr<Lent>& lent() const { return lent_; }

 private:
  const std::shared_ptr<StreamState> stream_;
  std::shared_ptr<Lent> lent_;  // null: given back
};

// A batch, or what is left of it.
class LeaseState {
 public:
  LeaseState(std::shared_ptr<StreamState> stream, Lease lease)
      : share_(std::move(stream), std::make_shared<Lent>(std::move(lease))) {}

  // The lease, for any thread that has it. Raises once it has been given back.
  const Lease& Held() const {
    stream()->made_here.Require("batch");
    if (!is_held()) Raise(absl::FailedPreconditionError("the batch has been given back"));
    return share_.lent()->lease;
  }
  // The same for what only the stream's thread may do.
  Lent* OnItsThread() {
    static_cast<void>(Held());
    if (!stream()->Mine()) {
      Raise(absl::FailedPreconditionError(
          "a batch is given back by the thread that took it, and this is another one"));
    }
    return share_.lent().get();
  }
  int64_t Index(int64_t i) const {
    const int64_t items = Held().items();
    if (i < 0 || i >= items) {
      throw nb::index_error(absl::StrCat("the batch has ", items, " items").c_str());
    }
    return i;
  }
  const std::shared_ptr<StreamState>& stream() const { return share_.stream(); }
  bool is_held() const { return share_.lent() != nullptr; }
  std::vector<int64_t> exports() const {
    return is_held() ? share_.lent()->exports() : std::vector<int64_t>();
  }
  std::shared_ptr<Lent> lent() const { return share_.lent(); }

  void GiveBack() { share_.GiveBack(); }

 private:
  Share share_;
};

// Calls `generator(item, into)` and returns how many bytes it has written. With the GIL.
int64_t CallGenerator(nb::handle generator, int64_t item, absl::Span<std::byte> into) {
  const nb::object array = ArrayAt(into.data(), into.size());
  nb::object memory = nb::steal(PyMemoryView_FromObject(array.ptr()));
  if (!memory.is_valid()) throw nb::python_error();
  memory = memory.attr("cast")("B");
  const nb::object made = generator(item, memory);
  auto bytes = static_cast<int64_t>(into.size());
  if (PyLong_Check(made.ptr())) {
    bytes = nb::cast<int64_t>(made);
  } else if (!made.is_none()) {
    const nb::object given = nb::steal(PyMemoryView_FromObject(made.ptr()));
    if (!given.is_valid()) throw nb::python_error();
    const nb::object plain = given.attr("cast")("B");
    bytes = static_cast<int64_t>(nb::len(plain));
    if (bytes > static_cast<int64_t>(into.size())) {
      throw nb::value_error(
          absl::StrCat("it returned ", bytes, " bytes, and an item has ", into.size()).c_str());
    }
    memory[nb::slice(nb::int_(0), nb::int_(bytes), nb::int_(1))] = plain;
  }
  // A generator that keeps the memoryview gets an error instead of memory that is not there any
  // more. Objects made of the view, as a slice, would still reach the memory, and refer to the
  // array.
  memory.attr("release")();
  memory.reset();
  if (Py_REFCNT(array.ptr()) > 1) {
    throw nb::value_error("it keeps a reference to the memory that it was given");
  }
  return bytes;
}

SizedGenerator GeneratorOf(nb::handle callable) {
  return [owner = Hold(callable)](int64_t item,
                                  absl::Span<std::byte> into) -> absl::StatusOr<int64_t> {
    if (Ended()) return absl::CancelledError("the interpreter ends");
    return WithGil([&]() -> absl::StatusOr<int64_t> {
      try {
        return CallGenerator(owner.get(), item, into);
      } catch (const nb::python_error& error) {
        return absl::UnknownError(
            absl::StrCat("the generator raised at item ", item, ": ", TextOf(error)));
      } catch (const std::exception& error) {
        return absl::UnknownError(
            absl::StrCat("the generator failed at item ", item, ": ", error.what()));
      }
    });
  };
}

// Python calls the generator of either kind with `generator(item, into)`.
void SetGenerator(nb::handle callable, bool sized, StreamSource* source) {
  if (callable.is_none()) return;
  SizedGenerator made = GeneratorOf(callable);
  if (sized) {
    source->sized_generator = std::move(made);
    return;
  }
  source->generator = [made = std::move(made)](int64_t item, absl::Span<std::byte> into) {
    const absl::StatusOr<int64_t> bytes = made(item, into);
    if (!bytes.ok()) return bytes.status();
    if (*bytes == static_cast<int64_t>(into.size())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the generator made ", *bytes, " bytes of item ",
                                                   item, ", which has ", into.size(),
                                                   ": items whose lengths vary are \"sized\""));
  };
}

// Stream options, and which kind the generator is of.
struct GivenStream {
  StreamOptions options = {};
  bool sized = false;
};

template <typename Visitor, MaybeConst<GivenStream> Struct>
void Describe(Visitor& v, Struct& o) {
  Describe(v, o.options);
  v.Field("sized", o.sized, {});
}

StreamOptions StreamOptionsOf(nb::dict options, nb::handle generator) {
  auto given = OptionsOf<GivenStream>(options);
  SetGenerator(generator, given.sized, &given.options.source);
  return std::move(given.options);
}

// Arguments of calls, which are no options.
constexpr const char* kStreamArguments[] = {"uri", "cursor", "transform"};

nb::dict CheckStreamOptions(nb::dict options) {
  GivenStream given;
  OptionReader reader(options);
  Describe(reader, given);
  for (const char* argument : kStreamArguments) reader.Forget(argument);
  reader.Finish();
  return options;
}

// Formats that the package reads itself: the stream gets an index.
constexpr const char kParsedFormats[] = ", 'webdataset', 'mds']";

nb::dict StreamOptionTypes() {
  nb::dict types = TypesOf<GivenStream>();
  for (const char* argument : kStreamArguments) nb::del(types[argument]);
  const auto formats = nb::cast<std::string>(types["format"]);
  types["format"] = absl::StrCat(absl::StripSuffix(formats, "]"), kParsedFormats);
  return types;
}

std::unique_ptr<PyStream> OpenRanks(const PySession& session, nb::dict options,
                                    nb::handle generator) {
  Session* const on = session->Require();
  auto wanted = std::make_shared<StreamOptions>(StreamOptionsOf(options, generator));
  session->Sweep();
  std::shared_ptr<SessionState> state = session.state();
  std::unique_ptr<Stream> opened =
      ValueOrRaise(session->desk().Call([state, on, wanted] { return OpenStream(on, *wanted); }));
  auto stream = std::make_shared<StreamState>(state, std::move(opened));
  state->Add(stream);
  return std::make_unique<PyStream>(std::move(stream));
}

nb::object NextOf(const PyStream& self) {
  Stream* const stream = self->Require();
  Desk& desk = self->desk();
  desk.Settle();
  self->ReleaseDropped();
  absl::StatusOr<Lease> lease = absl::UnknownError("");
  if (self->late.has_value()) {
    lease = *std::move(self->late);
    self->late.reset();
  } else if (desk.CallHere([stream] { return stream->Ready(); })) {
    lease = desk.CallHere([stream] { return stream->Next(); });
  } else {
    // Kept by the stream if the caller is interrupted.
    desk.Call([state = self.state(), stream] {
      state->late.emplace(stream->Next());
      return true;
    });
    lease = *std::move(self->late);
    self->late.reset();
  }
  RaiseIfError(lease.status());
  if (lease->end()) return nb::none();
  return nb::cast(std::make_unique<LeaseState>(self.state(), *std::move(lease)));
}

// The capsule's own end: a consumer has renamed it.
void EndCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;
  auto* const tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  tensor->deleter(tensor);
}

StreamHandle HandleOf(nb::handle stream) {
  return StreamHandle{reinterpret_cast<void*>(nb::cast<uintptr_t>(stream))};
}

nb::object DLPackOf(LeaseState* self, int64_t item, nb::handle stream) {
  Lent* const lent = self->OnItsThread();
  if (item < -1 || item >= lent->lease.items()) {
    Raise(absl::InvalidArgumentError(
        absl::StrCat("the batch has no item ", item, ", only 0 .. ", lent->lease.items() - 1)));
  }
  if (item < 0 && !lent->lease.is_batch()) {
    Raise(absl::InvalidArgumentError("items of several sizes are no batch"));
  }
  if (!stream.is_none()) {
    RaiseIfError(lent->lease.Await(HandleOf(stream)));
    lent->ReadIn(HandleOf(stream));
  }
  struct Export {
    Export(std::shared_ptr<StreamState> stream, std::shared_ptr<Lent> lent, int64_t number)
        : share(std::move(stream), std::move(lent)), item(number) {
      share.lent()->BeginExport(item);
    }
    ~Export() { share.lent()->EndExport(item); }
    Share share;
    const int64_t item;
  };
  const TensorView view = item < 0 ? lent->lease.batch() : lent->lease.view(item);
  DLManagedTensor* const tensor =
      ToDLPack(view, std::make_shared<Export>(self->stream(), self->lent(), item));
  const nb::object capsule = nb::steal(PyCapsule_New(tensor, "dltensor", &EndCapsule));
  if (!capsule.is_valid()) {
    tensor->deleter(tensor);
    throw nb::python_error();
  }
  return capsule;
}

void ReleaseLease(LeaseState* self, nb::handle stream) {
  if (!self->is_held()) return;
  if (!stream.is_none()) {
    Lent* const lent = self->OnItsThread();
    if (!IsOnGpu(lent->lease)) {
      Raise(absl::FailedPreconditionError("items in host memory are given back in no stream"));
    }
    lent->ReadIn(HandleOf(stream));
  }
  self->GiveBack();
}

nb::object MergeOf(nb::handle cursors) {
  std::vector<std::string> texts;
  for (const nb::handle cursor : cursors) {
    const auto bytes = nb::cast<nb::bytes>(cursor);
    texts.emplace_back(bytes.c_str(), bytes.size());
  }
  const std::string merged = ValueOrRaise(MergeCursors(texts));
  return nb::bytes(merged.data(), merged.size());
}

}  // namespace

void AddStreams(nb::class_<PySession>& session) {
  session.def("open_stream", &OpenRanks, nb::arg("options"), nb::arg("generator") = nb::none());
}

void BindStreams(nb::module_& module) {
  nb::class_<PyStream>(module, "Stream",
                       "Data shards, ahead of who consumes them. Belongs to its session's thread; "
                       "with a progress thread, to the thread that takes the first batch.")
      .def("next", &NextOf, "The next batch; None at the end.")
      .def("ready",
           [](const PyStream& self) {
             const Stream* const stream = self->Require();
             if (!self->desk().Idle()) return false;
             self->ReleaseDropped();
             return self->late.has_value() ||
                    self->desk().CallHere([stream] { return stream->Ready(); });
           })
      .def("end_update",
           [](const PyStream& self) {
             Stream* const stream = self->Require();
             self->desk().CallHere([stream] {
               stream->EndUpdate();
               return true;
             });
           })
      .def_prop_ro("items", [](const PyStream& self) { return self->items; })
      .def("cursor",
           [](const PyStream& self) {
             const Stream* const stream = self->Require();
             self->desk().Settle();
             self->ReleaseDropped();
             const std::string cursor =
                 self->desk().CallHere([stream] { return stream->Cursor(); });
             return nb::bytes(cursor.data(), cursor.size());
           })
      .def("stats",
           [](const PyStream& self) {
             const Stream* const stream = self->Require();
             return DictOf(self->desk().CallHere([stream] { return stream->stats(); }));
           })
      .def("close", [](const PyStream& self) {
        if (self->stream == nullptr || self->session->closed()) return;
        static_cast<void>(self->Require());
        self->desk().Call([state = self.state()] {
          CloseStream(state.get());
          return true;
        });
      });

  nb::class_<LeaseState>(module, "Lease", "A batch of items in memory that is lent.")
      .def_prop_ro("items", [](const LeaseState& self) { return self.Held().items(); })
      .def(
          "item", [](const LeaseState& self, int64_t i) { return self.Held().item(self.Index(i)); },
          nb::arg("i") = 0, "The item's number in the source.")
      .def(
          "epoch",
          [](const LeaseState& self, int64_t i) { return self.Held().epoch(self.Index(i)); },
          nb::arg("i") = 0)
      .def_prop_ro("is_batch", [](const LeaseState& self) { return self.Held().is_batch(); })
      .def_prop_ro("held", [](const LeaseState& self) { return self.is_held(); })
      .def(
          "view",
          [](const LeaseState& self, int64_t i) {
            return TupleOf(self.Held().view(self.Index(i)));
          },
          nb::arg("i") = 0)
      .def("batch",
           [](const LeaseState& self) {
             if (!self.Held().is_batch()) {
               Raise(absl::InvalidArgumentError("items of several sizes are no batch"));
             }
             return TupleOf(self.Held().batch());
           })
      .def_prop_ro(
          "exports", [](const LeaseState& self) { return self.exports(); },
          "The items of dlpack's tensors that are still there; -1: of all items.")
      .def(
          "dlpack", &DLPackOf, nb::arg("item") = -1, nb::arg("stream") = nb::none(),
          "A capsule \"dltensor\", which shares the lease. `stream` is to read it: what the stream "
          "gets from now on comes after the items, and the memory is given back after that.")
      .def(
          "release", &ReleaseLease, nb::arg("stream") = nb::none(),
          "Lets go of the memory. It is given back when no tensor has it any more, and the streams "
          "that read it have got past what they hold then.")
      .def(
          "await_stream",
          [](const LeaseState& self, nb::handle stream) {
            RaiseIfError(self.Held().Await(HandleOf(stream)));
          },
          nb::arg("stream"));

  module.def("check_stream_options", &CheckStreamOptions, nb::arg("options"),
             "The options. Raises code 3, and names the one that is wrong.");
  module.def("stream_option_types", &StreamOptionTypes, kOptionTypes);
  module.def("merge_cursors", &MergeOf, nb::arg("cursors"),
             "One cursor out of those of all ranks, for any number of ranks.");
}

}  // namespace sluice::python
