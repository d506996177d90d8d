// Transfers of which each rank describes only what it has.
//
// Sources and targets meet by name. On a trainer's ranks:
//
//   ConnectSpec own;
//   own.sources.push_back({{.name = "wte", .shape = {50257, 768}, .dtype = DType::kF32,
//                           .layout = {trainer_mesh, {Placement::Shard(0)}}, .view = wte}});
//   absl::StatusOr<std::unique_ptr<Connection>> weights = Connect(session, own);
//
// On a server's ranks, which do not know how the trainer cuts its tensors:
//
//   own.targets.push_back({{.name = "embed", .shape = {50257, 768}, .dtype = DType::kBF16,
//                           .layout = {server_mesh, {Placement::Shard(1)}}, .view = embed}});
//   own.renames = {{"embed", "wte"}};  // target, source
//
// And on all of them, for each new version of the weights:
//
//   absl::StatusOr<Run> run = (*weights)->Start({.version = version});
//   if (run.ok()) absl::Status moved = run->Wait();
//
// Session::Compile stays for those who know both sides.
#ifndef SLUICE_CONNECT_H_
#define SLUICE_CONNECT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/layout.h"
#include "sluice/run.h"
#include "sluice/tensor.h"

namespace sluice {

class Session;
class Transfer;

// A tensor of which this rank has a part. Names have 1 .. 1024 bytes. A layout is over the
// session's ranks. It has a mesh and placements, or boxes:
// * Ranks of a mesh all give the tensor, alike but for the view. One that owns no element may leave
//   it out.
// * A list of boxes is of this rank alone. Each rank that has boxes of the tensor gives its own,
//   and shape, dtype and window as the others do. Together they are one layout. On one side all
//   ranks that give a name have boxes, or none has.
struct ConnectTensor : TensorPart {
  // As TensorTransfer has it. A target's counts; where it has none, its source's; else 0.
  absl::optional<int> window = absl::nullopt;
};

// The tensors that one rank has. Both lists may be empty. A rank may give a name as source and as
// target.
struct ConnectSpec {
  // Adds a source whose memory is const: `tensor` with `view` in the place of its own.
  void AddSource(ConnectTensor tensor, const SourceView& view) {
    tensor.view = view.view();
    sources.push_back(std::move(tensor));
  }

  std::vector<ConnectTensor> sources = {};
  std::vector<ConnectTensor> targets = {};
  // Names of targets, and of their sources, where these differ. Renames of all ranks count
  // together, so either side may give them. Several targets may have one source. Names that nobody
  // asks for do not matter.
  std::map<std::string, std::string> renames = {};
  // Sources that no target asks for are no error. Enough if one rank says so.
  bool ignore_unused_sources = false;
  // This rank's targets may lack data. Rebind gives it, or Run::Supply for each run on its own. May
  // differ between ranks.
  bool late_targets = false;
  // As TransferSpec has it. Equal on the ranks that give one; 0 if none does.
  absl::optional<int> priority_class = absl::nullopt;
};

// A transfer and this rank's memory for it. It may outlive its session, but is of no use then.
//
// Thread: the session's.
class Connection {
 public:
  // Leaves the transfer to its session, as nothing here may wait for other ranks. See Drop.
  virtual ~Connection() = default;

  // The compiled transfer. Its tensors have the targets' names. They come in the order in which the
  // lowest rank gave its targets, then the next rank those that were new, and so on. Event::tensor
  // and Run::Supply count in this order. Null after Drop.
  virtual Transfer* transfer() const = 0;

  // Collective; does not block. Session::Start with the memory that is bound. Errors are the same.
  virtual absl::StatusOr<Run> Start(const StartOptions& options = {}) = 0;
  // The last StartOptions::version that a run began here with.
  virtual absl::optional<int64_t> version() const = 0;

  // Other memory for tensors of this rank, by name, from the next run on. Runs under way keep
  // theirs. All or none is bound. InvalidArgument: a view does not fit, or shares memory as
  // Session::Start forbids; NotFound: this rank has no such tensor.
  using NamedView = std::pair<std::string, TensorView>;
  virtual absl::Status Rebind(absl::Span<const NamedView> sources,
                              absl::Span<const NamedView> targets) = 0;

  // Collective, as Session::Drop: all ranks drop the same connection, and no run may be in flight.
  // Then its other calls return FailedPrecondition.
  virtual absl::Status Drop() = 0;
};

// Collective; blocks until all ranks have called, have heard what the others have, and have planned
// the transfer. No run may be in flight. The transfer is empty if nobody has anything.
//
// Targets of one name may lie on several meshes with no rank in common: each gets all of its
// source. Sources of one name may lie on several such meshes, too, if these have equal sizes,
// placements and orders: each has a copy. They become one mesh whose first dimension replicates. So
// a rank that has a whole tensor gives it on a mesh of itself alone.
//
// Bad input is found before anything moves. Every rank gets an error that names tensors and ranks,
// nothing is kept, and the session stays usable:
// * InvalidArgument: what a rank gives makes no sense by itself, or a view does not fit its layout.
//   Memory is used twice as Session::Start forbids. Ranks that have a part of a tensor do not give
//   it, or others do. A rank gives boxes of others. No source box has an element that a target
//   needs. Shapes differ, there is no cast, or nobody asks for a source.
// * NotFound: nobody has a target's source.
// * FailedPrecondition: ranks disagree, or a run is in flight.
// * ResourceExhausted: the ranks' descriptions come to more than 64 MiB, to 2^20 tensors, or to
//   2^20 boxes in distinct lists. A tensor has more than BoxList::kBoxesMax boxes, or distinct
//   layouts together have 2^21.
// * DeadlineExceeded: a rank does not call, which poisons the session.
// Thread: the session's.
absl::StatusOr<std::unique_ptr<Connection>> Connect(Session* session, const ConnectSpec& own);

}  // namespace sluice

#endif  // SLUICE_CONNECT_H_
