// Reads objects and ranges of them, for parsers of formats that are in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gil.h"
#include "session.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "session/checkpoint/checkpoint_headers.h"
#include "session/checkpoint/describe_checkpoint.h"
#include "session/shard/read_ranges.h"
#include "session/shard/read_text.h"
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

nb::list ReadRangesAt(const std::string& uri, const std::vector<std::string>& files,
                      const std::vector<std::tuple<int, int64_t, int64_t>>& ranges,
                      nb::dict options) {
  const auto given = OptionsOf<CheckpointOptions>(options);
  std::vector<RangeRead> reads;
  for (const auto& [file, begin, bytes] : ranges) reads.push_back({file, begin, bytes, ""});
  const auto read = [&]() -> absl::Status {
    const ReleasedGil release;
    SLUICE_ASSIGN_OR_RETURN(const SourceAddress address, ParseSourceAddress(uri));
    SLUICE_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source,
                            OpenForLooks(address, files, given, NewFileStates(address, files)));
    const WorkStop stop = false;
    return ReadRanges(source.get(), files, given.retry, stop, absl::MakeSpan(reads));
  };
  RaiseIfError(read());
  nb::list texts;
  for (const RangeRead& one : reads) texts.append(PyBytesOf(one.text));
  return texts;
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
  module.def("checkpoint_tensors", &TensorsAt, nb::arg("uri"), nb::arg("options") = nb::dict(),
             "Name, dtype and shape of each tensor of a checkpoint of safetensors. The dtype is "
             "empty where Sluice has no such type. Blocks. Options are those of a load.");
}

}  // namespace sluice::python
