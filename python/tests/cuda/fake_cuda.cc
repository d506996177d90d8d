// The submodule fake_cuda of a module that is built over the fake CUDA runtime: what tests do to
// device memory and streams that no framework owns.
#include "fakes/fake_cuda.h"

#include <cuda_runtime_api.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "absl/strings/str_cat.h"
#include "session.h"
#include "support.h"

namespace sluice::python {
namespace {

void Check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(absl::StrCat(what, ": ", cudaGetErrorString(error)));
  }
}

cudaStream_t StreamAt(uintptr_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

std::byte* HostPointer(uintptr_t at, size_t bytes) {
  void* const found = FakeCudaHostPointer(reinterpret_cast<const void*>(at), bytes);
  if (found == nullptr) throw std::runtime_error("no such memory on the fake GPU");
  return static_cast<std::byte*>(found);
}

// Work of the test's on a stream: it waits to be let go, and then tells that it is done.
class Gate {
 public:
  explicit Gate(bool open) : open_(open) {}

  // On the stream's thread.
  template <typename Work>
  void Pass(Work work) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
    work();
    done_ = true;
    changed_.notify_all();
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_;
  bool done_ = false;
};

struct Held {
  explicit Held(std::shared_ptr<Gate> given) : gate(std::move(given)) {}
  Held(Held&&) noexcept = default;
  Held& operator=(Held&&) = delete;
  ~Held() {
    if (gate != nullptr) gate->Open();
  }
  std::shared_ptr<Gate> gate;
};

struct Reading {
  std::shared_ptr<Gate> gate;
  std::shared_ptr<std::string> bytes;
};

}  // namespace

void BindFakeCuda(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("fake_cuda", "A GPU that is emulated by the host.");
  nb::class_<Held>(module, "Held", "A kernel that keeps its stream busy until `release`.")
      .def("release", [](const Held& self) { self.gate->Open(); });
  nb::class_<Reading>(module, "Reading", "A kernel that reads memory when its turn comes.")
      .def("result", [](const Reading& self) {
        {
          const ReleasedGil released;
          self.gate->Wait();
        }
        return nb::bytes(self.bytes->data(), self.bytes->size());
      });
  module.def(
      "configure",
      [](int devices, bool reuse_addresses) {
        FakeCudaConfig config = FakeCudaConfiguration();
        config.devices = devices;
        config.reuse_addresses = reuse_addresses;
        // Ranks are threads of one process, and close what they have of others one by one.
        config.same_process_ipc = config.free_while_open = true;
        FakeCudaConfigure(config);
      },
      nb::arg("devices") = 1, nb::arg("reuse_addresses") = false);
  module.def(
      "allocate",
      [](size_t bytes, bool pool) {
        const std::optional<FakeCudaPool> of_pool =
            pool ? std::optional<FakeCudaPool>(std::in_place) : std::nullopt;
        void* data = nullptr;
        Check(cudaMalloc(&data, bytes), "cudaMalloc");
        return reinterpret_cast<uintptr_t>(data);
      },
      nb::arg("nbytes"), nb::arg("pool") = false, "Memory of device 0, by its address.");
  module.def(
      "free",
      [](uintptr_t at) {
        const ReleasedGil released;
        Check(cudaFree(reinterpret_cast<void*>(at)), "cudaFree");
      },
      nb::arg("ptr"));
  module.def(
      "write",
      [](uintptr_t at, nb::bytes bytes) {
        std::memcpy(HostPointer(at, bytes.size()), bytes.c_str(), bytes.size());
      },
      nb::arg("ptr"), nb::arg("data"), "Now, whatever streams do.");
  module.def(
      "read",
      [](uintptr_t at, size_t bytes) {
        return nb::bytes(reinterpret_cast<const char*>(HostPointer(at, bytes)), bytes);
      },
      nb::arg("ptr"), nb::arg("nbytes"), "Now, whatever streams do.");
  module.def(
      "enqueue_write",
      [](uintptr_t stream, uintptr_t at, nb::bytes bytes, bool held) {
        auto gate = std::make_shared<Gate>(!held);
        std::string data(bytes.c_str(), bytes.size());
        std::byte* const into = HostPointer(at, data.size());
        Check(FakeCudaEnqueue(StreamAt(stream),
                              [gate, data, into] {
                                gate->Pass([&] { std::memcpy(into, data.data(), data.size()); });
                              },
                              {{reinterpret_cast<const void*>(at), data.size()}}),
              "a kernel that writes");
        return Held(std::move(gate));
      },
      nb::arg("stream"), nb::arg("ptr"), nb::arg("data"), nb::arg("held") = true,
      "Held: the kernel waits until what is returned is released or dropped.");
  module.def(
      "enqueue_read",
      [](uintptr_t stream, uintptr_t at, size_t bytes) {
        Reading reading{std::make_shared<Gate>(true), std::make_shared<std::string>(bytes, '\0')};
        const std::byte* const from = HostPointer(at, bytes);
        Check(FakeCudaEnqueue(StreamAt(stream),
                              [reading, from] {
                                reading.gate->Pass([&] {
                                  std::memcpy(reading.bytes->data(), from, reading.bytes->size());
                                });
                              },
                              {{reinterpret_cast<const void*>(at), bytes}}),
              "a kernel that reads");
        return reading;
      },
      nb::arg("stream"), nb::arg("ptr"), nb::arg("nbytes"));
  module.def(
      "hold",
      [](uintptr_t stream) {
        auto gate = std::make_shared<Gate>(false);
        Check(FakeCudaEnqueue(StreamAt(stream), [gate] { gate->Pass([] {}); }), "a kernel");
        return Held(std::move(gate));
      },
      nb::arg("stream"), "Keeps the stream busy until what is returned is released or dropped.");
  module.def("stream", [] {
    cudaStream_t stream = nullptr;
    Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return reinterpret_cast<uintptr_t>(stream);
  });
  module.def(
      "destroy", [](uintptr_t stream) { Check(cudaStreamDestroy(StreamAt(stream)), "destroy"); },
      nb::arg("stream"));
  module.def(
      "synchronize",
      [](uintptr_t stream) {
        const ReleasedGil released;
        const cudaError_t error = cudaStreamSynchronize(StreamAt(stream));
        const TakenGil taken;
        Check(error, "cudaStreamSynchronize");
      },
      nb::arg("stream"));
  module.def(
      "is_idle", [](uintptr_t stream) { return cudaStreamQuery(StreamAt(stream)) == cudaSuccess; },
      nb::arg("stream"));
  module.def(
      "calls", [](const std::string& function) { return FakeCudaCalls(function); },
      nb::arg("function"), "How often it was called since `check_clean`.");
  module.def("misuse", &FakeCudaMisuse, "What was done wrong since this was last asked.");
  module.def("check_clean", &FakeCudaCheckClean,
             "The same, and what is left. Forgets all that, for the next test.");
}

}  // namespace sluice::python
