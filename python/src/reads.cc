// Reads objects and ranges of them, for parsers of formats that are in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gil.h"
#include "session.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "session/checkpoint/checkpoint_headers.h"
#include "session/checkpoint/describe_checkpoint.h"
#include "session/shard/read_ranges.h"
#include "session/shard/read_text.h"
#include "session/stream/list_objects.h"
#include "tensor/error_text.h"
#include "values.h"

namespace sluice::python {
namespace {

nb::bytes PyBytesOf(const std::string& text) { return nb::bytes(text.data(), text.size()); }

nb::bytes ReadObject(const std::string& uri, const std::string& name, int64_t bytes_max,
                     nb::dict options) {
  const auto given = OptionsOf<CheckpointOptions>(options);
  const auto read = [&]() -> absl::StatusOr<WholeObject> {
    const ReleasedGil release;
    SLUICE_ASSIGN_OR_RETURN(const SourceAddress address, ParseSourceAddress(uri));
    const WorkStop stop = false;
    return FetchText(address, name, bytes_max, OpenOptionsOf(given), given.retry, stop);
  };
  return PyBytesOf(ValueOrRaise(read()).text);
}

using Ranges = std::vector<std::tuple<int, int64_t, int64_t>>;  // file, begin, bytes

// Objects that are read again and again, each in one state. Thread: one at a time.
class RangeReader {
 public:
  RangeReader(const std::string& uri, std::vector<std::string> files, nb::dict options)
      : files_(std::move(files)), options_(OptionsOf<CheckpointOptions>(options)) {
    const auto open = [&]() -> absl::Status {
      const ReleasedGil release;
      SLUICE_ASSIGN_OR_RETURN(const SourceAddress address, ParseSourceAddress(uri));
      states_ = NewFileStates(address, files_);
      SLUICE_ASSIGN_OR_RETURN(source_, OpenForLooks(address, files_, options_, states_));
      return absl::OkStatus();
    };
    RaiseIfError(open());
  }

  nb::list Read(const Ranges& ranges) {
    std::vector<RangeRead> reads;
    for (const auto& [file, begin, bytes] : ranges) reads.push_back({file, begin, bytes, ""});
    const auto read = [&] {
      const ReleasedGil release;
      const WorkStop stop = false;
      return ReadRanges(source_.get(), files_, options_.retry, stop, absl::MakeSpan(reads));
    };
    RaiseIfError(read());
    nb::list texts;
    for (const RangeRead& one : reads) texts.append(PyBytesOf(one.text));
    return texts;
  }

  // -1: the server does not say.
  int64_t Size(size_t file) const {
    if (file >= files_.size()) throw nb::index_error("there is no such file");
    if (states_.versions != nullptr) return states_.versions->at(file).bytes;
    const auto& known = states_.identities->known(static_cast<int>(file));
    return known ? known->bytes : -1;
  }

 private:
  const std::vector<std::string> files_;
  const CheckpointOptions options_;
  FileStates states_;
  std::unique_ptr<Source> source_;
};

nb::list ReadRangesAt(const std::string& uri, std::vector<std::string> files, const Ranges& ranges,
                      nb::dict options) {
  return RangeReader(uri, std::move(files), options).Read(ranges);
}

nb::list ListAt(const std::string& uri, const std::string& suffix, nb::dict options) {
  const auto given = OptionsOf<CheckpointOptions>(options);
  const auto list = [&]() -> absl::StatusOr<std::vector<ObjectFile>> {
    const ReleasedGil release;
    SLUICE_ASSIGN_OR_RETURN(const SourceAddress address, ParseSourceAddress(uri));
    const WorkStop stop = false;
    return ListFiles(address, suffix, OpenOptionsOf(given), given.retry, stop);
  };
  nb::list names;
  for (const ObjectFile& file : ValueOrRaise(list())) names.append(file.name);
  return names;
}

nb::list TensorsAt(const std::string& uri, nb::dict options) {
  const auto given = OptionsOf<CheckpointOptions>(options);
  const auto read = [&]() -> absl::StatusOr<std::vector<SafetensorsTensor>> {
    const ReleasedGil release;
    SLUICE_ASSIGN_OR_RETURN(const SourceAddress address, ParseSourceAddress(uri));
    const WorkStop stop = false;
    return FindAllTensors(address, given, stop);
  };
  nb::list tensors;
  for (const SafetensorsTensor& tensor : ValueOrRaise(read())) {
    const bool is_known = tensor.unreadable.empty() && DTypeOf(tensor.type).has_value();
    tensors.append(nb::make_tuple(tensor.name,
                                  std::string(is_known ? ElementName(tensor.type) : ""),
                                  nb::cast(tensor.shape)));
  }
  return tensors;
}

}  // namespace

void BindReads(nb::module_& module) {
  module.def("read_object", &ReadObject, nb::arg("uri"), nb::arg("name"), nb::arg("bytes_max"),
             nb::arg("options") = nb::dict(),
             "An object at a checkpoint's place, whole. Blocks. Options are those of a load.");
  module.def("read_ranges", &ReadRangesAt, nb::arg("uri"), nb::arg("files"), nb::arg("ranges"),
             nb::arg("options") = nb::dict(),
             "The bytes of ranges (number in `files`, begin, bytes), many read at once. Blocks.");
  nb::class_<RangeReader>(module, "RangeReader",
                          "Objects at a place, kept open. Thread: one at a time.")
      .def(nb::init<const std::string&, std::vector<std::string>, nb::dict>(), nb::arg("uri"),
           nb::arg("files"), nb::arg("options") = nb::dict())
      .def("read", &RangeReader::Read, nb::arg("ranges"), "As `read_ranges`. Blocks.")
      .def("size", &RangeReader::Size, nb::arg("file"),
           "Bytes of a file of which something was read; -1: the server does not say.");
  module.def("list_objects", &ListAt, nb::arg("uri"), nb::arg("suffix"),
             nb::arg("options") = nb::dict(),
             "The names right below a place that end in `suffix`, in their order. Blocks.");
  module.def("checkpoint_tensors", &TensorsAt, nb::arg("uri"), nb::arg("options") = nb::dict(),
             "Name, dtype and shape of each tensor of a checkpoint of safetensors. The dtype is "
             "empty where Sluice has no such type. Blocks. Options are those of a load.");
}

}  // namespace sluice::python
